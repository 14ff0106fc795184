"""What came of a sweep's trials: read from the studies and the records, chosen from, and kept in the sweep's file."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from optuna.trial import FrozenTrial, TrialState

from benchmarks.found import cell_id_of, finished_record
from benchmarks.measures import Metric
from benchmarks.record import RunRecord, write_text
from benchmarks.settings import Settings
from benchmarks.spec import JSON, Cell
from benchmarks.sweeps.journal import Journal, importances, trials_of, values_of
from benchmarks.sweeps.loop import open_study
from benchmarks.sweeps.plan import Tuning
from benchmarks.sweeps.trial import mean_of, uplink_of
from benchmarks.tuning import Range, Values, read_sweep


@dataclass(frozen=True)
class Outcome:
    """What came of a trial.

    scores: on validation data, as records have them (None: undefined), of each seed that is finished. uplinks: bytes
    that each sent up. pruned_after: rounds; None where the trial was not pruned. is_open: whether a seed is missing.
    """

    number: int
    values: Values
    settings: Values
    cell_ids: tuple[str, ...] = ()
    scores: tuple[float | None, ...] = ()
    uplinks: tuple[int, ...] = ()
    pruned_after: int | None = None
    is_open: bool = False

    @property
    def mean(self) -> float | None:
        """Mean over seeds; None while a seed is missing or where one is undefined."""
        return None if self.is_open else mean_of(self.scores)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over seeds; None as for the mean, and for a single seed."""
        return statistics.stdev(self.scores) if self.mean is not None and len(self.scores) > 1 else None

    @property
    def uplink(self) -> float | None:
        """Bytes sent up by all clients in all rounds, mean over seeds; None where the mean score is."""
        return statistics.fmean(self.uplinks) if self.uplinks and self.mean is not None else None


@dataclass(frozen=True)
class Choice:
    """The best trial, all that tie with it, and why it was taken among them; "" where it is alone."""

    best: Outcome
    ties: tuple[Outcome, ...]
    reason: str = ""


def choose(outcomes: Sequence[Outcome], by: Metric, default: Values) -> Choice | None:
    """The best mean validation score; None where no trial that ran to its end has one.

    Of equals the definition's own setting is taken, else the fewest uplink bytes of those that exchange something.

    Args:
        outcomes: what came of the trials.
        by: the metric of the scores.
        default: the definition's own settings.
    """
    whole = _whole(outcomes)
    if not whole:
        return None
    best = by.best([one.mean for one in whole])
    ties = tuple(one for one in whole if math.isclose(one.mean or 0.0, best or 0.0, rel_tol=1e-12))
    if len(ties) == 1:
        return Choice(ties[0], ties)
    for one in ties:
        if one.settings == default:
            return Choice(one, ties, "the definition's own setting")
    exchanging = [one for one in ties if one.uplink]
    if exchanging:
        return Choice(min(exchanging, key=lambda one: one.uplink or 0.0), ties, "fewest uplink bytes")
    return Choice(ties[0], ties, "the first, as none exchanges anything")


def front(outcomes: Sequence[Outcome], by: Metric) -> list[Outcome]:
    """The trials that no other one equals in score and in uplink bytes and beats in one; equals are all in."""
    points = [(one, by.sign * (one.mean or 0.0), -(one.uplink or 0.0)) for one in _whole(outcomes)]
    return [
        one
        for one, score, less in points
        if not any(a >= score and b >= less and (a, b) != (score, less) for _, a, b in points)
    ]


def _whole(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if one.pruned_after is None and one.mean is not None]


def outcomes(tuning: Tuning, settings: Settings) -> tuple[list[Outcome], list[RunRecord]]:
    """What came of a sweep's trials, and of those that earlier sweeps of the study finished; and their records."""
    study, space = open_study(Journal(settings.results_dir), tuning), tuning.wanted.space
    trials = study.get_trials(deepcopy=False)
    ended = [trial for trial in trials if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]
    earlier = {trial.number: values_of(trial, space) for trial in ended if {*trial.params} == {*space}}
    numbers = {**earlier, **trials_of(study, tuning.wanted)}
    if tuning.wanted.is_grid:
        order = sorted(numbers, key=lambda number: [_place(space[name], numbers[number][name]) for name in space])
    else:
        order = sorted(numbers)
    results = [_outcome(tuning, trials[number], numbers[number], settings) for number in order]
    return [outcome for outcome, _ in results], [record for _, records in results for record in records]


