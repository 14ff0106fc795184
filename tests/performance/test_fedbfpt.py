"""FedBFPT's local models: what a client trains in each round, and how rounds become a row. Nothing large is timed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.backbones import architecture
from benchmarks.performance import fedbfpt
from benchmarks.performance.fedbfpt import BASELINE, METHOD, Job, Sizes, jobs_by_round, measure
from benchmarks.performance.section import Bench
from benchmarks.registry import benchmark
from benchmarks.settings import Settings
from fedsim.algorithms import Setting
from reports.evidence.records import request_for
from reports.evidence.resources import Resources

TABLE = benchmark(fedbfpt.TABLE)
SMALL = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 1200}


def jobs(row: str) -> list[Job]:
    cell = TABLE.cell(TABLE.row(row), TABLE.columns[0], TABLE.scale("paper"), 0)
    return jobs_by_round(cell)


def test_jobs_are_what_the_methods_plans_say() -> None:
    own = jobs(METHOD)
    assert [job.said for job in own] == ["layer 0 + output"] * 3 + ["layer 1 + output", "layer 2 + output"]
    assert {job.layers for job in own} == {6}
    assert len({job.trained for job in own}) == 3
    (whole,) = set(jobs(BASELINE))
    assert (whole.layers, whole.said) == (12, "all")


def test_a_model_of_six_layers_is_timed_once() -> None:
    assert set(jobs("tinybert-6")) == set(jobs("fedbfpt-all"))


def test_a_jobs_configuration_is_its_backbones_own() -> None:
    (job,) = set(jobs("tinybert-4"))
    merged = {**architecture(job.backbone), **json.loads(job.config)}
    assert merged == json.loads(job.config)
    assert (merged["hidden_size"], merged["num_hidden_layers"]) == (312, 4)
    assert "hidden_size" not in json.loads(jobs(METHOD)[0].config)  # BertConfig's default is BERT-base's


def test_what_is_missing_a_plan_is_refused() -> None:
    with pytest.raises(ValueError, match="central: expected a method that shows its exchange plans"):
        jobs("bert-c")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The section, of small models that really train, and of seconds that a test gives."""

    def build(seconds: Callable[[Job], list[float]]) -> Any:
        timed: list[Job] = []

        def epoch_of(job: Job, setting: Setting, sizes: Sizes) -> Callable[[], object]:
            timed.append(job)
            return real(job, setting, sizes)

        def in_turn(repeats: int, *works: Callable[[], object]) -> list[list[float]]:
            for work in works:
                work()
            return [seconds(job) for job in timed]

        real = fedbfpt.epoch_of
        monkeypatch.setattr(fedbfpt, "epoch_of", epoch_of)
        monkeypatch.setattr(fedbfpt, "in_turn", in_turn)
        monkeypatch.setattr(fedbfpt, "in_process", lambda work, job, *rest: 1000 * job.layers)
        sizes = Sizes((BASELINE, "distilbert", METHOD), batch=2, batches=1, tokens=8, config=SMALL)
        return measure(Bench(Settings(), repeats=2, say=lambda line: None), sizes)

    return build


def test_a_row_is_the_mean_over_rounds_against_the_baseline(measured: Callable[..., Any], tmp_path: Any) -> None:
    taken = {"all": [10.0, 20.0], "layer 0 + output": [4.0, 8.0], "layer 1 + output": [3.0, 6.0],
             "layer 2 + output": [2.0, 4.0]}  # fmt: skip
    section = measured(lambda job: [value * (job.layers / 12 if job.said == "all" else 1) for value in taken[job.said]])
    rows = {entry["row"]: entry for entry in section.rows if entry["row"]}
    assert {name: entry["percent"] for name, entry in rows.items()} == {BASELINE: 100, "distilbert": 50, METHOD: 34}
    assert rows[METHOD]["seconds"] == pytest.approx((3 * 6 + 4.5 + 3) / 5)
    assert [entry["percent"] for entry in section.rows if not entry["row"]] == [40, 30, 20]
    assert [entry["peak_bytes"] for entry in section.rows] == [12000, 6000, 6000, 6000, None, None]
    (bar,) = section.bars
    assert (bar.value, bar.bound, bar.met) == (34, 46.7, True)
    # What the suite writes is what a table's page reads.
    path = tmp_path / "fedbfpt.json"
    environment = {"device": "d", "threads": 1, "precision": "fp32"}
    path.write_text(json.dumps({"rows": section.rows, "environment": environment, "finished": "2026-01-01T00:00:00"}))
    assert read(path) == {BASELINE: 100, "distilbert": 50, METHOD: 34}


def test_slower_than_printed_misses_the_bar(measured: Callable[..., Any]) -> None:
    section = measured(lambda job: [1.0, 1.0])
    assert not section.bars[0].met


def read(path: Any) -> dict[str, float]:
    from dataclasses import replace

    table = benchmark("fedbfpt-table2")
    assert table.costing is not None
    own = replace(table, costing=replace(table.costing, timed=path))
    timed = Resources(request_for(own, own.scale("lite"), [])).timed
    assert timed is not None
    return dict(timed.percent)
