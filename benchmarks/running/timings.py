"""How long cells take: the mean of the records of cells like them, wherever those ran."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig, canonical_json
from benchmarks.running.glimpses import glimpses

Taken = tuple[RunConfig, float]  # seconds of training


class Timings:
    """Seconds of cells, of one process. finished: the spec_ids of those that need no more."""

    def __init__(self, taken: Iterable[Taken] = (), finished: Collection[str] = ()) -> None:
        self.finished = finished
        self._seconds: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
        for cell, seconds in taken:
            for key in _alike(cell):
                self._seconds[key].append(seconds)

    def seconds(self, cell: RunConfig) -> float | None:
        """Of a cell as a whole; None where no record is of its method on its task and encoder."""
        known = next((self._seconds[key] for key in _alike(cell) if key in self._seconds), None)
        return sum(known) / len(known) if known else None


def taken(records: Iterable[RunResult]) -> Iterator[Taken]:
    """What records tell."""
    for record in records:
        if "train_seconds" in record.timing:
            yield record.cell, record.timing["train_seconds"]


def taken_in(folders: Iterable[Path]) -> Iterator[Taken]:
    """What records in folders tell, quickly: an estimate alone hangs on it."""
    return glimpses(folders, _taken)


def _taken(text: str) -> Taken:
    value = json.loads(text)
    return RunConfig.from_json(value["cell"]), float(value["timing"]["train_seconds"])


def _alike(cell: RunConfig) -> list[tuple[str, ...]]:
    """What cells share that take about as long: best all settings but the seed, else task, method and encoder."""
    method = cell.scale, cell.task, cell.algorithm, cell.backbone
    return [(*method, canonical_json(cell.options), cell.head, str(cell.training.rounds)), method]