def _outcome(tuning: Tuning, trial: FrozenTrial, values: Values, settings: Settings) -> tuple[Outcome, list[RunRecord]]:
    cells, told = tuning.cells(values), trial.user_attrs
    one = Outcome(trial.number, values, tuning.settings(values))
    if trial.state == TrialState.PRUNED and "scores" in told:
        ids, scores, uplinks = (tuple(told[name]) for name in ("cells", "scores", "uplinks"))
        return dataclasses.replace(
            one, cell_ids=ids, scores=scores, uplinks=uplinks, pruned_after=told["pruned_after"]
        ), []
    rung = trial.last_step if trial.state == TrialState.PRUNED else None
    found = [finished(cell if rung is None else _stopped(cell, rung), settings) for cell in cells]
    records = [record for record in found if record is not None]
    return dataclasses.replace(
        one,
        cell_ids=tuple(record.cell_id for record in records),
        scores=tuple(record.score(tuning.column.averaged, tuning.scored_at) for record in records),
        uplinks=tuple(uplink_of(record) for record in records),
        pruned_after=rung,
        is_open=len(records) < len(cells),
    ), records


def _stopped(cell: Cell, rounds: int) -> Cell:
    """The cell of a rung, as it was in the first sweeps, which kept a record of it."""
    return dataclasses.replace(cell, training=dataclasses.replace(cell.training, stop=rounds))


def finished(cell: Cell, settings: Settings) -> RunRecord | None:
    """The record of a cell, if it is finished."""
    if not any(settings.records_dir.glob(f"{cell.label}-*.json")):  # spares loading its data
        return None
    return finished_record(cell, cell_id_of(cell, settings), settings.records_dir)


def _place(values: Sequence[JSON] | Range, value: JSON) -> tuple[int, str]:
    """Where a value stands among a field's; those of earlier sweeps come behind."""
    listed = () if isinstance(values, Range) else list(values)
    return (listed.index(value), "") if value in listed else (len(listed), repr(value))


def entry_of(tuning: Tuning, results: Sequence[Outcome]) -> dict[str, JSON]:
    """A study as the sweep's file has it."""
    choice, score = choose(results, tuning.metric, tuning.default), tuning.column.averaged.partition("/")[2]
    return {
        "task": tuning.column.task,
        "method": tuning.row.id,
        "scale": tuning.benchmark.label(tuning.scale, [tuning.column]),
        "seeds": list(tuning.seeds),
        "score": f"{score} on validation data after the {tuning.scored_at} round",
        "metric": score,
        "study": tuning.study,
        "grid": {n: dataclasses.asdict(v) if isinstance(v, Range) else v for n, v in tuning.wanted.space.items()},
        "budget": tuning.wanted.budget,
        "trials": [_described(one) for one in results],
        "best": _described(choice.best) if choice else None,
        "ties": [one.number for one in choice.ties] if choice else [],
        "tie": choice.reason if choice else "",
        "front": [one.number for one in front(results, tuning.metric)] if tuning.wanted.pareto else None,
        "importances": importances([(one.values, one.mean) for one in _whole(results) if one.mean is not None]),
    }


def _described(one: Outcome) -> dict[str, JSON]:
    return {
        "number": one.number,
        "values": dict(one.values),
        "settings": dict(one.settings),
        "cells": list(one.cell_ids),
        "scores": list(one.scores),
        "mean": one.mean,
        "sd": one.deviation,
        "uplink_bytes": one.uplink,
    } | ({"given_up_after": one.pruned_after} if one.pruned_after is not None else {})


def write_sweep(path: Path, entries: Sequence[Mapping[str, JSON]], of: Tuning, only_one: bool = False) -> None:
    """Keep studies in a sweep's file, next to the other tasks, methods and studies that are in it.

    of: one of the tunings, for its benchmark and scale. only_one: of a task and method one study alone, as in the file
    that definitions read.
    """

    def key(entry: Mapping[str, JSON]) -> tuple[str, str, str]:
        return entry["task"], entry["method"], "" if only_one else entry.get("study", "")

    kept = {key(entry): entry for entry in [*read_sweep(path), *entries]}
    value = {"benchmark": of.benchmark.id, "scale": of.scale.id, "tunings": [kept[place] for place in sorted(kept)]}
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def keep(
    tunings: Sequence[Tuning],
    results: Sequence[Sequence[Outcome]],
    settings: Settings,
    path: Path,
    adopted: Path | None = None,
) -> list[Choice | None]:
    """Write a sweep's file, and say in each study which trial is the best; returns the choices.

    adopted: the file that definitions read, where it is to be written.
    """
    journal = Journal(settings.results_dir)
    entries = [entry_of(tuning, tried) for tuning, tried in zip(tunings, results, strict=True)]
    with journal.locked():
        write_sweep(path, entries, tunings[0])
        if adopted:
            write_sweep(adopted, entries, tunings[0], only_one=True)
    choices = []
    for tuning, tried in zip(tunings, results, strict=True):
        choices.append(choose(tried, tuning.metric, tuning.default))
        study = open_study(journal, tuning)
        for name in ("best_trial", *["adopted_trial"] * bool(adopted)):
            if (choice := choices[-1]) and study.user_attrs.get(name) != choice.best.number:
                study.set_user_attr(name, choice.best.number)
    return choices
