"""Estimates cells' run times from records of similar cells, and reads single fields of records quickly."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig, canonical_json
from fedsim.files import read_text

T = TypeVar("T")
Taken = tuple[RunConfig, float]  # a cell, and its training time in seconds


class Timings:
    """Seconds of cells in one process. finished: spec_ids of cells that need no more time."""

    def __init__(self, taken: Iterable[Taken] = (), finished: Collection[str] = ()) -> None:
        self.finished = finished
        self._seconds: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
        for cell, seconds in taken:
            for key in _similarity(cell):
                self._seconds[key].append(seconds)

    def seconds(self, cell: RunConfig) -> float | None:
        """The mean over similar cells; None without a record of the method on this task and encoder."""
        times = next((self._seconds[key] for key in _similarity(cell) if key in self._seconds), None)
        return sum(times) / len(times) if times else None

    def work(self, cells: Iterable[RunConfig]) -> dict[str, float]:
        """spec_id -> a cell's work, to compare cells: its seconds, estimated from records of similar cells.

        Other cells count their passes over the data, at the pace of cells with records. A method that trains nothing
        counts little.
        """
        unique = {cell.spec_id: cell for cell in cells}
        passes = {spec_id: _passes(cell) for spec_id, cell in unique.items()}
        estimates = {spec_id: seconds for spec_id, cell in unique.items() if (seconds := self.seconds(cell))}
        pace = sum(estimates.values()) / sum(passes[spec_id] for spec_id in estimates) if estimates else 1.0
        return {spec_id: pace * count for spec_id, count in passes.items()} | estimates


def _passes(cell: RunConfig) -> float:
    """Training passes over the clients' data; 0.01 for a method that trains nothing."""
    from fedsim.algorithms import trains  # loads torch

    budget = cell.training
    return budget.last_round * budget.local_epochs * budget.participation if trains(cell.algorithm) else 0.01


def taken(records: Iterable[RunResult]) -> Iterator[Taken]:
    """The times in records."""
    for record in records:
        if "train_seconds" in record.timing:
            yield record.cell, record.timing["train_seconds"]


def taken_in(folders: Iterable[Path]) -> Iterator[Taken]:
    """The times in folders of records, read quickly."""

    def read(text: str) -> Taken:
        value = json.loads(text)
        return RunConfig.from_json(value["cell"]), float(value["timing"]["train_seconds"])

    return glimpses(folders, read)


def glimpses(folders: Iterable[Path], read: Callable[[str], T]) -> Iterator[T]:
    """Apply `read` to the text of each record in folders, and skip files that it cannot read.

    A record in several folders counts once.
    """
    for path in {path.name: path for folder in folders for path in folder.glob("*.json")}.values():
        try:
            yield read(read_text(path, "a record"))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue


def _similarity(cell: RunConfig) -> list[tuple[str, ...]]:
    """Keys of cells with similar run times: first all settings but the seed, then task, method and encoder."""
    method = cell.scale, cell.task, cell.algorithm, cell.backbone
    return [(*method, canonical_json(cell.options), cell.head, str(cell.training.rounds)), method]
