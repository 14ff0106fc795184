"""A search's trials and what came of them, as data."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cell import VALIDATION
from benchmarks.changes import field_value
from benchmarks.measures import Metric, metric
from benchmarks.spec import Cell, Column, Row
from benchmarks.tasks import task
from benchmarks.tuning import Space, Values

WAVE = 4  # trials that TPE draws before it learns what came of them: the same whatever the number of workers


@dataclass(frozen=True)
class Trial:
    """One point of a method's grid on one task: a cell for each seed, scored on validation data."""

    number: int
    values: Values  # as the definition and --set have them: a critical layer counts the paper's layers
    row: Row  # the method, with the values in its id and name
    cells: tuple[Cell, ...]
    ended: int | None = None  # of a trial of an earlier sweep: the rounds after which it ended, 0 for all that it has

    def cells_at(self, rung: int | None) -> tuple[Cell, ...]:
        """Its cells stopped after as many rounds as a rung has, or after all that they have; None: the whole ones."""
        return tuple(cell if rung is None or rung >= cell.training.rounds else _cut(cell, rung) for cell in self.cells)

    @property
    def settings(self) -> Values:
        """The values as the cells have them: a critical layer counts the encoder's own layers."""
        return {name: field_value(self.cells[0], name) for name in self.values}


def _cut(cell: Cell, rounds: int) -> Cell:
    return dataclasses.replace(cell, training=dataclasses.replace(cell.training, stop=rounds))


@dataclass(frozen=True)
class Tuning:
    """A method's trials on a task, in the grid's order; `study` is their name in Optuna.

    brackets: the trials of this sweep, in groups of which the best at a rung go on; () for all in one. The others are
    those of earlier sweeps of the same study, which are not tried again.
    """

    row: Row
    column: Column
    space: Space
    study: str
    trials: tuple[Trial, ...]
    rungs: tuple[int, ...] = ()
    brackets: tuple[tuple[Trial, ...], ...] = ()
    pareto: bool = False

    @property
    def tried(self) -> tuple[tuple[Trial, ...], ...]:
        """The trials of this sweep, by bracket."""
        return self.brackets or (tuple(trial for trial in self.trials if trial.ended is None),)

    @property
    def settled(self) -> tuple[Trial, ...]:
        """The trials of earlier sweeps."""
        return tuple(trial for trial in self.trials if trial.ended is not None)

    @property
    def scored_at(self) -> str:
        """The round at which trials are scored: that at which tables score their cells, "best" or "last"."""
        cell = self.trials[0].cells[0]
        return "best" if cell.validation_share or VALIDATION in task(cell.task).evaluations else "last"

    @property
    def metric(self) -> Metric:
        """What decides between trials: the metric that enters the column's average."""
        return metric(self.column.averaged)


@dataclass(frozen=True)
class Outcome:
    """What came of a trial: the finished cells' ids and validation scores (as records have them, None: undefined).

    rung: the rounds after which it was given up; None where it was not.
    uplinks: bytes that each of these cells sent up.
    """

    trial: Trial
    cell_ids: tuple[str, ...]
    scores: tuple[float | None, ...]
    rung: int | None = None
    uplinks: tuple[int, ...] = ()

    @property
    def uplink(self) -> float | None:
        """Bytes sent up by all clients in all rounds, mean over seeds; None where the mean score is."""
        return statistics.fmean(self.uplinks) if self.uplinks and self.mean is not None else None

    @property
    def finished(self) -> bool:
        """Whether every seed has a record."""
        return len(self.scores) == len(self.trial.cells)

    @property
    def mean(self) -> float | None:
        """Mean over seeds; None while a seed is missing or where one is undefined."""
        return statistics.fmean(self._known) if len(self._known) == len(self.trial.cells) else None

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over seeds; None as for the mean, and for a single seed."""
        return None if self.mean is None or len(self._known) == 1 else statistics.stdev(self._known)

    @property
    def _known(self) -> list[float]:
        return [score for score in self.scores if score is not None]


def best(tried: Sequence[Outcome], by: Metric) -> Outcome | None:
    """The best mean validation score in the metric's direction, the first of equals; None where no trial has one.

    Trials that were given up at a rung are not compared with those that went on.
    """
    means = [one.mean if one.rung is None else None for one in tried]
    return tried[means.index(by.best(means))] if any(mean is not None for mean in means) else None


def tied(tried: Sequence[Outcome], by: Metric) -> list[Outcome]:
    """All trials whose mean score is that of the best, which comes first; equal but for the order of sums is equal."""
    first = best(tried, by)
    if first is None or first.mean is None:
        return []
    return [one for one in _compared(tried) if math.isclose(one.mean, first.mean, rel_tol=1e-12)]


def front(tried: Sequence[Outcome], by: Metric) -> list[Outcome]:
    """The trials of which none other is as good in score and in uplink bytes, and better in one; equals are all in."""
    known = [(one, by.sign * one.mean, -one.uplink) for one in _compared(tried) if one.uplink is not None]
    return [
        one
        for one, score, less in known
        if not any(a >= score and b >= less and (a, b) != (score, less) for _, a, b in known)
    ]


def _compared(tried: Sequence[Outcome]) -> list[Any]:
    return [one for one in tried if one.rung is None and one.mean is not None]


Tried = Sequence[tuple[Tuning, Sequence[Outcome]]]
