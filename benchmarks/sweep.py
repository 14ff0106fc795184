"""Tuning: a space of settings, tried on validation data, every method with the same budget.

Records are the truth of a sweep too; Optuna hands the points out and keeps what came of them (`studies`).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.measures import metric
from benchmarks.record import RunRecord, write_text
from benchmarks.settings import Settings
from benchmarks.spec import JSON, Benchmark, Cell, Column, Row, Scale, digest
from benchmarks.studies import Studies, importances, locked
from benchmarks.trials import WAVE, Outcome, Trial, Tried, Tuning, best, front, tied
from benchmarks.tuning import Range, Space, Values, Wanted, read_sweep, survivors


def trial_cell(benchmark: Benchmark, row: Row, column: Column, scale: Scale, seed: int, values: Values) -> Cell:
    """The row's cell with the search's changes, these values in place of what was chosen, scored on validation data."""
    shorter = benchmark.search(scale).changes.items()
    overrides = (*shorter, *benchmark.overrides, *values.items(), ("holdout", "validation"))
    # What a cell begins from saw no more than it did.
    found = dataclasses.replace(benchmark, overrides=overrides).cell(row, column, scale, seed)
    # One fixed partition is the tables': a search with seeds of its own has their data, too.
    return dataclasses.replace(found, data_seed=None) if seed in benchmark.search(scale).seeds else found


def declared(benchmark: Benchmark, scale: Scale, space: Space) -> Wanted:
    """What is tried of a row with these fields, as the scale's search says."""
    search = benchmark.search(scale)
    return Wanted(space, search.trials, tuple(search.rungs))


def plan_tuning(
    benchmark: Benchmark,
    scale: Scale,
    row: Row,
    column: Column,
    seeds: Sequence[int],
    settings: Settings,
    asked: Wanted | None = None,
) -> Tuning:
    """A method's trials on a task, with those that an earlier start left open and those that earlier sweeps finished.

    asked: what is tried; None: the whole grid that the definition declares. UserError where the row's data is missing.
    """
    from benchmarks.federation import load_inputs

    def cells(values: Values) -> tuple[Cell, ...]:
        return tuple(trial_cell(benchmark, row, column, scale, seed, values) for seed in seeds)

    def trial(number: int, values: Values, ended: int | None = None) -> Trial:
        return Trial(number, values, _named(benchmark, scale, row, values), cells(values), ended)

    asked = asked or declared(benchmark, scale, benchmark.search(scale).grids[row.id])
    _try_out(asked.space, cells)
    space, rungs = asked.space, () if asked.pareto else in_rounds(asked.rungs, cells({})[0].training.rounds)
    inputs = load_inputs(cells({})[0], settings).digests
    # As cells are named by what decides them, so is what is drawn from them: other data is another study. Values are
    # no part of it: a sweep with further ones of the same fields extends the study.
    decides: dict[str, JSON] = {
        "fields": sorted(space),
        "score": column.averaged,
        "cells": [without_fields(cell.to_json(), space) for cell in cells({})],
        "inputs": dict(inputs),
        "objectives": ["score", "uplink"] if asked.pareto else ["score"],
    }
    study = f"{benchmark.id}/{scale.id}/{column.task}/{row.id}/{digest(decides | {'rungs': rungs}, 8)}"
    better = metric(column.averaged).higher_is_better
    studies = Studies(settings.results_dir)
    drawn = studies.ask(study, space, asked.budget, better, asked.pareto)
    found = [trial(number, values) for number, values in drawn.items()]
    brackets = [found] if asked.is_grid else [found[at : at + WAVE] for at in range(0, len(found), WAVE)]
    earlier = studies.earlier(study, space, better, asked.pareto).items()
    settled = [trial(number, values, ended) for number, (values, ended) in earlier if number not in drawn]
    if asked.is_grid:
        for each in (*brackets, settled):
            each.sort(key=lambda one: [_place(space[name], one.values[name]) for name in space])
    every = (*(one for bracket in brackets for one in bracket), *settled)
    return Tuning(row, column, space, study, every, rungs, tuple(map(tuple, brackets)), asked.pareto)


def in_rounds(rungs: Sequence[float], rounds: int) -> tuple[int, ...]:
    """Rungs in whole rounds; one below 1 is a share of a row's own rounds, at least one of them."""
    return tuple(int(rung) if rung >= 1 else max(1, round(rung * rounds)) for rung in rungs)


def _try_out(space: Space, cells: Callable[[Values], tuple[Cell, ...]]) -> None:
    """UserError where a field does not take one of its values, before any trial is in the journal."""
    first = {name: values.low if isinstance(values, Range) else values[0] for name, values in space.items()}
    for name, values in space.items():
        for value in (values.low, values.high) if isinstance(values, Range) else values:
            cells({**first, name: value})


def _place(values: Sequence[JSON] | Range, value: JSON) -> tuple[int, str]:
    """Where a value stands among a field's; those of earlier sweeps come behind."""
    listed = () if isinstance(values, Range) else list(values)
    return (listed.index(value), "") if value in listed else (len(listed), repr(value))


def without_fields(cell: dict[str, JSON], names: Iterable[str]) -> dict[str, JSON]:
    """A cell's JSON without these fields, nor those of the cells from which it begins."""
    found: dict[str, JSON] = json.loads(json.dumps(cell))
    for name in names:
        *groups, last = name.split(".")
        group: JSON = found
        for key in groups:
            group = group.get(key) if isinstance(group, dict) else None
        if isinstance(group, dict):
            group.pop(last, None)
    if isinstance(found.get("initial"), dict):
        found["initial"] = without_fields(found["initial"], names)
    return found


