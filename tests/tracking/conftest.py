"""Runs with given numbers, their events, and one database for all tests of the mirror."""

import dataclasses
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import Experiment, Run

from benchmarks.results import LedgerEntry, RoundRecord, RunResult
from benchmarks.running.events import CellFinished, CellStarted, RoundFinished
from benchmarks.tracking.mirror import Mirror
from benchmarks.tracking.store import connect, default_tracking_uri
from benchmarks.tracking.table import Table, TableCell
from tests.benchmarks.conftest import DEMO

CELL = dataclasses.replace(
    DEMO,
    clients=2,
    partition={"scheme": "label-table", "shares": [[0.9, 0.1], [0.5, 0.5]], "size": None},
    algorithm="fedsplitbert",
    options={"critical_layer": 3, "server": {"name": "adam", "tau": 0.001}},
    codec="fp16",
)


def record_of(score: float = 0.2, begins_from: RunResult | None = None, **changes: Any) -> RunResult:
    """A finished run of two rounds, 100 and 200 bytes up, 10 down each; score: F1 after the last round."""
    cell = dataclasses.replace(CELL, initial=begins_from and begins_from.cell, **changes)
    inputs: dict[str, Any] = {"data": {"digest": "0123456789abcdef" * 4}, "backbone": {"digest": "b" * 64}}
    if begins_from is not None:
        inputs["initial"] = {"digest": "c" * 64, "cell_id": begins_from.cell_id}
    rounds = tuple(
        RoundRecord(
            round=number,
            cohort=(0, 1),
            train_loss=1 / number,
            client_losses=(1 / number,) * 2,
            scores={"test": {"f1": value, "pearson": None}},
            client_scores=tuple({"test": {"f1": value + client / 8, "pearson": None}} for client in range(2)),
            up_bytes=100 * number,
            down_bytes=10,
        )
        for number, value in ((1, 0.1), (2, score))
    )
    return RunResult(
        cell=cell,
        cell_id=cell.cell_id({name: entry.get("cell_id", entry["digest"]) for name, entry in inputs.items()}),
        inputs=inputs,
        partition={},
        clients=tuple({"client": client, "train": 8, "test": 2} for client in range(2)),
        rounds=rounds,
        sampling_errors={"test": {"f1": 0.02, "pearson": None}},
        setup_bytes=7000,
        ledger=(
            LedgerEntry(0, 0, "down", "parameters", 1750, 7000),
            *(LedgerEntry(n, 0, "up", "parameters", 25 * n, 100 * n) for n in (1, 2)),
            *(LedgerEntry(n, 0, "down", "parameters", 5, 10) for n in (1, 2)),
        ),
        environment={"torch": "2", "revision": "a" * 40, "modified": False},
        timing={"setup_seconds": 1.5, "train_seconds": 4.0, "peak_memory_bytes": 1e9},
        finished="2025-03-01T12:00:00+00:00",
    )


def play(mirror: Mirror, record: RunResult, finished: int = 0, stopped_after: int | None = None) -> None:
    """Send a run's events: it resumes after `finished` rounds, and is killed after round `stopped_after`."""
    mirror(CellStarted(record.cell, record.cell_id, record.rounds[:finished], (16, 16)))
    for entry in record.rounds[finished:stopped_after]:
        mirror(RoundFinished(record.cell_id, entry))
    if stopped_after is None:
        mirror(CellFinished(record))


class Store:
    """An experiment of a test in the database of all tests; warnings: of its mirrors."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.uri = default_tracking_uri(folder)
        self.client = connect(self.uri)
        self.warnings: list[str] = []

    def mirror(self, *records: RunResult, uri: str = "", **fields: Any) -> closing[Mirror]:
        """A mirror of a table of one task that shows records, each in a row of its algorithm's name."""
        names = {record.cell.definition_id: record.cell.algorithm for record in records}
        cells = {
            key: TableCell((name,), name.upper(), "test/f1", 76.65, name == "central", "python -m benchmarks run")
            for key, name in names.items()
        }
        given = {"id": "t", "name": "t @ lite", "scores": {"mrpc": "test/f1"}, "places": 2, "cells": cells, **fields}
        return closing(Mirror(uri or self.uri, self.folder, self.name, Table(**given), self.warnings.append))

    def sync(self, *records: RunResult, **fields: Any) -> None:
        """Import records into MLflow."""
        with self.mirror(*records, **fields) as mirror:
            mirror.sync(records)

    @property
    def experiment(self) -> Experiment:
        return self.client.get_experiment_by_name(self.name)

    def search(self, condition: str = "", *order: str) -> list[Run]:
        return list(self.client.search_runs([self.experiment.experiment_id], condition, order_by=list(order)))

    def runs(self) -> list[Run]:
        return self.search("tags.`_kind` = 'run'")

    def status(self) -> str:
        (run,) = self.search("tags.`_kind` = 'table' and tags.`_table` = 't'")
        return str(run.info.status)

    def points(self, run: Run) -> dict[str, list[tuple[int, float]]]:
        """All logged values, including duplicates."""
        histories = {name: self.client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
        return {name: sorted((entry.step, entry.value) for entry in entries) for name, entries in histories.items()}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results with spaces, 100% ?")


@pytest.fixture
def store(folder: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    """Every warning must be expected: a test clears those that it checked."""
    store = Store(folder, request.node.name)
    yield store
    assert store.warnings == []
