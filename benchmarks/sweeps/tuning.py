"""How a scale's settings are chosen, as data: what is tried, on which data, and the file that holds what was chosen."""

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


@dataclass(frozen=True)
class Range:
    """All numbers from low to high, both included; log: drawn evenly by the logarithm; whole: whole numbers alone."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high


Space = Mapping[str, Sequence[JSON] | Range]  # "--set" field -> its values, or the range of them


@dataclass(frozen=True)
class Search:
    """What is tried for each row and task, all with the same budget on the same data.

    trials: points of a row's grid, in a seeded order; None: all. rungs: rounds, or below 1 the share of a row's
    rounds, after which a trial is pruned that is not in the best quarter so far (asynchronous successive halving, Li et
    al. 2020); until then it ran under the schedule of a whole run. seeds: of data and training that
    no table uses; none: the table's own. changes: fields in which trials differ from the table's cells, such as fewer
    epochs. chosen: the file of the choices that definitions read, as a sweep writes it.
    """

    grids: Mapping[str, Grid] = field(default_factory=dict)  # row -> what is tuned of it
    trials: int | None = None
    rungs: tuple[float, ...] = ()
    seeds: tuple[int, ...] = ()
    changes: Values = field(default_factory=dict)
    chosen: Path | None = None
    # (task, row) -> what a user's own sweep found best (--from-sweep), which comes before what lies in `chosen`.
    swept: Mapping[tuple[str, str], Values] = field(default_factory=dict)

    def settings(self, task: str, row: str) -> Values:
        """What was chosen for a row on a task; nothing where it was not tuned yet."""
        if (task, row) in self.swept:
            return self.swept[task, row]
        if self.chosen is None or not self.chosen.exists():
            return {}
        return _choices(self.chosen, self.chosen.stat().st_mtime_ns).get((task, row), {})

    def is_open(self, task: str, row: str) -> bool:
        """Whether definitions read choices, this row is tuned, and nothing was chosen for it on a task yet."""
        return self.chosen is not None and row in self.grids and not self.settings(task, row)


KEPT = 4  # of so many trials, one is kept at a rung


@lru_cache
def _choices(path: Path, changed: int) -> Mapping[tuple[str, str], Values]:
    """changed: when the file was, as a sweep may write it while this process runs."""
    found = read_sweep(path)
    return {(entry["task"], entry["method"]): entry["best"]["values"] for entry in found if entry["best"]}


def best_values(entries: Sequence[Mapping[str, JSON]], labels: Mapping[str, str]) -> dict[tuple[str, str], Values]:
    """Of sweeps of tasks under these labels, the values of the best mean score: (task, row) -> field -> value.

    entries: as `read_sweep` gives them. labels: task -> what its scale is called there. Of several studies
    of a row on a task the better one counts, of equals that with fewer fields.
    """
    found: dict[tuple[str, str], Mapping[str, JSON]] = {}
    for entry in sorted(entries, key=lambda entry: len(entry["grid"])):
        if not entry["best"] or entry["best"]["mean"] is None or entry["scale"] != labels.get(entry["task"]):
            continue
        place = entry["task"], entry["method"]
        gain = metric(entry["score"].partition(" ")[0]).gain
        if place not in found or gain(entry["best"]["mean"], found[place]["mean"]) > 0:
            found[place] = entry["best"]
    return {place: best["values"] for place, best in found.items()}


def _entry(found: Mapping[str, JSON]) -> dict[str, JSON]:
    """A study as a sweep's file holds it, with everything in it that is read; ValueError where it cannot be one."""
    absent: dict[str, JSON] = {"scale": "", "score": "", "grid": {}, "best": None}
    entry = {**found, **{name: value for name, value in absent.items() if name not in found}}  # in the file's order
    for name in ("task", "method", "scale", "score"):
        if not isinstance(entry.get(name), str) or (name in ("task", "method") and not entry[name]):
            raise ValueError(f"{name}: expected a text, found {entry.get(name)!r:.40}")
    if not isinstance(entry["grid"], dict):
        raise ValueError("grid: expected values of fields")
    if entry["best"] is None:
        return entry
    best = entry["best"] = {**entry["best"], "mean": entry["best"].get("mean")}
    if not isinstance(best.get("values"), dict) or not isinstance(best["mean"], int | float | None):
        raise ValueError("best: expected values and their mean score")
    if best["mean"] is not None:
        metric(entry["score"].partition(" ")[0])
    return entry


def read_sweep(path: Path) -> list[dict[str, JSON]]:
    """What a sweep's file holds of each task and method; UserError where it is damaged, nothing where there is none."""
    if not os.path.lexists(path):
        return []
    try:
        found = read_json(path)["tunings"]
        return [_entry(entry) for entry in found]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: expected the results of a sweep, found a damaged file ({type(error).__name__}: {error}). "
            f"Move it away: finished cells are kept as records, and a sweep finds them there."
        ) from None