def going_on(tuning: Tuning, records: Mapping[str, RunRecord], stage: int) -> list[Trial]:
    """The trials that are left after so many rungs: those with the best mean scores; records: by cells' spec_id.

    Those that tie with the last of them go on, too: a rung at which a method has learned nothing tells none apart.
    """
    left = []
    for bracket in tuning.tried:
        trials = list(bracket)
        for rung in tuning.rungs[:stage]:
            known = [
                one for one in (_outcome(tuning, trial, records, rung) for trial in trials) if one.mean is not None
            ]
            known.sort(key=lambda one: -tuning.metric.sign * (one.mean or 0.0))  # of equals the first
            kept = survivors(len(bracket))
            trials = [one.trial for place, one in enumerate(known) if place < kept or one.mean == known[kept - 1].mean]
        left += trials
    return left


def stage_cells(tuning: Tuning, records: Mapping[str, RunRecord], stage: int) -> list[tuple[Trial, Cell]]:
    """What is run after so many rungs: the cells of the next rung, or the whole ones after the last.

    Trials of earlier sweeps come where they ended: their records are there.
    """
    rung = (*tuning.rungs, None)[stage]
    settled = [trial for trial in tuning.settled if trial.ended == (rung or 0)]
    return [(trial, cell) for trial in (*going_on(tuning, records, stage), *settled) for cell in trial.cells_at(rung)]


def outcomes(tuning: Tuning, records: Mapping[str, RunRecord]) -> list[Outcome]:
    """What came of each trial, at the last rung that it reached; records: by their cells' spec_id."""
    found = {
        trial.number: _outcome(tuning, trial, records, rung)
        for stage, rung in enumerate((*tuning.rungs, None))
        for trial in going_on(tuning, records, stage)
    } | {trial.number: _outcome(tuning, trial, records, trial.ended or None) for trial in tuning.settled}
    return [found[trial.number] for trial in tuning.trials]


def _outcome(tuning: Tuning, trial: Trial, records: Mapping[str, RunRecord], rung: int | None) -> Outcome:
    done = [records[cell.spec_id] for cell in trial.cells_at(rung) if cell.spec_id in records]
    scores = tuple(record.score(tuning.column.averaged, tuning.scored_at) for record in done)
    uplinks = tuple(sum(entry.up_bytes for entry in record.rounds) for record in done)
    return Outcome(trial, tuple(record.cell_id for record in done), scores, rung, uplinks)


def write_sweep(
    path: Path,
    benchmark: Benchmark,
    scale: Scale,
    seeds: Sequence[int],
    tried: Tried,
    results_dir: Path,
    choices: bool = False,
) -> None:
    """Keep what was tried in a sweep's file, beside the other tasks, methods and studies that are in it.

    choices: of a task and method one study alone, as in the file that definitions read.
    """

    def key(entry: Mapping[str, JSON]) -> tuple[str, str, str]:
        return entry["task"], entry["method"], "" if choices else entry.get("study", "")

    new = [_entry(benchmark, scale, seeds, tuning, results) for tuning, results in tried]
    with locked(results_dir):
        entries = {key(entry): entry for entry in [*read_sweep(path), *new]}
        value = {"benchmark": benchmark.id, "scale": scale.id, "tunings": [entries[at] for at in sorted(entries)]}
        write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _entry(
    benchmark: Benchmark, scale: Scale, seeds: Sequence[int], tuning: Tuning, results: Sequence[Outcome]
) -> dict[str, JSON]:
    chosen, score = best(results, tuning.metric), tuning.column.averaged.partition("/")[2]
    finished = [(one.trial.values, one.mean) for one in results if one.rung is None and one.mean is not None]
    return {
        "task": tuning.column.task,
        "method": tuning.row.id,
        "scale": benchmark.label(scale, [tuning.column]),
        "seeds": list(seeds),
        "score": f"{score} on validation data after the {tuning.scored_at} round",
        "metric": score,
        "study": tuning.study,
        "grid": {name: dataclasses.asdict(v) if isinstance(v, Range) else v for name, v in tuning.space.items()},
        "budget": sum(map(len, tuning.tried)),
        "trials": [_described(one) for one in results],
        "best": _described(chosen) if chosen else None,
        "ties": [one.trial.number for one in tied(results, tuning.metric)],
        "front": [one.trial.number for one in front(results, tuning.metric)] if tuning.pareto else None,
        "importances": importances(finished),
    }


def _described(one: Outcome) -> dict[str, JSON]:
    return {
        "number": one.trial.number,
        "values": dict(one.trial.values),
        "settings": dict(one.trial.settings),
        "cells": list(one.cell_ids),
        "scores": list(one.scores),
        "mean": one.mean,
        "sd": one.deviation,
        "uplink_bytes": one.uplink,
    } | ({"given_up_after": one.rung} if one.rung is not None else {})


def _named(benchmark: Benchmark, scale: Scale, row: Row, values: Values) -> Row:
    written = ", ".join(f"{name.partition('.')[2] or name}={value}" for name, value in values.items())
    shown = ", ".join(benchmark.shown(*value, scale) for value in values.items())
    return row.changed(values, id=f"{row.id}[{written}]", name=f"{row.name} {shown}")
