"""The results of a sweep's trials: the best one, and the file for them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from benchmarks.measures import Metric
from benchmarks.run_config import JSON
from benchmarks.sweeps.space import Tuning, settings_of
from benchmarks.sweeps.study import TunedStudy, mean_of
from benchmarks.sweeps.tuning import Values, read_sweep, write_sweep
from fedsim.locks import held

Trial = Mapping[str, Any]  # as in the sweep's file: number, values, mean, uplink_bytes, …


def choose(trials: Sequence[Trial], by: Metric, default: Values) -> tuple[Trial | None, list[Trial], str]:
    """Choose the trial with the best mean validation score.

    In a tie it prefers the definition's setting (`default`), then the fewest uplink bytes among trials with
    communication, then the trial that was tried first.

    Returns:
        The trial, or None if no complete trial has a score; all trials that tie with it; the reason for the choice.
    """
    ended = [trial for trial in trials if "given_up_after" not in trial and trial["mean"] is not None]
    best = by.best([trial["mean"] for trial in ended]) if ended else None
    ties = [trial for trial in ended if math.isclose(trial["mean"], best or 0.0, rel_tol=1e-12)]
    if len(ties) < 2:
        return next(iter(ties), None), ties, ""
    for trial in ties:
        if trial["settings"] == default:
            return trial, ties, "the definition's own setting"
    exchanging = [trial for trial in ties if trial["uplink_bytes"]]
    if not exchanging:
        return ties[0], ties, "the first tried, as nothing is exchanged"
    fewest = min(float(trial["uplink_bytes"]) for trial in exchanging)
    first, *others = (trial for trial in exchanging if float(trial["uplink_bytes"]) == fewest)
    return first, ties, "the first tried of those with the fewest uplink bytes" if others else "fewest uplink bytes"


def _rounds(last: int) -> str:
    """The rounds that score a trial, in words."""
    if last > 1:
        return f"in the mean of the last {last} rounds"
    return "after the last round" if last else "after the best round"


def result_of(study: TunedStudy) -> dict[str, JSON]:
    """A study for the sweep's file: this sweep's trials, and those that earlier sweeps finished."""
    tuning, frozen, numbers = study.tuning, study.frozen(), study.trials()
    ended = [trial for trial in frozen if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]
    numbers |= {trial.number: trial.params for trial in ended if trial.number not in numbers}
    trials = [_trial(tuning, frozen[number], numbers[number]) for number in sorted(numbers)]
    default = tuning.cells({})[0]
    best, ties, reason = choose(trials, tuning.metric, settings_of(default, tuning.space))
    score = tuning.column.averaged.partition("/")[2]
    return {
        "task": tuning.column.task,
        "method": tuning.row.id,
        "scale": tuning.benchmark.label(tuning.scale, [tuning.column]),
        "seeds": list(tuning.seeds),
        "score": f"{score} on validation data {_rounds(tuning.last_rounds)}",
        "metric": score,
        "study": tuning.study,
        "grid": dict(tuning.space),
        "budget": tuning.budget,
        "trials": trials,
        "best": best,
        "ties": [trial["number"] for trial in ties],
        "tie": reason,
    }


def _trial(tuning: Tuning, trial: FrozenTrial, values: Values) -> dict[str, JSON]:
    """A trial for the sweep's file; a pruned trial has the score at its rung."""
    scores = trial.user_attrs.get("scores", [*(trial.values or ())][:1])  # studies of earlier versions lack them
    mean, uplinks = mean_of(scores), trial.user_attrs.get("uplinks")
    outcome = {
        "number": trial.number,
        "values": dict(values),
        "settings": settings_of(tuning.cells(values)[0], values),
        "cells": trial.user_attrs.get("cells", []),
        "scores": scores,
        "mean": mean,
        "sd": statistics.stdev(scores) if mean is not None and len(scores) > 1 else None,
        "uplink_bytes": statistics.fmean(uplinks) if mean is not None and uplinks else None,
    }
    pruned_after = tuning.rungs[len(trial.intermediate_values) - 1] if trial.state == TrialState.PRUNED else None
    return outcome | ({"given_up_after": pruned_after} if pruned_after else {})


def keep(
    studies: Sequence[TunedStudy], results: Sequence[Mapping[str, JSON]], results_dir: Path, paths: Sequence[Path]
) -> None:
    """Write results to files, and mark each study's best trial.

    paths: the sweep's file, which keeps earlier studies; and optionally the file for definitions, with one study per
        task and method.
    """
    table, scale = studies[0].tuning.benchmark.id, studies[0].tuning.scale.id
    with held(results_dir / "locks" / "sweeps.lock"):
        for place in paths:
            write_sweep(place, table, scale, [*read_sweep(place), *results], by_study=place == paths[0])
    for study, result in zip(studies, results, strict=True):
        for name in ("best_trial", "adopted_trial")[: len(paths)]:
            if result["best"] and study.study.user_attrs.get(name) != result["best"]["number"]:
                study.study.set_user_attr(name, result["best"]["number"])
