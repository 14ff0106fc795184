"""Tuning: the grids of a definition, tried on validation data, every method with the same budget.

Records are the truth of a sweep too; Optuna hands the points out and keeps what came of them. Only this module
imports it.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.changes import field_value
from benchmarks.errors import UserError
from benchmarks.measures import Metric, metric
from benchmarks.record import RunRecord, write_text
from benchmarks.settings import Settings
from benchmarks.spec import JSON, Benchmark, Cell, Column, Row, Scale, digest
from benchmarks.tuning import Grid, Values, read_sweep, survivors

if TYPE_CHECKING:
    import optuna

ORDER_SEED = 0  # of the order in which a grid's points are handed out


@dataclass(frozen=True)
class Trial:
    """One point of a method's grid on one task: a cell for each seed, scored on validation data."""

    number: int
    values: Values  # as the definition and --set have them: a critical layer counts the paper's layers
    row: Row  # the method, with the values in its id and name
    cells: tuple[Cell, ...]

    def cells_at(self, rung: int | None) -> tuple[Cell, ...]:
        """Its cells with as many rounds as a rung has; None: the whole ones."""
        if rung is None:
            return self.cells
        return tuple(
            dataclasses.replace(cell, training=dataclasses.replace(cell.training, rounds=rung)) for cell in self.cells
        )

    @property
    def settings(self) -> Values:
        """The values as the cells have them: a critical layer counts the encoder's own layers."""
        return {name: field_value(self.cells[0], name) for name in self.values}


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


def tuned_rows(benchmark: Benchmark, scale: Scale, named: Sequence[Row] = ()) -> list[Row]:
    """The named rows, or all that the definition tunes; UserError where it tunes nothing of one."""
    grids = benchmark.search(scale).grids
    untuned = [row.id for row in named if row.id not in grids]
    if untuned or not grids:
        known = ", ".join(grids) or "no method"
        raise UserError(f"{benchmark.id}: nothing to tune in {', '.join(untuned) or 'it'}; it tunes {known}")
    return [row for row in named or benchmark.rows if row.id in grids]


def budget(grid: Grid, trials: int | None) -> int:
    """Trials of one method on one task: the whole grid, or fewer where fewer are asked for."""
    points = math.prod(len(values) for values in grid.values())
    return min(points, trials or points)


def trial_cell(benchmark: Benchmark, row: Row, column: Column, scale: Scale, seed: int, values: Values) -> Cell:
    """The row's cell with these values in place of what was chosen before, scored on validation data."""
    tried = dataclasses.replace(benchmark, overrides=(*benchmark.overrides, *values.items()))
    return dataclasses.replace(tried.cell(row, column, scale, seed), holdout="validation")


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
    at = "best" if trial.cells[0].validation_share else "last"  # as tables score the cells
    scores = tuple(record.score(tuning.column.averaged, at) for record in done)
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
    with _locked(results_dir):
        entries = {(entry["task"], entry["method"]): entry for entry in read_sweep(path)}
        for tuning, results in tried:
            chosen = best(results, tuning.metric)
            entries[tuning.column.task, tuning.row.id] = {
                "task": tuning.column.task,
                "method": tuning.row.id,
                "scale": scale.label,
                "seeds": list(seeds),
                "score": f"{tuning.column.averaged.partition('/')[2]} on validation data {scored_after(tuning)}",
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


def scored_after(tuning: Tuning) -> str:
    """At which round trials are scored, in words: that at which tables score their cells."""
    return "after the best round" if tuning.trials[0].cells[0].validation_share else "after the last round"


class Studies:
    """Optuna's studies in one journal, which processes share: whoever asks again gets the same trials.

    A trial that is not told, since its process was killed or its cells failed, stays open for the next start. Two
    processes may work on one trial: a cell's lock lets one of them compute it and the other find its record.
    """

    def __init__(self, results_dir: Path) -> None:
        self.results_dir = results_dir
        self.path = results_dir / "sweeps" / "journal.log"

    def ask(self, study: str, grid: Grid, count: int, higher_is_better: bool = True) -> dict[int, Values]:
        """Values of the study's first `count` trials by number, each another point of the grid, in a seeded order."""
        from optuna.trial import Trial as OptunaTrial

        with self._opened(study, grid, higher_is_better) as opened:
            known = opened.get_trials(deepcopy=False)[:count]
            trials = [OptunaTrial(opened, trial._trial_id) for trial in known]
            trials += [opened.ask() for _ in range(count - len(trials))]
            return {
                trial.number: {field: trial.suggest_categorical(field, list(grid[field])) for field in grid}
                for trial in trials
            }

    def tell(self, tried: Tried) -> None:
        """Keep the finished trials' mean scores; a trial whose score is undefined has failed."""
        from optuna.trial import TrialState

        for tuning, results in tried:
            with self._opened(tuning.study, tuning.grid, tuning.metric.higher_is_better) as opened:
                for one in results:
                    if one.finished:
                        ended = TrialState.COMPLETE if one.rung is None else TrialState.PRUNED
                        state = TrialState.FAIL if one.mean is None else ended
                        opened.tell(one.trial.number, one.mean, state, skip_if_finished=True)

    @contextmanager
    def _opened(self, name: str, grid: Grid, higher_is_better: bool = True) -> Iterator[optuna.Study]:
        import optuna
        from optuna.storages.journal import JournalFileBackend, JournalStorage

        class Points(optuna.samplers.GridSampler):
            """Trial n is point n of the shuffled grid."""

            def after_trial(self, *_: Any) -> None:
                """Do not stop the loop at the grid's end, as there is none: trials are asked for."""

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self.results_dir):
            try:
                storage = JournalStorage(JournalFileBackend(str(self.path)))
            except (ValueError, KeyError, TypeError) as error:
                raise UserError(
                    f"{self.path}: expected Optuna's journal, found a damaged one ({type(error).__name__}: {error}). "
                    f"Move it away: finished cells are kept as records, and a sweep finds them there."
                ) from None
            sampler = Points({field: list(values) for field, values in grid.items()}, seed=ORDER_SEED)
            yield optuna.create_study(
                storage=storage,
                sampler=sampler,
                study_name=name,
                direction="maximize" if higher_is_better else "minimize",
                load_if_exists=True,
            )


@contextmanager
def _locked(results_dir: Path) -> Iterator[None]:
    """Hold what the sweeps of a results directory share; a kill lets go."""
    from filelock import FileLock

    lock = results_dir / "locks" / "sweeps.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):
        yield


def _named(benchmark: Benchmark, scale: Scale, row: Row, values: Values) -> Row:
    written = ", ".join(f"{name.partition('.')[2] or name}={value}" for name, value in values.items())
    shown = ", ".join(benchmark.shown(*value, scale) for value in values.items())
    return row.changed(values, id=f"{row.id}[{written}]", name=f"{row.name} {shown}")


def _points(grid: Grid) -> Iterator[Values]:
    """Every combination of the grid's values."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))
