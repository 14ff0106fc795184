"""What a sweep tries: for a method on a task, the study's name, its rungs and the cells of a trial."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.measures import Metric, metric
from benchmarks.overrides import field_value
from benchmarks.run_config import JSON, VALIDATION, RunConfig, digest
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.tuning import Range, Space, Values
from benchmarks.tasks import task


def trial_cell(benchmark: Benchmark, row: Row, column: Column, scale: Scale, seed: int, values: Values) -> RunConfig:
    """The row's cell with the search's changes, these values in place of what was chosen, scored on validation data."""
    shorter = benchmark.search(scale).changes.items()
    overrides = (*shorter, *benchmark.overrides, *values.items(), ("holdout", "validation"))
    # What a cell begins from saw no more than it did.
    cell = replace(benchmark, overrides=overrides).cell(row, column, scale, seed)
    # One fixed partition is the tables': a search with seeds of its own has their data, too.
    return replace(cell, data_seed=None) if seed in benchmark.search(scale).seeds else cell


def scored_at(cell: RunConfig) -> str:
    """The round at which a trial's cell is scored: that at which tables score theirs, "best" or "last"."""
    return "best" if cell.validation_share or VALIDATION in task(cell.task).evaluations else "last"


def in_rounds(rungs: Sequence[float], rounds: int) -> tuple[int, ...]:
    """Rungs in whole rounds; one below 1 is a share of a row's own rounds, at least one of them."""
    return tuple(int(rung) if rung >= 1 else max(1, round(rung * rounds)) for rung in rungs)


@dataclass(frozen=True)
class Tuning:
    """What a sweep tries of a method on a task: a trial is a point of the space, with a cell for each seed.

    trials: at most so many points of a grid, in a seeded order, None for all; with a range among the fields, so many
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
        """Whether every field has values, so that there are points to count."""
        return not any(isinstance(values, Range) for values in self.space.values())

    @property
    def budget(self) -> int:
        """The number of trials: the whole grid, or fewer where fewer are asked for."""
        if not self.is_grid:
            return self.trials or 0
        points = math.prod(len(values) for values in self.space.values() if not isinstance(values, Range))
        return min(points, self.trials or points)

    def cells(self, values: Values) -> tuple[RunConfig, ...]:
        """The cells of a trial."""
        return tuple(trial_cell(self.benchmark, self.row, self.column, self.scale, seed, values) for seed in self.seeds)

    @cached_property
    def default(self) -> RunConfig:
        """The cell of the definition's own settings."""
        return self.cells({})[0]

    def shown(self, values: Values) -> str:
        """A trial's values in words."""
        return ", ".join(self.benchmark.shown(*value, self.scale) for value in values.items())

    def named(self, values: Values) -> Row:
        """The method with a trial's values, in its id and name too."""
        written = ", ".join(f"{name.partition('.')[2] or name}={value}" for name, value in values.items())
        return self.row.changed(values, id=f"{self.row.id}[{written}]", name=f"{self.row.name} {self.shown(values)}")

    @property
    def metric(self) -> Metric:
        """What decides between trials: the metric that enters the column's average."""
        return metric(self.column.averaged)


def settings_of(cell: RunConfig, names: Iterable[str]) -> Values:
    """Values as a cell has them: a critical layer counts the encoder's own layers. None: an option that it lacks."""

    def value(name: str) -> JSON:
        try:
            return field_value(cell, name)
        except (KeyError, TypeError):
            return None

    return {name: value(name) for name in names}


def planned(tuning: Tuning, rungs: Sequence[float], settings: RunOptions) -> Tuning:
    """The tuning with its study's name and its rungs in rounds.

    Raises:
        UserError: the row's data is missing, or a field does not take one of its values.
    """
    from benchmarks.running.federation import load_inputs

    _try_out(tuning)
    rounds = tuning.default.training.rounds
    whole = () if tuning.pareto else in_rounds(rungs, rounds)
    # The study is named by what decides its scores, data and encoder included. Values of a grid are no part of it, so
    # that a sweep with further ones extends the study; the choices between which TPE draws are, as Optuna asks for.
    decides: dict[str, JSON] = {
        "fields": sorted(tuning.space),
        "score": tuning.column.averaged,
        "cells": [without_fields(cell.to_json(), tuning.space) for cell in tuning.cells({})],
        "inputs": dict(load_inputs(tuning.default, settings).digests),
        "objectives": ["score", "uplink"] if tuning.pareto else ["score"],
        "rungs": whole,
    }
    if not tuning.is_grid:
        decides["choices"] = {name: list(v) for name, v in tuning.space.items() if not isinstance(v, Range)}
    study = f"{tuning.benchmark.id}/{tuning.scale.id}/{tuning.column.task}/{tuning.row.id}/{digest(decides, 8)}"
    return replace(tuning, study=study, rungs=tuple(rung for rung in whole if rung < rounds))


def _try_out(tuning: Tuning) -> None:
    """UserError where a field does not take one of its values, before any trial is in the journal."""
    listed = {n: (v.low, v.high) if isinstance(v, Range) else v for n, v in tuning.space.items()}
    first = {name: values[0] for name, values in listed.items()}
    for name, values in listed.items():
        for value in values:
            tuning.cells({**first, name: value})


def without_fields(cell: dict[str, JSON], names: Iterable[str]) -> dict[str, JSON]:
    """A cell's JSON without these fields, nor those of the cells from which it begins."""
    left: dict[str, JSON] = json.loads(json.dumps(cell))
    for name in names:
        *groups, last = name.split(".")
        group: JSON = left
        for key in groups:
            group = group.get(key) if isinstance(group, dict) else None
        if isinstance(group, dict):
            group.pop(last, None)
    if isinstance(left.get("initial"), dict):
        left["initial"] = without_fields(left["initial"], names)
    return left
