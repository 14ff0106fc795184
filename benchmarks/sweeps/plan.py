"""A method on a task as a sweep tunes it: the cells of its trials, its study and its rungs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.measures import Metric, metric
from benchmarks.overrides import field_value
from benchmarks.run_config import JSON, VALIDATION, RunConfig
from benchmarks.sweeps.tuning import Range, Space, Values
from benchmarks.tasks import task


def scored_at(cell: RunConfig) -> str:
    """The round at which a trial's cell is scored, as in tables: "best" or "last"."""
    return "best" if cell.validation_share or VALIDATION in task(cell.task).evaluations else "last"


@dataclass(frozen=True)
class Tuning:
    """A method on a task: a trial is a point of the space, with a cell for each seed.

    trials: at most so many points of a grid, in a seeded order, None for all; with a range among the fields, the number
    that Optuna's TPE draws. rungs: rounds after which a trial may be pruned. pareto: whether uplink bytes are an
    objective too. study: the name in Optuna's journal.
    """

    benchmark: Benchmark
    scale: Scale
    row: Row
    column: Column
    seeds: tuple[int, ...]
    space: Space
    trials: int | None = None
    rungs: tuple[int, ...] = ()
    pareto: bool = False
    study: str = ""

    @property
    def is_grid(self) -> bool:
        """Whether every field has a list of values."""
        return not any(isinstance(values, Range) for values in self.space.values())

    @property
    def budget(self) -> int:
        """The number of trials: the whole grid, or fewer if fewer are asked for."""
        if not self.is_grid:
            return self.trials or 0
        points = math.prod(len(values) for values in self.space.values() if not isinstance(values, Range))
        return min(points, self.trials or points)

    @property
    def metric(self) -> Metric:
        """The metric that decides between trials: the one that enters the column's average."""
        return metric(self.column.averaged)

    def cells(self, values: Values) -> tuple[RunConfig, ...]:
        """A trial's cells: the row's with the search's changes and these values, scored on validation data."""
        search = self.benchmark.search(self.scale)
        # A cell and the one from which it begins have the same validation data.
        changes = (*search.changes.items(), *self.benchmark.overrides, *values.items(), ("holdout", "validation"))
        table = replace(self.benchmark, overrides=changes)
        cells = (table.cell(self.row, self.column, self.scale, seed) for seed in self.seeds)
        # Tables share one fixed partition. A sweep on seeds that no table uses draws a partition for each seed.
        return tuple(replace(cell, data_seed=None) if cell.seed in search.seeds else cell for cell in cells)

    def named(self, values: Values) -> Row:
        """The method with a trial's values, which its id and name show."""
        written = ", ".join(f"{name.partition('.')[2] or name}={value}" for name, value in values.items())
        shown = ", ".join(self.benchmark.shown(*value, self.scale) for value in values.items())
        return self.row.changed(values, id=f"{self.row.id}[{written}]", name=f"{self.row.name} {shown}")


def settings_of(cell: RunConfig, names: Iterable[str]) -> Values:
    """Values as a cell has them: a critical layer counts the encoder's layers, a missing option is None."""
    values: dict[str, JSON] = dict.fromkeys(names)
    for name in values:
        with suppress(KeyError, TypeError):
            values[name] = field_value(cell, name)
    return values
