"""Cells with chosen numbers, their events, and one database for all tests of the mirror."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from benchmarks.events import CellFinished, CellStarted, RoundFinished, Trained
from benchmarks.record import LedgerEntry, RoundRecord, RunRecord
from benchmarks.spec import Cell, Training
from benchmarks.tracking import Mirror, default_tracking_uri, prepare

EXPERIMENT = "paper"
OWN_TAGS = ("mlflow.parentRunId", "mlflow.note.content", "table")  # of a child, which differ between tables
CELL = Cell(
    scale="lite",
    task="mrpc",
    task_version=1,
    source="glue",
    backbone="minilm",
    clients=2,
    partition={"scheme": "label-table", "shares": [[0.9, 0.1], [0.5, 0.5]], "size": None},
    algorithm="fedsplitbert",
    options={"critical_layer": 3, "server": {"name": "adam", "tau": 0.001}},
    training=Training(rounds=3, learning_rate=5e-5, batch_size=16),
    seed=0,
    codec="fp16",
)


def _round(number: int, clients: int) -> RoundRecord:
    """Scores 0.1, 0.2, … by round; a client's are a thousandth higher with its number; Pearson's r is undefined."""
    value = number / 10
    return RoundRecord(
        round=number,
        cohort=tuple(range(clients)),
        train_loss=1 / number,
        client_losses=(1 / number,) * clients,
        scores={"test": {"f1": value, "pearson": None}},
        client_scores=tuple({"test": {"f1": value + client / 1000, "pearson": None}} for client in range(clients)),
        up_bytes=100 * number,
        down_bytes=10,
    )


def _ledger(rounds: int) -> tuple[LedgerEntry, ...]:
    """What makes the bytes of the set-up and of so many rounds."""
    sent = [
        (number, direction, size)
        for number in range(1, rounds + 1)
        for direction, size in (("up", 100 * number), ("down", 10))
    ]
    return tuple(
        LedgerEntry(number, 0, direction, "parameters", size // 4, size)
        for number, direction, size in [(0, "down", 7000), *sent]
    )


def _record(**changes: Any) -> RunRecord:
    cell = dataclasses.replace(CELL, **changes)
    inputs = {
        "data": {"digest": "0123456789abcdef" * 4, "origin": "GLUE download, folder MRPC", "examples": 20},
        "backbone": {"digest": "b" * 64, "origin": {"from": "folder"}},
    }
    return RunRecord(
        cell=cell,
        cell_id=cell.cell_id({name: str(entry["digest"]) for name, entry in inputs.items()}),
        inputs=inputs,
        partition={},
        clients=tuple({"client": client, "train": 8, "test": 2} for client in range(cell.clients)),
        rounds=tuple(_round(number, cell.clients) for number in range(1, cell.training.rounds + 1)),
        sampling_errors={"test": {"f1": 0.02, "pearson": None}},
        setup_bytes=7000,
        ledger=_ledger(cell.training.rounds),
        environment={"torch": "2"},
        timing={"setup_seconds": 1.5, "train_seconds": 4.0, "peak_memory_bytes": 1e9},
        finished="2025-03-01T12:00:00+00:00",
    )


def _play(mirror: Mirror, record: RunRecord, *, finished: int = 0, stopped_after: int | None = None) -> None:
    mirror(CellStarted(record.cell, record.cell_id, record.rounds[:finished], (16,) * len(record.rounds)))
    for entry in record.rounds[finished:stopped_after]:
        mirror(Trained(record.cell_id, 16))
        mirror(RoundFinished(record.cell_id, entry))
    if stopped_after is None:
        mirror(CellFinished(record))


@pytest.fixture(scope="session")
def record_of() -> Callable[..., RunRecord]:
    """The record of a finished cell; arguments are fields of the cell."""
    return _record


@pytest.fixture(scope="session")
def play() -> Callable[..., None]:
    """A cell's events: `finished` rounds are there already, and a kill comes after round `stopped_after`."""
    return _play


class Store:
    """A database, and what a test wants to know of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uri = default_tracking_uri(folder)
        self.experiment_id = prepare(self.uri, folder, EXPERIMENT)
        self.client = MlflowClient(self.uri)

    def parents(self, group: str) -> list[Run]:
        return list(self.client.search_runs([self.experiment_id], f"tags.group = '{group}'"))

    def children(self, group: str) -> list[Run]:
        parents = [run.info.run_id for run in self.parents(group)]
        runs = self.client.search_runs([self.experiment_id])
        return [run for run in runs if run.data.tags.get("mlflow.parentRunId") in parents]

    def child(self, group: str) -> Run:
        (run,) = self.children(group)
        return run

    def points(self, run: Run) -> dict[str, list[tuple[int, float]]]:
        """Every value ever logged, so that one logged twice is seen twice."""
        histories = {name: self.client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
        return {name: sorted((metric.step, metric.value) for metric in found) for name, found in histories.items()}

    def view(self, group: str) -> dict[str, Any]:
        """All that is shown of a group's cells, apart from times and MLflow's own ids."""
        return {
            run.data.tags["cell_id"]: {
                "name": run.info.run_name,
                "status": run.info.status,
                "params": run.data.params,
                "tags": {name: text for name, text in run.data.tags.items() if name not in OWN_TAGS},
                "points": self.points(run),
                "data": [entry.to_dictionary() for entry in run.inputs.dataset_inputs],
                "artifacts": [entry.path for entry in self.client.list_artifacts(run.info.run_id)],
            }
            for run in self.children(group)
        }


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("results with spaces, 100% ?"))


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """A table of the test's own."""
    return f"{request.node.name} @ lite"


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    """What mirrors said; a test clears what it expected."""
    said: list[str] = []
    yield said
    assert said == []


@pytest.fixture
def open_mirror(store: Store, group: str, warnings: list[str]) -> Callable[..., Mirror]:
    def build(*, uri: str = store.uri, name: str = group, **options: Any) -> Mirror:
        given = {"group_tags": {}, "experiment": EXPERIMENT, "warn": warnings.append, **options}
        return Mirror(uri, store.folder, name, **given)

    return build
