"""A run's record, the bytes in it, and that no start, worker or neighbour changes the outcome."""

import subprocess
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from benchmarks.executors import run_cells
from benchmarks.results import RunResult, read_result, write_result
from benchmarks.running.events import CellFinished, CellStarted
from benchmarks.running.process import PACKAGES
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell
from benchmarks.tasks import task
from tests.benchmarks.conftest import cells_of

ROOT = Path(__file__).resolve().parents[2]
METHODS = ("local-majority", "fedavg", "fedadam", "fedsplitbert-qat")
SHORT = ("training.rounds=2", "training.local_epochs=1")


@pytest.fixture(scope="module")
def module_settings(tmp_path_factory: pytest.TempPathFactory) -> RunOptions:
    return RunOptions(results_dir=tmp_path_factory.mktemp("runner"), device="cpu")


@pytest.fixture(scope="module")
def finished(module_settings: RunOptions) -> dict[str, RunResult]:
    """Method -> its record on MRPC after two rounds, computed one by one in this process."""
    cells = cells_of(METHODS, *SHORT)
    records = [run_cell(cell, module_settings, lambda _: None) for cell in cells]
    return dict(zip(METHODS, records, strict=True))


def test_a_record_says_what_was_computed_on_what(finished):
    record = finished["fedsplitbert-qat"]
    environment = record.environment
    assert environment["versions"] == {name: metadata.version(name) for name in PACKAGES}
    assert environment["threads"] == 1
    if (ROOT / ".git").exists():
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
        assert environment["revision"] == head.stdout.strip()
        assert isinstance(environment["modified"], bool)
    assert record.inputs["data"]["digest"] == task("mrpc").generate(0).digest
    assert record.inputs["backbone"]["config"]["num_hidden_layers"] == 4
    assert record.timing["train_seconds"] > 0
    assert record.timing["peak_memory_bytes"] > 2**20


def test_a_record_holds_every_round(finished):
    for method, record in finished.items():
        assert [entry.round for entry in record.rounds] == [1, 2]
        for entry in record.rounds:
            assert entry.cohort == (0, 1, 2)
            for metric in ("f1", "accuracy"):
                own = [scores["test"][metric] for scores in entry.client_scores]
                assert entry.scores["test"][metric] == pytest.approx(np.mean(own))
            if method == "local-majority":
                assert (entry.train_loss, entry.client_losses) == (None, ())
            else:
                sizes = [client["train"] for client in record.clients]
                assert entry.train_loss == pytest.approx(np.average(entry.client_losses, weights=sizes))
        assert set(record.sampling_errors["test"]) == {"f1", "accuracy"}


def test_a_finished_cell_is_found_and_not_touched(finished, module_settings, events):
    record = finished["fedavg"]
    path = module_settings.records_dir / record.file_name
    before = path.stat().st_ino, path.stat().st_mtime_ns
    assert run_cell(record.cell, module_settings, events).to_json() == record.to_json()
    assert [(type(event), event.reused) for event in events] == [(CellFinished, True)]
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == before


@pytest.mark.slow
def test_one_worker_and_two_give_the_same_records(finished, settings, events):
    cells = cells_of(METHODS, *SHORT)
    shared = cells[1]
    twice = [shared, *cells]
    assert run_cells(twice, RunOptions(results_dir=settings.results_dir, device="cpu", workers=2), events) == 0
    ends = events.of(CellFinished)
    assert {end.record.cell_id: end.record.outcome for end in ends} == {
        record.cell_id: record.outcome for record in finished.values()
    }
    assert [end.reused for end in ends if end.record.cell.spec_id == shared.spec_id] == [False]
    assert [event.cell for event in events.of(CellStarted)].count(shared) == 1
    for record in finished.values():
        assert read_result(settings.records_dir / record.file_name).outcome == record.outcome
    assert len(list(settings.records_dir.glob("*.json"))) == len(METHODS)
    assert len(list(settings.records_dir.iterdir())) == 2 * len(METHODS)  # each with what it answered


def test_other_data_of_the_same_cell_are_computed_again_with_a_remark(finished, settings, events):
    record = finished["local-majority"]
    inputs = {**record.inputs, "data": {**record.inputs["data"], "digest": "0" * 64}}
    digests = {name: entry["digest"] for name, entry in inputs.items()}
    other = replace(record, inputs=inputs, cell_id=record.cell.cell_id(digests))
    write_result(settings.records_dir, other)
    assert run_cell(record.cell, settings, events).cell_id == record.cell_id
    (started,) = events.of(CellStarted)
    assert started.note == f"the data or the encoder are not those of {other.file_name}: the cell is computed again"
