"""What came of a sweep's trials: read from studies and records, chosen from, and kept in the sweep's file."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from benchmarks.measures import Metric
from benchmarks.results import RunResult, write_text
from benchmarks.run_config import JSON, RunConfig
from benchmarks.running.found import cell_id_of, finished_result
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.journal import Journal, importances, trials_of, values_of
from benchmarks.sweeps.plan import Tuning, scored_at, settings_of
from benchmarks.sweeps.trial import mean_of, uplink_of
from benchmarks.sweeps.tuning import Range, Values, read_sweep

Trial = Mapping[str, Any]  # as the sweep's file has it: number, values, mean, uplink_bytes, …


def choose(trials: Sequence[Trial], by: Metric, default: Values) -> tuple[Trial | None, list[Trial], str]:
    """The trial with the best mean validation score, all that tie with it, and why it was taken among them.

    Of equals the definition's own setting is taken, else the fewest uplink bytes of those that exchange something.
    None is best where no trial that ran to its end has a score. default: the definition's own settings.
    """
    best = by.best([trial["mean"] for trial in whole(trials)]) if whole(trials) else None
    ties = [trial for trial in whole(trials) if math.isclose(trial["mean"], best or 0.0, rel_tol=1e-12)]
    if len(ties) < 2:
        return next(iter(ties), None), ties, ""
    for trial in ties:
        if trial["settings"] == default:
            return trial, ties, "the definition's own setting"
    exchanging = [trial for trial in ties if trial["uplink_bytes"]]
    if exchanging:
        return min(exchanging, key=lambda trial: float(trial["uplink_bytes"])), ties, "fewest uplink bytes"
    return ties[0], ties, "the first, as none exchanges anything"


def front(trials: Sequence[Trial], by: Metric) -> list[Trial]:
    """The trials that no other one equals in score and in uplink bytes and beats in one; equals are all in."""
    points = [(trial, by.sign * trial["mean"], -trial["uplink_bytes"]) for trial in whole(trials)]
    return [
        trial
        for trial, score, less in points
        if not any(a >= score and b >= less and (a, b) != (score, less) for _, a, b in points)
    ]


def whole(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that ran to their end and have a score."""
    return [trial for trial in trials if "given_up_after" not in trial and trial["mean"] is not None]


def result_of(tuning: Tuning, settings: RunOptions) -> dict[str, JSON]:
    """A study as the sweep's file has it: this sweep's trials, and those that earlier ones finished."""
    study = Journal(settings.results_dir).study(tuning)
    frozen = study.get_trials(deepcopy=False)
    ended = [trial for trial in frozen if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]
    numbers = trials_of(study, tuning)
    numbers |= {trial.number: values_of(trial, tuning.space) for trial in ended if trial.number not in numbers}
    trials = [_trial(tuning, frozen[number], values, settings) for number, values in numbers.items()]
    best, ties, reason = choose(trials, tuning.metric, settings_of(tuning.default, tuning.space))
    score = tuning.column.averaged.partition("/")[2]
    return {
        "task": tuning.column.task,
        "method": tuning.row.id,
        "scale": tuning.benchmark.label(tuning.scale, [tuning.column]),
        "seeds": list(tuning.seeds),
        "score": f"{score} on validation data after the {scored_at(tuning.default)} round",
        "metric": score,
        "study": tuning.study,
        "grid": {name: dataclasses.asdict(v) if isinstance(v, Range) else v for name, v in tuning.space.items()},
        "budget": tuning.budget,
        "trials": trials,
        "best": best,
        "ties": [trial["number"] for trial in ties],
        "tie": reason,
        "front": [trial["number"] for trial in front(trials, tuning.metric)] if tuning.pareto else None,
        "importances": importances([(trial["values"], trial["mean"]) for trial in whole(trials)]),
    }


def _trial(tuning: Tuning, trial: FrozenTrial, values: Values, settings: RunOptions) -> dict[str, JSON]:
    """A trial as the sweep's file has it; of a pruned one the scores at its rung."""
    cells, told, pruned = tuning.cells(values), dict(trial.user_attrs), {}
    if trial.state == TrialState.PRUNED:
        pruned = {"given_up_after": told.get("pruned_after", trial.last_step)}
    if "scores" not in told:  # the first sweeps kept records of rungs, too
        found = [finished(_stopped(cell, *pruned.values()), settings) for cell in cells]
        records = [record for record in found if record is not None]
        told["cells"] = [record.cell_id for record in records]
        told["scores"] = [record.score(tuning.column.averaged, scored_at(cells[0])) for record in records]
        told["uplinks"] = [uplink_of(record) for record in records]
    scores = told["scores"]
    mean = mean_of(scores) if pruned or len(scores) == len(cells) else None
    return {
        "number": trial.number,
        "values": dict(values),
        "settings": settings_of(cells[0], values),
        "cells": told["cells"],
        "scores": scores,
        "mean": mean,
        "sd": statistics.stdev(scores) if mean is not None and len(scores) > 1 else None,
        "uplink_bytes": None if mean is None else statistics.fmean(told["uplinks"]),
    } | pruned


def _stopped(cell: RunConfig, rounds: int | None = None) -> RunConfig:
    return dataclasses.replace(cell, training=dataclasses.replace(cell.training, stop=rounds)) if rounds else cell


def finished(cell: RunConfig, settings: RunOptions) -> RunResult | None:
    """The record of a cell, if it is finished."""
    if not any(settings.records_dir.glob(f"{cell.label}-*.json")):  # spares loading its data
        return None
    return finished_result(cell, cell_id_of(cell, settings), settings.records_dir)


def keep(
    tunings: Sequence[Tuning],
    results: Sequence[Mapping[str, JSON]],
    settings: RunOptions,
    path: Path,
    adopted: Path | None = None,
) -> None:
    """Write a sweep's file, and say in each study which trial is the best.

    adopted: the file that definitions read, where it is to be written.
    """
    journal = Journal(settings.results_dir)
    with journal.locked():
        write_sweep(path, results, tunings[0])
        if adopted:
            write_sweep(adopted, results, tunings[0], only_one=True)
    for tuning, result in zip(tunings, results, strict=True):
        study = journal.study(tuning)
        for name in ("best_trial", *["adopted_trial"] * bool(adopted)):
            if result["best"] and study.user_attrs.get(name) != result["best"]["number"]:
                study.set_user_attr(name, result["best"]["number"])


def write_sweep(path: Path, results: Sequence[Mapping[str, JSON]], of: Tuning, only_one: bool = False) -> None:
    """Keep studies in a sweep's file, next to the other tasks, methods and studies that are in it.

    of: one of the tunings, for its benchmark and scale. only_one: of a task and method one study alone, as in the file
    that definitions read.
    """

    def key(result: Mapping[str, JSON]) -> tuple[str, str, str]:
        return result["task"], result["method"], "" if only_one else result.get("study", "")

    kept = {key(result): result for result in [*read_sweep(path), *results]}
    value = {"benchmark": of.benchmark.id, "scale": of.scale.id, "tunings": [kept[place] for place in sorted(kept)]}
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
