"""Dry runs: planned bytes are sent, planned memory is what an allocator hands out; the cache of answers."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.dry_run import cache, client_costs, rounds
from benchmarks.dry_run.cache import key_of
from benchmarks.dry_run.memory import RESERVED, Memory, fit
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.dry_run.shapes import derive_client, plan_of
from benchmarks.errors import UserError
from benchmarks.performance.memory import first_rounds
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.results import RunResult, read_result
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellStarted, Trained
from benchmarks.running.runner import run_cell
from fedsim.adapter_config import FIELDS, AdapterConfig
from fedsim.algorithms import algorithm_names
from fedsim.models.model import PACKED
from fedsim.precision import Precision
from tests.benchmarks.conftest import DEMO
from tests.fedsim.test_lora import METHODS as LORA_METHODS


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


def assert_sent_as_planned(cell: RunConfig, settings: Any, events: Any) -> RunResult:
    record = run_cell(cell, settings, events)
    plan = wire_plan(cell, examples=[client["train"] for client in record.clients])
    sent: list[Counter[tuple[str, str]]] = [Counter() for _ in plan.rounds]
    for row in record.ledger:
        if row.round:
            sent[row.round - 1][row.direction, row.kind] += row.bytes
    assert sent == [each.kinds for each in plan.rounds]
    assert record.setup_bytes == plan.setup_bytes
    return record


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


# ---- adapters ----------------------------------------------------------------------------------------------------

SHORT = replace(DEMO, training=replace(DEMO.training, rounds=2))
LORA = replace(SHORT, adapter=AdapterConfig("lora", r=4))
ADAPTED = [
    *(replace(LORA, algorithm=name, options=options) for name, options, *_ in LORA_METHODS.values()),
    *(replace(LORA, algorithm=name) for name in ("fedper", "central")),
    replace(LORA, algorithm="hetlora", options={"ranks": [1, 2, 4]}),
    *(replace(LORA, adapter=AdapterConfig(kind)) for kind in FIELDS),
]


@pytest.mark.parametrize("cell", ADAPTED, ids=lambda cell: f"{cell.algorithm}-{cell.adapter.kind}")
def test_what_is_planned_with_an_adapter_is_what_is_sent(cell, settings, events):
    record = assert_sent_as_planned(cell, settings, events)
    assert record.environment["kernels"] == ("packed" if cell.adapter.kind in PACKED else "reference")
    assert read_result(settings.records_dir / record.file_name).cell.adapter == cell.adapter


def test_a_run_with_an_adapter_starts_from_weights_without_one(settings):
    record = run_cell(replace(LORA, initial=SHORT), settings, lambda _: None)
    fresh = run_cell(LORA, settings, lambda _: None)
    assert record.rounds[0].train_loss < fresh.rounds[0].train_loss


def test_the_adapter_decides_the_shapes():
    other = replace(LORA, adapter=AdapterConfig("lora", r=8))
    assert len({key_of("plan", cell) for cell in (SHORT, LORA, other)}) == 3


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


# ---- memory ------------------------------------------------------------------------------------------------------


def cell_in_parts(table: str, row: str, clients: int, batch: int, scale: str = "demo") -> RunConfig:
    bench = benchmark(table)
    cell = bench.cell(bench.row(row), bench.columns[0], bench.scale(scale), 0)
    config = replace(cell.training, batch_size=batch, rounds=clients, local_epochs=1, padding="fixed", precision="fp32")
    # Moments that are kept between rounds are in the memory of the CPU, which is the device here.
    return replace(cell, clients=clients, training=replace(config, kernels="reference", optimizer="fresh"))


@pytest.mark.parametrize(
    ("table", "row", "clients", "batch", "texts"),
    [
        ("fedsplitbert-table3", "fedavg", 2, 32, 32),  # texts with a label
        ("fedbert-pretraining", "fedavg", 2, 32, 8),  # masked tokens, in parts
        ("fedbert-table8", "emdavg", 3, 24, 24),  # next words, split, clients that meet at one transformer
        ("fedbert-pretraining", "heavg-own", 3, 32, 8),  # a transformer for each client, in parts
        ("fedsplitbert-table3", "fedsplitbert", 2, 32, 16),  # lower layers exchanged, the others kept
    ],
)
def test_estimates_are_what_the_allocator_hands_out(table, row, clients, batch, texts):
    cell = cell_in_parts(table, row, clients, batch)
    estimate = Memory(cell, "cpu").of(texts)
    peak, _ = first_rounds(cell, texts, Precision(torch.device("cpu"), "fp32"))
    assert estimate.client + estimate.server == pytest.approx(peak, rel=0.25)


def test_parts_fit_and_are_even():
    cell = cell_in_parts("fedbert-pretraining", "fedavg", 1, 32)
    needed = Memory(cell)
    room = needed.of(11).training
    fitted = fit(cell, round(room / (1 - RESERVED)) + 9)
    assert (fitted.part, fitted.held, fitted.whole) == (11, needed.of(11), needed.of(32))
    assert fit(cell, 10 * 2**30).part == 32
    with pytest.raises(UserError, match=r"expected a GPU with 0\.0 GiB for one text at a time, found 0\.0 GiB"):
        fit(cell, needed.of(1).training)


def test_checkpoints_save_activations_and_what_does_not_fit_says_so():
    cell = cell_in_parts("fedbert-pretraining", "fedavg", 1, 32)
    plain, checkpointed = Memory(cell).of(32), Memory(cell, checkpoints=True).of(32)
    assert checkpointed.training < 0.8 * plain.training
    room = round(plain.training / (1 - RESERVED)) - 9
    assert fit(cell, room).part < 32 == fit(cell, room, checkpoints=True).part


def test_scored_batches_are_cut_where_they_do_not_fit():
    cell = cell_in_parts("fedbert-table8", "central", 1, 2)
    held = Memory(cell).of(2)
    room = held.scoring_of(40)
    assert room > held.training  # a vocabulary's logits for 64 texts need more than training on two
    fitted = fit(cell, round(room / (1 - RESERVED)) + 9)
    assert (fitted.part, fitted.scored, fitted.total) == (2, 40, room)


@pytest.mark.parametrize(("codec", "copies"), [("fp32", 0), ("int8", 1), ("topk:0.1", 2)])
def test_what_a_codec_remembers_of_each_client_is_on_the_host(codec, copies):
    """What a client received, and what its last upload dropped."""
    cell = replace(cell_in_parts("fedpeft-bytes", "fedit", 3, 4), codec=codec)
    sent = rounds.wire_plan(replace(cell, codec="fp32")).rounds[0].down_bytes
    assert Memory(cell).of(4).host == copies * sent
