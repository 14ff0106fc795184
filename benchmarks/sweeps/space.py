"""A sweep's search space per row: the user's fields, or the definition's grids.

Fields and values are as in --set: critical layers refer to the paper's encoder.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.measures import Metric, metric
from benchmarks.overrides import changeable, field_value, parsed, read_value
from benchmarks.run_config import JSON, VALIDATION, RunConfig, digest, without_fields
from benchmarks.running.federation import load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.tuning import Grid, Values
from benchmarks.tasks import task
from fedsim.algorithms import algorithm_function, trains


@dataclass(frozen=True)
class Tuning:
    """A method to tune on a task; a trial is a point in the space, with one cell per seed.

    Args:
        trials: The most points of the grid, in a seeded order; None for all.
        rungs: Rounds after which a trial may be pruned.
        study: The name in Optuna's journal.
    """

    benchmark: Benchmark
    scale: Scale
    row: Row
    column: Column
    seeds: tuple[int, ...]
    space: Grid
    trials: int | None = None
    rungs: tuple[int, ...] = ()
    study: str = ""

    @property
    def budget(self) -> int:
        """The number of trials: the whole grid, or fewer."""
        points = math.prod(map(len, self.space.values()))
        return min(points, self.trials or points)

    @property
    def metric(self) -> Metric:
        """The metric that decides between trials: the column's averaged one."""
        return metric(self.column.averaged)

    @property
    def last_rounds(self) -> int:
        """A trial's score is the mean of this many last rounds; 0: that of the best one."""
        first = self.cells({})[0]
        chosen = first.validation_share or VALIDATION in task(first.task).evaluations
        return self.benchmark.search(self.scale).last_rounds or (0 if chosen else 1)

    def cells(self, values: Values) -> tuple[RunConfig, ...]:
        """A trial's cells: the row's cells with the search's changes and these values, scored on validation data."""
        search = self.benchmark.search(self.scale)
        # A cell and its earlier cell have the same validation data.
        changes = (*search.changes.items(), *self.benchmark.overrides, *values.items(), ("holdout", "validation"))
        table = replace(self.benchmark, overrides=changes)
        cells = (table.cell(self.row, self.column, self.scale, seed) for seed in self.seeds)
        # Tables share one fixed partition. A sweep with other seeds draws one partition per seed.
        return tuple(replace(cell, data_seed=None) if cell.seed in search.seeds else cell for cell in cells)

    def named(self, values: Values) -> Row:
        """The row with a trial's values, which its id and name show."""
        written = ", ".join(f"{name.partition('.')[2] or name}={value}" for name, value in values.items())
        shown = ", ".join(self.benchmark.shown(*value, self.scale) for value in values.items())
        return self.row.changed(values, id=f"{self.row.id}[{written}]", name=f"{self.row.name} {shown}")


def settings_of(cell: RunConfig, names: Iterable[str]) -> Values:
    """A cell's values: critical layers refer to the cell's encoder, and missing options are None."""
    values: dict[str, JSON] = dict.fromkeys(names)
    for name in values:
        with suppress(KeyError, TypeError):
            values[name] = field_value(cell, name)
    return values


def read_grid(assignments: Sequence[str]) -> Grid:
    """The fields in --grid, in order; UserError if one is malformed or repeated."""
    grid: dict[str, Sequence[JSON]] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not (name and equals and text):
            example = "training.learning_rate=1e-5,2e-5"
            raise UserError(f"--grid {assignment}: expected field=values, such as {example}")
        if name in ("holdout", "seed"):
            raise UserError(f"--grid {name}: a sweep decides that itself; leave it out (--seeds says how many)")
        if name in grid:
            raise UserError(f"--grid {name}: expected each field once, found it twice; give all values at once")
        parts = parsed(f"[{text}]", text.split(","))
        values = [read_value("--grid", name, part if isinstance(part, str) else json.dumps(part)) for part in parts]
        if "" in values:
            raise UserError(f"--grid {name}: expected values between commas, found an empty one in {text!r}")
        grid[name] = [value for place, value in enumerate(values) if value not in values[:place]]
    return grid


