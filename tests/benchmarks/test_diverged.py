"""Divergence is a result: the record says so, and no run starts from it."""

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.executors import run_cells
from benchmarks.registry import benchmark, rows_of, scale_of
from benchmarks.results import read_result, read_results
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellFailed, CellFinished, RoundFinished
from benchmarks.running.runner import run_cell, run_stage
from fedsim.errors import DivergedError
from fedsim.training import LocalTraining
from tests.benchmarks.conftest import cells_of, outcome, run_arguments

SHORT = ("training.local_epochs=1", "training.max_length=16", "training.batch_size=64")
REASON = "training diverged, as this test wants"


def test_a_cell_stops_with_a_record_of_the_rounds_before_and_is_not_computed_again(settings, events, monkeypatch):
    """A round's last client diverges, after the others have sent their updates."""

    def run(self: LocalTraining, model: Any, subset: Any, names: Any, round: int, client: int, *more: Any) -> float:
        if (round, client) == (2, 2):
            raise DivergedError(REASON)
        return train(self, model, subset, names, round, client, *more)

    train = LocalTraining.run
    monkeypatch.setattr(LocalTraining, "run", run)
    (cell,) = cells_of(("fedavg",), *SHORT, "training.rounds=3")
    record = run_cell(cell, settings, events)
    assert record.diverged == {"round": 2, "reason": REASON}
    assert record.divergence == "diverged in round 2"
    assert [entry.round for entry in record.rounds] == [1]
    assert record.score("test/f1") is record.score("test/f1", "chosen") is None
    assert record.by_round("test/f1") == (record.rounds[0].scores["test"]["f1"],)
    assert {row.round for row in record.ledger} == {0, 1}  # two clients of the second round had sent theirs
    assert (record.sampling_errors, record.predictions) == ({}, {})
    assert outcome(read_result(settings.records_dir / record.file_name)) == outcome(record)
    assert [path.suffix for path in settings.records_dir.iterdir()] == [".json"]  # no predictions
    assert len(events.of(RoundFinished)) == 1
    assert not settings.checkpoint_dir(record.cell_id).exists()
    events.clear()
    assert run_cells([cell], settings, events, keeps_weights=True) == 0  # a result, no failure
    assert [(type(event), event.reused) for event in events] == [(CellFinished, True)]


def chain() -> tuple[RunConfig, RunConfig]:
    """Masked language modelling, and a classifier that starts from it."""
    first, then = benchmark("fedbfpt-general"), benchmark("fedfreezebert-table3")
    ((_, _, before),) = first.cells(scale_of(first, "demo"), [0])
    ((_, _, cell),) = then.cells(scale_of(then, "demo"), [0], rows_of(then, ["fedavg-average"]))
    before = replace(before, training=replace(before.training, rounds=1, batch_size=64, learning_rate=1e30))
    return before, replace(cell, training=replace(cell.training, rounds=1, batch_size=64), initial=before)


def test_a_diverged_run_stops_those_that_start_from_it(settings, events):
    before, cell = chain()
    assert run_cells([cell, replace(cell, seed=1)], settings, events) == 2
    (finished,) = events.of(CellFinished)
    assert finished.record.diverged["round"] == 1
    assert finished.record.rounds == finished.record.by_round("test/perplexity") == ()
    (reason,) = {failed.message for failed in events.of(CellFailed)}
    assert reason.startswith(f"its parent run {before.label} diverged in round 1: training diverged")
    assert len(list(read_results(settings.records_dir))) == 1
    assert not (settings.results_dir / "weights").exists()
    with pytest.raises(UserError, match="diverged in round 1"):
        run_stage(before, settings, lambda _: None)


def test_the_command_line_shows_it(tmp_path, capsys):
    arguments = run_arguments(tmp_path, "fedavg", *SHORT, "training.rounds=2", "training.learning_rate=1e30")
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "FedAvg · seed 0: diverged in round 1: training diverged in round 1 on client 0" in shown.err
    assert "Diverged: FedAvg on MRPC diverged in round 1" in shown.out
