"""What is said before of cells whose clients and server meet on every batch: bytes of every kind, and FLOPs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from benchmarks.effort import estimate_effort
from benchmarks.errors import DependsOnTextsError
from benchmarks.events import CellStarted, Event, Trained
from benchmarks.dry_run import wire_plan
from benchmarks.registry import benchmark
from benchmarks.runner import run_cell
from benchmarks.settings import Settings
from benchmarks.spec import JSON, Cell, Training

GENERAL = benchmark("fedbfpt-general")
TRAINING = Training(
    rounds=2, learning_rate=1e-3, batch_size=16, local_epochs=2, max_length=32, padding="fixed", precision="fp32",
    optimizer="kept",
)  # fmt: skip
METHODS = (
    ("fedbert_sequential", {"turns": "pass"}),
    ("fedbert_sequential", {"turns": "round", "handed_on": "optimizer"}),
    ("fedbert_parallel", {"averaged": "embeddings"}),
    ("fedbert_parallel", {"averaged": "all", "transformer": "own"}),
)


@pytest.fixture
def general() -> Cell:
    ((_, _, cell),) = GENERAL.cells(GENERAL.scale("demo"), [0])
    return replace(cell, clients=2, training=TRAINING, partition={"scheme": "equal", "share": 0.2})


@pytest.mark.parametrize(("algorithm", "options"), METHODS)
@pytest.mark.parametrize("codec", ["fp32", "fp16"])
def test_what_is_foretold_is_what_the_ledger_counts(
    general: Cell, settings: Settings, algorithm: str, options: Mapping[str, JSON], codec: str
) -> None:
    cell = replace(general, algorithm=algorithm, options=options, codec=codec)
    events: list[Event] = []
    record = run_cell(cell, settings, events.append)
    started = next(event for event in events if isinstance(event, CellStarted))
    assert sum(started.train_examples) == sum(event.examples for event in events if isinstance(event, Trained))
    plan = wire_plan(cell, examples=[client["train"] for client in record.clients])
    for number, foretold in enumerate(plan.rounds, start=1):
        counted: dict[tuple[str, str], int] = {}
        for row in record.ledger:
            if row.round == number:
                counted[row.direction, row.kind] = counted.get((row.direction, row.kind), 0) + row.bytes
        assert counted == foretold.kinds
    assert record.setup_bytes == plan.setup_bytes


def test_bytes_of_texts_of_any_length_are_not_foretold(general: Cell) -> None:
    cell = replace(general, algorithm="fedbert_sequential", options={})
    with pytest.raises(DependsOnTextsError, match="texts themselves"):
        wire_plan(cell)
    with pytest.raises(DependsOnTextsError, match="texts themselves"):
        wire_plan(replace(cell, training=replace(TRAINING, padding="longest")), examples=[5, 5])


def test_flops_are_those_of_unsplit_training(general: Cell, settings: Settings) -> None:
    split, whole = (
        estimate_effort(replace(general, algorithm=algorithm, options=options), settings)
        for algorithm, options in (METHODS[1], ("central", {"embeddings": "global"}))
    )
    assert split.training_flops == pytest.approx(whole.training_flops, rel=0.02)
