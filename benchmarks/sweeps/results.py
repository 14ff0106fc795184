"""The outcome of a sweep's trials: read from studies and records, chosen from, and kept in the sweep's file."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import optuna
from optuna.importance import get_param_importances
from optuna.trial import FrozenTrial, TrialState

from benchmarks.measures import Metric
from benchmarks.results import RunResult, write_text
from benchmarks.run_config import JSON, RunConfig
from benchmarks.running.completed import finished_result
from benchmarks.running.federation import cell_id_of
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.plan import Tuning, scored_at, settings_of
from benchmarks.sweeps.study import ORDER_SEED, TunedStudy, values_of
from benchmarks.sweeps.trials import mean_of, uplink_of
from benchmarks.sweeps.tuning import Range, Values, read_sweep
from fedsim.locks import held

Trial = Mapping[str, Any]  # as the sweep's file has it: number, values, mean, uplink_bytes, …


def choose(trials: Sequence[Trial], by: Metric, default: Values) -> tuple[Trial | None, list[Trial], str]:
    """Choose the trial with the best mean validation score.

    Of equals the definition's own setting is taken, else the fewest uplink bytes of those that exchange something.

    Args:
        trials: The trials of a study.
        by: The metric of the scores.
        default: The definition's own settings.

    Returns:
        The trial, or None if no trial that ran to its end has a score; all that tie with it; and why it was taken.
    """
    ended = whole(trials)
    best = by.best([trial["mean"] for trial in ended]) if ended else None
    ties = [trial for trial in ended if math.isclose(trial["mean"], best or 0.0, rel_tol=1e-12)]
    if len(ties) < 2:
        return next(iter(ties), None), ties, ""
    for trial in ties:
        if trial["settings"] == default:
            return trial, ties, "the definition's own setting"
    exchanging = [trial for trial in ties if trial["uplink_bytes"]]
    if exchanging:
        return min(exchanging, key=lambda trial: float(trial["uplink_bytes"])), ties, "fewest uplink bytes"
    return ties[0], ties, "the first, as none exchanges anything"


def whole(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that ran to their end and have a score."""
    return [trial for trial in trials if "given_up_after" not in trial and trial["mean"] is not None]


def result_of(tuning: Tuning, settings: RunOptions) -> dict[str, JSON]:
    """A study as the sweep's file has it: this sweep's trials, and those that earlier ones finished."""
    study = TunedStudy(tuning, settings.results_dir)
    frozen = study.frozen()
    ended = [trial for trial in frozen if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]
    numbers = study.trials()
    numbers |= {trial.number: values_of(trial, tuning.space) for trial in ended if trial.number not in numbers}
    trials = [_trial(tuning, frozen[number], numbers[number], settings) for number in sorted(numbers)]
    default = tuning.cells({})[0]
    best, ties, reason = choose(trials, tuning.metric, settings_of(default, tuning.space))
    score = tuning.column.averaged.partition("/")[2]
    return {
        "task": tuning.column.task,
        "method": tuning.row.id,
        "scale": tuning.benchmark.label(tuning.scale, [tuning.column]),
        "seeds": list(tuning.seeds),
        "score": f"{score} on validation data after the {scored_at(default)} round",
        "metric": score,
        "study": tuning.study,
        "grid": {name: dataclasses.asdict(v) if isinstance(v, Range) else v for name, v in tuning.space.items()},
        "budget": tuning.budget,
        "trials": trials,
        "best": best,
        "ties": [trial["number"] for trial in ties],
        "tie": reason,
        "front": [trial.number for trial in study.study.best_trials] if tuning.pareto else None,
        "importances": importances(study.study) if len(tuning.space) > 1 else {},
    }


def _trial(tuning: Tuning, trial: FrozenTrial, values: Values, settings: RunOptions) -> dict[str, JSON]:
    """A trial as the sweep's file has it; of a pruned one the score at its rung."""
    cells, pruned = tuning.cells(values), {}
    if trial.state == TrialState.PRUNED:
        outcome = {"cells": [], "scores": [trial.value], "uplinks": []} | trial.user_attrs
        pruned = {"given_up_after": outcome.get("pruned_after", trial.last_step)}
    else:
        records = [record for record in (finished(cell, settings) for cell in cells) if record is not None]
        scores = [record.score(tuning.column.averaged, scored_at(cells[0])) for record in records]
        cell_ids, uplinks = [record.cell_id for record in records], [uplink_of(record) for record in records]
        outcome = {"cells": cell_ids, "scores": scores, "uplinks": uplinks}
    mean = mean_of(outcome["scores"]) if pruned or len(outcome["scores"]) == len(cells) else None
    return {
        "number": trial.number,
        "values": dict(values),
        "settings": settings_of(cells[0], values),
        "cells": outcome["cells"],
        "scores": outcome["scores"],
        "mean": mean,
        "sd": statistics.stdev(outcome["scores"]) if mean is not None and len(outcome["scores"]) > 1 else None,
        "uplink_bytes": statistics.fmean(outcome["uplinks"]) if mean is not None and outcome["uplinks"] else None,
    } | pruned


def finished(cell: RunConfig, settings: RunOptions) -> RunResult | None:
    """The record of a cell, if it is finished."""
    if not any(settings.records_dir.glob(f"{cell.label}-*.json")):  # spares loading its data
        return None
    return finished_result(cell, cell_id_of(cell, settings), settings.records_dir)


def importances(study: optuna.Study) -> dict[str, float]:
    """The share of the scores' variance that each field explains, by fANOVA (Hutter et al. 2014); they sum to 1.

    Empty for fewer than two fields, equal scores, or a study whose values were extended.
    """
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=ORDER_SEED)
    with suppress(ValueError, RuntimeError):
        return get_param_importances(study, evaluator=evaluator, target=lambda trial: trial.values[0])
    return {}


def keep(
    tunings: Sequence[Tuning],
    results: Sequence[Mapping[str, JSON]],
    settings: RunOptions,
    path: Path,
    adopted: Path | None = None,
) -> None:
    """Write a sweep's file, next to earlier studies in it, and mark in each study which trial is the best.

    adopted: the file that definitions read, if it is to be written; it has one study for each task and method.
    """
    of = tunings[0].benchmark.id, tunings[0].scale.id
    with held(settings.results_dir / "locks" / "sweeps.lock"):
        for place in filter(None, (path, adopted)):
            entries = [*read_sweep(place), *results]
            kept = {(e["task"], e["method"], e.get("study", "") if place == path else ""): e for e in entries}
            value = {"benchmark": of[0], "scale": of[1], "tunings": [kept[key] for key in sorted(kept)]}
            write_text(place, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    for tuning, result in zip(tunings, results, strict=True):
        study = TunedStudy(tuning, settings.results_dir).study
        for name in ("best_trial", *["adopted_trial"] * bool(adopted)):
            if result["best"] and study.user_attrs.get(name) != result["best"]["number"]:
                study.set_user_attr(name, result["best"]["number"])
