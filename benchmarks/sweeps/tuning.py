"""The choice of a scale's settings as data: the search space, its data, and the file with the choices."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.measures import metric
from benchmarks.run_config import JSON
from fedsim.files import read_json, write_bytes

Grid = Mapping[str, Sequence[JSON]]  # "--set" field -> values
Values = Mapping[str, JSON]  # "--set" field -> one of them
KEPT = 4  # one in this many trials survives a rung


@dataclass(frozen=True)
class Search:
    """The search for each row and task, with equal budgets and data.

    Args:
        trials: The most points of a row's grid, in a seeded order; None for all.
        rungs: Rounds, or below 1 shares of a row's rounds. After each, a trial outside the best quarter so far is
            pruned (asynchronous successive halving, Li et al. 2020). Learning-rate schedules are those of whole runs.
        seeds: For data and training, unused by tables; empty for the table's.
        last_rounds: A trial's score is the mean of this many last rounds; 0: the best round's on validation texts.
        changes: Fields in which trials differ from the table's cells, such as fewer epochs.
        chosen: The file with the choices for definitions, written by a sweep.
        swept: (Task, row) -> the best of a user's sweep (--from-sweep), with priority over `chosen`.
    """

    grids: Mapping[str, Grid] = field(default_factory=dict)  # row -> its tuned fields
    trials: int | None = None
    rungs: tuple[float, ...] = ()
    seeds: tuple[int, ...] = ()
    last_rounds: int = 0
    changes: Values = field(default_factory=dict)
    chosen: Path | None = None
    swept: Mapping[tuple[str, str], Values] = field(default_factory=dict)

    def settings(self, task: str, row: str) -> Values:
        """The chosen settings for a row on a task; empty if it is not tuned yet."""
        if (task, row) in self.swept:
            return self.swept[task, row]
        with suppress(FileNotFoundError):
            if self.chosen is not None:
                return _choices(self.chosen, self.chosen.stat().st_mtime_ns).get((task, row), {})
        return {}

    def is_open(self, task: str, row: str) -> bool:
        """Whether a row must be tuned for a task, for definitions that read choices, and has no choice yet."""
        return self.chosen is not None and row in self.grids and not self.settings(task, row)


@lru_cache
def _choices(path: Path, changed: int) -> Mapping[tuple[str, str], Values]:
    """changed: the file's modification time, as a sweep may write it while this process runs."""
    return {(entry["task"], entry["method"]): entry["best"]["values"] for entry in read_sweep(path) if entry["best"]}


def best_values(entries: Sequence[Mapping[str, JSON]], labels: Mapping[str, str]) -> dict[tuple[str, str], Values]:
    """The values with the best mean score: (task, row) -> field -> value.

    entries: studies from `read_sweep`; if a row has several on a task, the best one counts, and in a tie the one with
    fewer fields. labels: task -> its scale's label; studies with other labels do not count.
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


def write_sweep(path: Path, table: str, scale: str, entries: Iterable[Mapping[str, JSON]], by_study: bool) -> None:
    """Write studies to a sweep's file; a later study replaces an earlier one of the same task and method.

    by_study: whether it replaces only a study of the same name, so that a row may have several.
    """
    kept = {(each["task"], each["method"], each.get("study", "") if by_study else ""): each for each in entries}
    value = {"benchmark": table, "scale": scale, "tunings": [kept[key] for key in sorted(kept)]}
    write_bytes(path, f"{json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode())


def read_sweep(path: Path) -> list[dict[str, JSON]]:
    """The studies in a sweep's file; empty without a file, UserError if it is damaged."""
    if not path.exists():
        return []
    try:
        entries = [{"scale": "", "score": "", "grid": {}, "best": None} | entry for entry in read_json(path)["tunings"]]
        for entry in entries:  # read everything once, so that a damaged study fails here
            best_values([entry, entry], {entry["task"]: entry["scale"]})
            dict(entry["best"]["values"] if entry["best"] else {}, **entry["grid"])
        return entries
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: expected the results of a sweep, found a damaged file ({type(error).__name__}: {error}). "
            f"Move it away: finished cells have records, which a sweep finds."
        ) from None
