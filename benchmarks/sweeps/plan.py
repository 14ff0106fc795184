"""What a sweep tries: for a method on a task, the study's name, its rungs and the cells of a trial."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from benchmarks.cell import VALIDATION
from benchmarks.changes import field_value
from benchmarks.measures import Metric, metric
from benchmarks.settings import Settings
from benchmarks.spec import JSON, Benchmark, Cell, Column, Row, Scale, digest
from benchmarks.tasks import task
from benchmarks.tuning import Range, Space, Values, Wanted


def trial_cell(benchmark: Benchmark, row: Row, column: Column, scale: Scale, seed: int, values: Values) -> Cell:
    """The row's cell with the search's changes, these values in place of what was chosen, scored on validation data."""
    shorter = benchmark.search(scale).changes.items()
    overrides = (*shorter, *benchmark.overrides, *values.items(), ("holdout", "validation"))
    # What a cell begins from saw no more than it did.
    cell = replace(benchmark, overrides=overrides).cell(row, column, scale, seed)
    # One fixed partition is the tables': a search with seeds of its own has their data, too.
    return replace(cell, data_seed=None) if seed in benchmark.search(scale).seeds else cell


def declared(benchmark: Benchmark, scale: Scale, space: Space) -> Wanted:
    """What is tried of a row with these fields, as the scale's search says."""
    search = benchmark.search(scale)
    return Wanted(space, search.trials, tuple(search.rungs))


def scored_at(cell: Cell) -> str:
    """The round at which a trial's cell is scored: that at which tables score theirs, "best" or "last"."""
    return "best" if cell.validation_share or VALIDATION in task(cell.task).evaluations else "last"


def in_rounds(rungs: Sequence[float], rounds: int) -> tuple[int, ...]:
    """Rungs in whole rounds; one below 1 is a share of a row's own rounds, at least one of them."""
    return tuple(int(rung) if rung >= 1 else max(1, round(rung * rounds)) for rung in rungs)


@dataclass(frozen=True)
class Tuning:
    """What a sweep tries of a method on a task: a trial is a point of the space, with a cell for each seed.

    study: its name in Optuna's journal. rungs: rounds after which a trial may be pruned.
    """

    benchmark: Benchmark
    scale: Scale
    row: Row
    column: Column
    seeds: tuple[int, ...]
    wanted: Wanted
    study: str = ""
    rungs: tuple[int, ...] = ()

    def cells(self, values: Values) -> tuple[Cell, ...]:
        """The cells of a trial."""
        return tuple(trial_cell(self.benchmark, self.row, self.column, self.scale, seed, values) for seed in self.seeds)

    def settings(self, values: Values) -> Values:
        """A trial's values as its cells have them: a critical layer counts the encoder's own layers."""
        cell = self.cells(values)[0]
        return {name: field_value(cell, name) for name in values}

    @cached_property
    def default(self) -> Values:
        """The definition's own settings of the fields that are swept."""
        cell, settings = self.cells({})[0], {}
        for name in self.wanted.space:
            try:
                settings[name] = field_value(cell, name)
            except (KeyError, TypeError):  # an option that the definition leaves out
                continue
        return settings

    def shown(self, values: Values) -> str:
        """A trial's values in words."""
        return ", ".join(self.benchmark.shown(*value, self.scale) for value in values.items())

    def named(self, values: Values) -> Row:
        """The method with a trial's values, in its id and name too."""
        written = ", ".join(f"{name.partition('.')[2] or name}={value}" for name, value in values.items())
        return self.row.changed(values, id=f"{self.row.id}[{written}]", name=f"{self.row.name} {self.shown(values)}")

    @property
    def scored_at(self) -> str:
        """The round at which trials are scored, "best" or "last"."""
        return scored_at(self.cells({})[0])

    @property
    def metric(self) -> Metric:
        """What decides between trials: the metric that enters the column's average."""
        return metric(self.column.averaged)


def plan_tuning(
    benchmark: Benchmark,
    scale: Scale,
    row: Row,
    column: Column,
    seeds: Sequence[int],
    settings: Settings,
    wanted: Wanted | None = None,
) -> Tuning:
    """Plan the sweep of a method on a task; wanted: what is tried, None for the grid that the definition declares.

    Raises:
        UserError: the row's data is missing, or a field does not take one of its values.
    """
    from benchmarks.federation import load_inputs

    wanted = wanted or declared(benchmark, scale, benchmark.search(scale).grids[row.id])
    tuning = Tuning(benchmark, scale, row, column, tuple(seeds), wanted)
    _try_out(tuning)
    cells, space = tuning.cells({}), wanted.space
    rounds = cells[0].training.rounds
    rungs = () if wanted.pareto else in_rounds(wanted.rungs, rounds)
    # The study is named by what decides its scores, data and encoder included. Numbers of a grid are no part of it, so
    # that a sweep with further ones extends the study; the choices between which TPE draws are, as Optuna asks for.
    decides: dict[str, JSON] = {
        "fields": sorted(space),
        "score": column.averaged,
        "cells": [without_fields(cell.to_json(), space) for cell in cells],
        "inputs": dict(load_inputs(cells[0], settings).digests),
        "objectives": ["score", "uplink"] if wanted.pareto else ["score"],
        "rungs": rungs,
    }
    if not wanted.is_grid:
        decides["choices"] = {name: list(v) for name, v in space.items() if not isinstance(v, Range)}
    study = f"{benchmark.id}/{scale.id}/{column.task}/{row.id}/{digest(decides, 8)}"
    return replace(tuning, study=study, rungs=tuple(rung for rung in rungs if rung < rounds))


def _try_out(tuning: Tuning) -> None:
    """UserError where a field does not take one of its values, before any trial is in the journal."""
    listed = {
        name: (values.low, values.high) if isinstance(values, Range) else values
        for name, values in tuning.wanted.space.items()
    }
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
