"""Tuning: the grids of a definition, tried on validation data, every method with the same budget.

Records are the truth of a sweep too; Optuna hands the points out and keeps what came of them (`studies`).
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.measures import Metric, metric
from benchmarks.record import RunRecord, write_text
from benchmarks.settings import Settings
from benchmarks.spec import JSON, Benchmark, Cell, Column, Row, Scale, digest
from benchmarks.studies import Studies, locked
from benchmarks.trials import Outcome, Trial, Tried, Tuning
from benchmarks.tuning import Grid, Values, read_sweep, survivors


def tuned_rows(benchmark: Benchmark, scale: Scale, named: Sequence[Row] = ()) -> list[Row]:
    """The named rows, or all that the definition tunes; UserError where it tunes nothing of one."""
    grids = benchmark.search(scale).grids
    untuned = [row.id for row in named if row.id not in grids]
    if untuned or not grids:
        known = ", ".join(grids) or "no method"
        raise UserError(f"{benchmark.id}: nothing to tune in {', '.join(untuned) or 'it'}; it tunes {known}")
    return [row for row in named or benchmark.rows_at(scale) if row.id in grids]


def budget(grid: Grid, trials: int | None) -> int:
    """Trials of one method on one task: the whole grid, or fewer where fewer are asked for."""
    points = math.prod(len(values) for values in grid.values())
    return min(points, trials or points)


def trial_cell(benchmark: Benchmark, row: Row, column: Column, scale: Scale, seed: int, values: Values) -> Cell:
    """The row's cell with these values in place of what was chosen before, scored on validation data."""
    overrides = (*benchmark.overrides, *values.items(), ("holdout", "validation"))
    # What a cell begins from saw no more than it did.
    return dataclasses.replace(benchmark, overrides=overrides).cell(row, column, scale, seed)


def plan_tuning(
    benchmark: Benchmark,
    scale: Scale,
    row: Row,
    column: Column,
    seeds: Sequence[int],
    settings: Settings,
    trials: int | None = None,
) -> Tuning:
    """A method's trials on a task, with those that an earlier start left open; UserError where its data is missing."""
    from benchmarks.federation import load_inputs

    def cells(values: Values) -> tuple[Cell, ...]:
        return tuple(trial_cell(benchmark, row, column, scale, seed, values) for seed in seeds)

    search = benchmark.search(scale)
    grid = search.grids[row.id]
    every = [cell for values in _points(grid) for cell in cells(values)]
    inputs = load_inputs(every[0], settings).digests
    # As cells are named by what decides them, so is what is drawn from them: other data is another study.
    decides = {"grid": grid, "score": column.averaged, "cells": [cell.cell_id(inputs) for cell in every]}
    content = digest(decides | ({"rungs": search.rungs} if search.rungs else {}), 8)
    study = f"{benchmark.id}/{scale.id}/{column.task}/{row.id}/{content}"
    better = metric(column.averaged).higher_is_better
    asked = Studies(settings.results_dir).ask(study, grid, budget(grid, trials or search.trials), better)
    found = [
        Trial(number, values, _named(benchmark, scale, row, values), cells(values)) for number, values in asked.items()
    ]
    found.sort(key=lambda trial: [grid[name].index(trial.values[name]) for name in grid])
    return Tuning(row, column, grid, study, tuple(found), tuple(search.rungs))


def going_on(tuning: Tuning, records: Mapping[str, RunRecord], stage: int) -> list[Trial]:
    """The trials that are left after so many rungs: those with the best mean scores; records: by cells' spec_id."""
    trials = list(tuning.trials)
    for rung in tuning.rungs[:stage]:
        known = [one for one in (_outcome(tuning, trial, records, rung) for trial in trials) if one.mean is not None]
        known.sort(key=lambda one: -tuning.metric.sign * (one.mean or 0.0))  # of equals the first
        trials = [one.trial for one in known[: survivors(len(tuning.trials))]]
    return trials


def stage_cells(tuning: Tuning, records: Mapping[str, RunRecord], stage: int) -> list[tuple[Trial, Cell]]:
    """What is run after so many rungs: the cells of the next rung, or the whole ones after the last."""
    rung = (*tuning.rungs, None)[stage]
    return [(trial, cell) for trial in going_on(tuning, records, stage) for cell in trial.cells_at(rung)]


def outcomes(tuning: Tuning, records: Mapping[str, RunRecord]) -> list[Outcome]:
    """What came of each trial, at the last rung that it reached; records: by their cells' spec_id."""
    found = {
        trial.number: _outcome(tuning, trial, records, rung)
        for stage, rung in enumerate((*tuning.rungs, None))
        for trial in going_on(tuning, records, stage)
    }
    return [found[trial.number] for trial in tuning.trials]


def _outcome(tuning: Tuning, trial: Trial, records: Mapping[str, RunRecord], rung: int | None) -> Outcome:
    done = [records[cell.spec_id] for cell in trial.cells_at(rung) if cell.spec_id in records]
    scores = tuple(record.score(tuning.column.averaged, tuning.scored_at) for record in done)
    return Outcome(trial, tuple(record.cell_id for record in done), scores, rung)


def best(tried: Sequence[Outcome], by: Metric) -> Outcome | None:
    """The best mean validation score in the metric's direction, the first of equals; None where no trial has one.

    Trials that were given up at a rung are not compared with those that went on.
    """
    means = [one.mean if one.rung is None else None for one in tried]
    return tried[means.index(by.best(means))] if any(mean is not None for mean in means) else None


def write_sweep(
    path: Path, benchmark: Benchmark, scale: Scale, seeds: Sequence[int], tried: Tried, results_dir: Path
) -> None:
    """Keep what was tried in a sweep's file, beside the other tasks and methods that are in it."""
    with locked(results_dir):
        entries = {(entry["task"], entry["method"]): entry for entry in read_sweep(path)}
        for tuning, results in tried:
            chosen, score = best(results, tuning.metric), tuning.column.averaged.partition("/")[2]
            entries[tuning.column.task, tuning.row.id] = {
                "task": tuning.column.task,
                "method": tuning.row.id,
                "scale": scale.label,
                "seeds": list(seeds),
                "score": f"{score} on validation data after the {tuning.scored_at} round",
                "study": tuning.study,
                "grid": tuning.grid,
                "budget": len(tuning.trials),
                "trials": [_described(one) for one in results],
                "best": _described(chosen) if chosen else None,
            }
        value = {"benchmark": benchmark.id, "scale": scale.id, "tunings": [entries[key] for key in sorted(entries)]}
        write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _described(one: Outcome) -> dict[str, JSON]:
    return {
        "values": dict(one.trial.values),
        "settings": dict(one.trial.settings),
        "cells": list(one.cell_ids),
        "scores": list(one.scores),
        "mean": one.mean,
        "sd": one.deviation,
    } | ({"given_up_after": one.rung} if one.rung is not None else {})


def _named(benchmark: Benchmark, scale: Scale, row: Row, values: Values) -> Row:
    written = ", ".join(f"{name.partition('.')[2] or name}={value}" for name, value in values.items())
    shown = ", ".join(benchmark.shown(*value, scale) for value in values.items())
    return row.changed(values, id=f"{row.id}[{written}]", name=f"{row.name} {shown}")


def _points(grid: Grid) -> Iterator[Values]:
    """Every combination of the grid's values."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))
