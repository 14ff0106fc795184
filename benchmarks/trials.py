"""A search's trials and what came of them, as data."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.cell import VALIDATION
from benchmarks.changes import field_value
from benchmarks.measures import Metric, metric
from benchmarks.spec import Cell, Column, Row
from benchmarks.tasks import task
from benchmarks.tuning import Grid, Values


@dataclass(frozen=True)
class Trial:
    """One point of a method's grid on one task: a cell for each seed, scored on validation data."""

    number: int
    values: Values  # as the definition and --set have them: a critical layer counts the paper's layers
    row: Row  # the method, with the values in its id and name
    cells: tuple[Cell, ...]

    def cells_at(self, rung: int | None) -> tuple[Cell, ...]:
        """Its cells with as many rounds as a rung has, or all that they have; None: the whole ones."""
        return tuple(cell if rung is None or rung >= cell.training.rounds else _cut(cell, rung) for cell in self.cells)

    @property
    def settings(self) -> Values:
        """The values as the cells have them: a critical layer counts the encoder's own layers."""
        return {name: field_value(self.cells[0], name) for name in self.values}


def _cut(cell: Cell, rounds: int) -> Cell:
    return dataclasses.replace(cell, training=dataclasses.replace(cell.training, rounds=rounds))


@dataclass(frozen=True)
class Tuning:
    """A method's trials on a task, in the grid's order; `study` is their name in Optuna."""

    row: Row
    column: Column
    grid: Grid
    study: str
    trials: tuple[Trial, ...]
    rungs: tuple[int, ...] = ()

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
    """

    trial: Trial
    cell_ids: tuple[str, ...]
    scores: tuple[float | None, ...]
    rung: int | None = None

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


Tried = Sequence[tuple[Tuning, Sequence[Outcome]]]
