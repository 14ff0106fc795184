"""How a scale's settings are chosen, as data: what is tried, on which data, and the file with the choices."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.measures import metric
from benchmarks.run_config import JSON
from fedsim.files import read_json

Grid = Mapping[str, Sequence[JSON]]  # "--set" field -> values
Values = Mapping[str, JSON]  # "--set" field -> one of them
KEPT = 4  # of so many trials, one is kept at a rung


@dataclass(frozen=True)
class Search:
    """What is tried for each row and task, all with the same budget on the same data.

    trials: points of a row's grid, in a seeded order; None: all. rungs: rounds, or below 1 the share of a row's
    rounds, after which a trial is pruned that is not in the best quarter so far (asynchronous successive halving, Li et
    al. 2020); until then it ran under the schedule of a whole run. seeds: of data and training that no table uses;
    empty: the table's own. changes: fields in which trials differ from the table's cells, such as fewer epochs.
    chosen: the file of the choices that definitions read, as a sweep writes it. swept: (task, row) -> the best of a
    user's sweep (--from-sweep), which comes before `chosen`.
    """

    grids: Mapping[str, Grid] = field(default_factory=dict)  # row -> its tuned fields
    trials: int | None = None
    rungs: tuple[float, ...] = ()
    seeds: tuple[int, ...] = ()
    changes: Values = field(default_factory=dict)
    chosen: Path | None = None
    swept: Mapping[tuple[str, str], Values] = field(default_factory=dict)

    def settings(self, task: str, row: str) -> Values:
        """The settings that were chosen for a row on a task; empty if it was not tuned yet."""
        if (task, row) in self.swept:
            return self.swept[task, row]
        if self.chosen is None or not self.chosen.exists():
            return {}
        return _choices(self.chosen, self.chosen.stat().st_mtime_ns).get((task, row), {})

    def is_open(self, task: str, row: str) -> bool:
        """Whether definitions read choices, this row is tuned, and nothing was chosen for it on a task yet."""
        return self.chosen is not None and row in self.grids and not self.settings(task, row)


@lru_cache
def _choices(path: Path, changed: int) -> Mapping[tuple[str, str], Values]:
    """changed: the time of the file's last change, as a sweep may write it while this process runs."""
    return {(entry["task"], entry["method"]): entry["best"]["values"] for entry in read_sweep(path) if entry["best"]}


def best_values(entries: Sequence[Mapping[str, JSON]], labels: Mapping[str, str]) -> dict[tuple[str, str], Values]:
    """The values with the best mean score: (task, row) -> field -> value.

    Args:
        entries: Studies, as `read_sweep` gives them. If a row has several studies on a task, the better one counts, of
            equals the one with fewer fields.
        labels: task -> the label of its scale; studies under other labels do not count.
    """
    best: dict[tuple[str, str], Mapping[str, JSON]] = {}
    for entry in sorted(entries, key=lambda entry: len(entry["grid"])):
        trial, place = entry["best"] or {}, (entry["task"], entry["method"])
        if trial.get("mean") is None or entry["scale"] != labels.get(entry["task"]):
            continue
        gain = metric(entry["score"].partition(" ")[0]).gain
        if place not in best or gain(trial["mean"], best[place]["mean"]) > 0:
            best[place] = trial
    return {place: trial["values"] for place, trial in best.items()}


def read_sweep(path: Path) -> list[dict[str, JSON]]:
    """The studies of a sweep's file; empty if there is no file; UserError if it is damaged."""
    if not os.path.lexists(path):
        return []
    try:
        entries = [{"scale": "", "score": "", "grid": {}, "best": None} | entry for entry in read_json(path)["tunings"]]
        for entry in entries:  # read all of it once, so that a damaged study fails here
            best_values([entry, entry], {entry["task"]: entry["scale"]})
            dict(entry["best"]["values"] if entry["best"] else {}, **entry["grid"])
        return entries
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: expected the results of a sweep, found a damaged file ({type(error).__name__}: {error}). "
            f"Move it away: finished cells are kept as records, and a sweep finds them there."
        ) from None
