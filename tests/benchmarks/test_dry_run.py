"""Dry runs: bytes and FLOPs by hand; planned bytes equal sent bytes for every method."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.dry_run import cache, client_costs, rounds
from benchmarks.dry_run.cache import key_of
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.dry_run.shapes import derive_client, plan_of
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellStarted, Trained
from benchmarks.running.runner import run_cell
from fedsim.algorithms import algorithm_names


def of_table(table: str, row: str) -> RunConfig:
    bench = benchmark(table)
    return bench.cell(bench.row(row), bench.columns[0], bench.scale("demo"), 0)


TRAINED = {"fedavg", "fedsplitbert", "fedper", "fedbfpt", "fedbert_parallel", "fedbert_sequential"}  # of all examples
UNPLANNED = {"local_prior", "unigram"}  # one begins from another run; the other sends what its texts have


def demo_cells() -> dict[str, RunConfig]:
    """A demo cell of each method in the tables whose bytes do not depend on the texts."""
    cells: dict[str, RunConfig] = {}
    tables = [table for table in map(benchmark, benchmark_ids()) if "demo" in {scale.id for scale in table.scales}]
    for table in tables:
        for _, _, cell in table.cells(table.scale("demo"), [0]):
            if cell.initial is None and cell.algorithm not in UNPLANNED:
                cells.setdefault(cell.algorithm, cell)
    return cells


CELLS = demo_cells()


def test_every_method_is_in_a_table():
    assert {*algorithm_names()} == {*CELLS} | UNPLANNED


def assert_sent_as_planned(cell: RunConfig, settings: Any, events: Any) -> None:
    record = run_cell(cell, settings, events)
    plan = wire_plan(cell, examples=[client["train"] for client in record.clients])
    sent: list[Counter[tuple[str, str]]] = [Counter() for _ in plan.rounds]
    for row in record.ledger:
        if row.round:
            sent[row.round - 1][row.direction, row.kind] += row.bytes
    assert sent == [each.kinds for each in plan.rounds]
    assert record.setup_bytes == plan.setup_bytes


@pytest.mark.slow
@pytest.mark.parametrize("participation", [1.0, 0.6])
@pytest.mark.parametrize("method", sorted(CELLS))
def test_what_is_planned_is_what_is_sent(method, participation, settings, events):
    cell = CELLS[method]
    passes_on = cell.options.get("turns") == "pass"  # all clients take part, one after the other
    rounds, share = (cell.clients, 1.0) if passes_on else (min(cell.training.rounds, 3), participation)
    cell = replace(cell, training=replace(cell.training, rounds=rounds, participation=share))
    assert_sent_as_planned(cell, settings, events)
    (started,) = events.of(CellStarted)
    if method in TRAINED:
        assert sum(started.train_examples) == sum(event.examples for event in events.of(Trained))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "codec"),
    [
        ("fedavg", "topk:0.01"),
        ("fedsplitbert", "topk:0.3"),
        ("fedbfpt", "int8"),
        ("fedbert_parallel", "qsgd:7:64"),
        ("fedbert_parallel", "topk:0.3"),
        ("fedfreezebert_central", "int8"),
    ],
)
def test_what_a_codec_sends_is_planned(method, codec, settings, events):
    cell = CELLS[method]
    training = replace(cell.training, rounds=min(cell.training.rounds, 2), participation=1.0)
    assert_sent_as_planned(replace(cell, training=training, codec=codec), settings, events)


# ---- the cache of answers ----------------------------------------------------------------------------------------

FEDBFPT = of_table("fedbfpt-pretraining", "fedbfpt")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache file of a fresh process."""
    monkeypatch.setattr(cache, "_answers", {})
    monkeypatch.setattr(cache, "_file", None)
    cache.keep_in(tmp_path)
    return tmp_path / "cache" / "shapes.json"


@pytest.fixture
def underived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if anything is derived again."""
    for module, name in ((rounds, "wire_plan"), (client_costs, "client_costs")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("derived again"))


def test_answers_are_kept(path, request):
    unknown = of_table("fedfreezebert-table3", "c-psum")
    plan, costs = plan_of(FEDBFPT), derive_client(FEDBFPT)
    assert plan_of(unknown) is None
    request.getfixturevalue("underived")
    cache.keep_in(path.parents[1])  # as the next process does
    assert (plan_of(FEDBFPT), derive_client(FEDBFPT), plan_of(unknown)) == (plan, costs, None)
    assert plan is not None
    assert not plan.alike


@pytest.mark.parametrize("damage", ["[1]", '{"plan', "bytes", "entry"])
def test_a_damaged_file_is_derived_anew(path, damage):
    plan = plan_of(FEDBFPT)
    text = path.read_text().replace('"kinds"', '"kind"') if damage == "entry" else damage
    path.write_bytes(b"\xff\x00" if damage == "bytes" else text.encode())
    cache.keep_in(path.parents[1])
    assert plan_of(FEDBFPT) == plan
    cache.keep_in(path.parents[1])
    assert key_of("rounds", FEDBFPT) in cache._answers


def test_a_client_that_trains_twice_in_a_round_computes_twice_and_sends_once():
    """Ditto trains two models. FedRep's head has separate steps, which stop at the head."""
    fedit, ditto, fedper, fedrep = (
        client_costs.client_costs(of_table("fedpeft-scores", row))
        for row in ("fedit", "ditto-lora", "fedper-lora", "fedrep-lora")
    )
    assert ditto.flops == 2 * fedit.flops
    assert (ditto.up_bytes, ditto.down_bytes) == (fedit.up_bytes, fedit.down_bytes)
    assert fedper.flops < fedrep.flops < 2 * fedper.flops
    assert (fedrep.up_bytes, fedrep.down_bytes) == (fedper.up_bytes, fedper.down_bytes)
