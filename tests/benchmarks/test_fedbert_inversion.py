"""The study of what embeddings give away to a split-learning server: its cells, and its demo through the runner."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.dry_run.rounds import wire_plan
from benchmarks.registry import benchmark, scale_of
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell
from benchmarks.tasks import task
from reports.evidence.published import read_published
from reports.evidence.records import request_for
from reports.views import page

STUDY = benchmark("fedbert-inversion")
Records = dict[str, RunResult]


def cells(scale: str) -> dict[str, RunConfig]:
    return {row.id: cell for row, _, cell in STUDY.cells(scale_of(STUDY, scale), [0])}


def test_no_row_claims_to_be_printed_and_each_says_what_it_is() -> None:
    assert not any(row.printed for row in STUDY.rows)
    assert all(row.note for row in STUDY.rows)
    assert read_published(STUDY.published_csv) == ()
    assert set(STUDY.columns[0].scores) == {f"test/{metric}" for metric in task("sst2-texts").metrics}


@pytest.mark.parametrize("scale", ["demo", "lite", "paper"])
def test_every_attack_is_on_what_leaves_the_embeddings_and_sends_nothing(scale: str) -> None:
    found = cells(scale)
    assert len({cell.spec_id for cell in found.values()}) == len(STUDY.rows) == 6
    for cell in found.values():
        assert cell.algorithm != "inversion" or cell.options["layer"] == 0
        assert cell.training.precision == "fp32"
        plan = wire_plan(cell)
        assert (plan.up_bytes, plan.down_bytes, plan.setup_bytes) == (0, 0, 0)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    settings = RunOptions(results_dir=tmp_path_factory.mktemp("results"), device="cpu")
    return {name: run_cell(cell, settings, lambda _: None) for name, cell in cells("demo").items()}


def test_the_demo_gives_every_text_away(records: Records) -> None:
    tokens = {name: record.score("test/token_recovery") or 0.0 for name, record in records.items()}
    assert tokens["token-majority"] < 0.2
    assert tokens["nearest"] == tokens["nearest-fp16"] == 1.0
    assert tokens["nearest-dropout"] > 0.9
    assert min(tokens["inverter"], tokens["inverter-fp16"]) > 0.9
    assert records["nearest"].score("test/text_recovery") == 1.0


def test_what_learns_nothing_has_no_loss(records: Records) -> None:
    losses = {name: record.rounds[0].train_loss is None for name, record in records.items()}
    assert [name for name, is_none in losses.items() if not is_none] == ["inverter", "inverter-fp16"]


def test_the_page_says_who_attacks_what(records: Records) -> None:
    shown = page(request_for(STUDY, scale_of(STUDY, "demo"), list(records.values())))
    assert shown.run == shown.cells == len(STUDY.rows)
    notes = " ".join(shown.notes)
    assert "raw data is not exchanged by our proposed FEDBERT" in notes
    assert "P_ef" in notes


def test_a_second_worker_or_machine_gets_the_same_record(records: Records, tmp_path: Path) -> None:
    again = run_cell(cells("demo")["nearest-dropout"], RunOptions(results_dir=tmp_path, device="cpu"), lambda _: None)
    assert again.outcome == records["nearest-dropout"].outcome