def spaces(
    benchmark: Benchmark, scale: Scale, rows: Sequence[Row], columns: Sequence[Column], named: bool, fields: Grid
) -> dict[tuple[str, str], Grid]:
    """The search spaces of tunable rows: (task, row id) -> fields.

    named: whether the user named the rows. fields: the user's fields, for every row that has all of them; empty: the
    definition's. UserError if nothing is left, or a named row has nothing to tune.
    """
    declared = benchmark.search(scale).grids
    tried: dict[tuple[str, str], Grid] = {}
    for column in columns:
        for row in rows if named or not fields else _without_equals(rows, fields):
            space = fields or declared.get(row.id, {})
            cell = benchmark.cell(row, column, scale, 0)
            if space and (not fields or all(_has(benchmark, row, cell, name) for name in fields)):
                tried[column.task, row.id] = space
    missing = [row.id for row in rows if row.id not in {row_id for _, row_id in tried}]
    if not tried or (named and missing):
        place = f" in {', '.join(missing)}" if named else ""
        if fields:
            has = ", ".join(changeable(benchmark.cell(rows[0], columns[0], scale, 0)))
            raise UserError(f"{benchmark.id}: no {' and '.join(fields)} to tune{place}; {rows[0].id} has {has}")
        tuned = ", ".join(row.id for row in benchmark.rows_at(scale) if row.id in declared) or "no method"
        raise UserError(
            f"{benchmark.id}: nothing to tune{place} at the scale {scale.id}; the definition tunes {tuned}; "
            "--grid tunes other fields, such as training.learning_rate=1e-4,2e-4"
        )
    return tried


def _without_equals(rows: Sequence[Row], fields: Grid) -> list[Row]:
    """The rows, without rows that differ from another one only in swept fields, as their trials are equal."""
    first: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: (not row.printed, bool(row.tuned_as))):
        rest = sorted((name, repr(value)) for name, value in row.changes.items() if name not in fields)
        first.setdefault(f"{rest} {row.begins} {row.backbone}", row)
    return [row for row in rows if row in first.values()]


def _has(benchmark: Benchmark, row: Row, cell: RunConfig, name: str) -> bool:
    """Whether a row, and the row that it begins from, has a field that can be changed.

    An option that the method takes counts even if the row leaves it out.
    """
    if row.begins and cell.initial and not _has(benchmark, benchmark.row(row.begins), cell.initial, name):
        return False
    if row.is_fixed(name) or (name.startswith("training.") and not trains(cell.algorithm)):
        return False
    try:
        field_value(cell, name)
    except (KeyError, TypeError):
        group, _, option = name.partition(".")
        return group == "options" and option in [*inspect.signature(algorithm_function(cell.algorithm)).parameters][1:]
    return True


def planned(tuning: Tuning, rungs: Sequence[float], settings: RunOptions) -> Tuning:
    """The tuning with its study's name and its rungs in rounds.

    rungs: rounds after which a trial may be pruned; one below 1 is a share of the row's rounds. UserError if the row's
    data are missing, or a field rejects a value.
    """
    first = {name: values[0] for name, values in tuning.space.items()}
    for name, values in tuning.space.items():
        for value in values:
            try:
                tuning.cells({**first, name: value})
            except UserError as error:
                raise UserError(str(error).replace(f"--set {name}: ", f"--grid {name}: ", 1)) from None
    cells = tuning.cells({})
    rounds = cells[0].training.rounds
    whole = tuple(int(r) if r >= 1 else max(1, round(r * rounds)) for r in rungs)
    # The study's name includes everything that determines its scores, such as data and encoder, but not the values, so
    # that a sweep with further values extends the study.
    decides: dict[str, JSON] = {
        "fields": sorted(tuning.space),
        "score": tuning.column.averaged,
        "cells": [without_fields(cell.to_json(), tuning.space) for cell in cells],
        "inputs": dict(load_inputs(cells[0], settings).digests),
        "objectives": ["score"],  # as earlier versions name their studies
        "rungs": whole,
        **({"last_rounds": tuning.last_rounds} if tuning.last_rounds > 1 else {}),
    }
    study = f"{tuning.benchmark.id}/{tuning.scale.id}/{tuning.column.task}/{tuning.row.id}/{digest(decides, 8)}"
    return replace(tuning, study=study, rungs=tuple(rung for rung in whole if rung < rounds))
