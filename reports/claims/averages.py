"""A table's average against the best rival's, over our records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.claims import At, AverageBetter
from reports.claims.cells import Runs
from reports.evidence.scores import known
from reports.evidence.statistics import NORMAL_975, Estimate, mean, stratified_bootstrap
from reports.pages.text import number

Stratum = tuple[At, str]  # a row and a task: one value a seed
Values = Mapping[Stratum, np.ndarray]


@dataclass(frozen=True)
class _Margin:
    """A row, the rivals of its table, and the tasks on which all of them were run."""

    row: At
    rivals: tuple[At, ...]
    tasks: tuple[str, ...]

    @property
    def strata(self) -> tuple[Stratum, ...]:
        return tuple((at, task) for at in (self.row, *self.rivals) for task in self.tasks)

    def average(self, at: At, values: Values) -> np.ndarray:
        return np.stack([values[at, task] for task in self.tasks]).mean(axis=0)

    def above_best(self, values: Values) -> np.ndarray:
        return self.average(self.row, values) - np.max([self.average(at, values) for at in self.rivals], axis=0)


def average_margin(runs: Runs, relation: AverageBetter) -> Estimate | None:
    """Above the best rival's average, mean over the rows; of the tasks that were run, where some were not.

    The interval is the wider of a stratified bootstrap over seeds and the test sets' sampling error; none unless
    every task of the tables was run with two seeds or more.
    """
    margins, whole = [], True
    for row in relation.rows:
        rivals = tuple(at for at in relation.than if at.benchmark == row.benchmark)
        every = runs.tables.tasks(row)
        tasks = tuple(task for task in every if all(_values(runs, at, task) for at in (row, *rivals)))
        whole = whole and tasks == every
        if tasks:
            margins.append(_Margin(row, rivals, tasks))
    if not margins:
        return None
    strata = tuple(dict.fromkeys(stratum for margin in margins for stratum in margin.strata))
    values = [_values(runs, *stratum) for stratum in strata]
    points = {stratum: np.array([mean(seeds)]) for stratum, seeds in zip(strata, values, strict=True)}

    def statistic(means: np.ndarray) -> np.ndarray:
        of = dict(zip(strata, means, strict=True))
        return np.mean([margin.above_best(of) for margin in margins], axis=0)

    value = float(statistic(np.stack([points[stratum] for stratum in strata]))[0])
    drawn = stratified_bootstrap(values, statistic) if whole else None
    errors = [_sampling_error(runs, margin, points) for margin in margins] if drawn else [None]
    interval = None
    if drawn is not None and None not in errors:
        half = NORMAL_975 * mean(known(errors))  # the rows share their test sets: their errors do not cancel
        interval = min(drawn[0], value - half), max(drawn[1], value + half)
    return Estimate(value, interval, min(map(len, values)), _parts(runs, margins, points))


def _values(runs: Runs, at: At, task: str) -> list[float]:
    """The score that enters the average, one a seed, in its unit; its sign turned where less is better."""
    found = runs.scores(at, task)
    return [] if found is None else [found.metric.sign * value for value in known(found.at())]


def _sampling_error(runs: Runs, margin: _Margin, points: Values) -> float | None:
    best = max(margin.rivals, key=lambda at: float(margin.average(at, points)[0]))
    squares = []
    for at in (margin.row, best):
        for task in margin.tasks:
            found = runs.scores(at, task)
            if found is None or found.error is None or None in found.errors:
                return None
            squares.append(found.error**2)
    return math.sqrt(math.fsum(squares)) / len(margin.tasks)


def _parts(runs: Runs, margins: Sequence[_Margin], points: Values) -> str:
    tables: dict[str, list[_Margin]] = {}
    for margin in margins:
        tables.setdefault(runs.tables.benchmark(margin.row).place, []).append(margin)
    texts = []
    for place, found in tables.items():
        value = mean([float(margin.above_best(points)[0]) for margin in found])
        tasks, every = found[0].tasks, runs.tables.tasks(found[0].row)
        part = "" if tasks == every else f" on {len(tasks)} of {len(every)} tasks"
        texts.append(f"{place} {number(value, '+')}{part}")
    return ", ".join(texts)
