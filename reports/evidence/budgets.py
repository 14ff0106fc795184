"""Scores under a budget: what a method reaches within so many bytes, and which method is then the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.measures import metric
from benchmarks.results import Find, RunResult, all_stages
from reports.evidence.scores import LATE_ROUNDS, known, round_scores
from reports.evidence.statistics import mean
from reports.evidence.traffic import sent_by_round

RESAMPLES = 1000
_SAME = 1e-9
Curves = Mapping[str, np.ndarray]  # method -> the scores of its seeds at each budget, [seeds, budgets]


def spent(record: RunResult, find: Find, directions: Sequence[str] = ("up",)) -> list[float] | None:
    """Payload bytes of one client after each round, a mean over clients, with all earlier runs.

    None where the record of an earlier run is missing.
    """
    stages = all_stages(record, find)
    if stages is None:
        return None
    before = sum(sent_by_round(stage, directions)[-1] / stage.cell.cohort_size for stage in stages[:-1])
    return [before + size / record.cell.cohort_size for size in sent_by_round(record, directions)[1:]]


def rounds_within(record: RunResult, budget: float, find: Find, directions: Sequence[str] = ("up",)) -> int:
    """How many rounds fit into the bytes of one client; 0 where not even the first does."""
    return sum(size <= budget for size in spent(record, find, directions) or ())


def score_within(
    record: RunResult, score: str, budget: float, find: Find, directions: Sequence[str] = ("up",), chosen: bool = False
) -> float | None:
    """The mean of up to the last three rounds that fit into a client's bytes, in the metric's unit; None without any.

    chosen: the round that is best on validation data among those that fit, in place of the mean.
    """
    rounds = rounds_within(record, budget, find, directions)
    values = round_scores(record, score)[:rounds]
    if chosen and rounds and record.chosen_by:
        by = round_scores(record, record.chosen_by)[:rounds]
        best = metric(record.chosen_by).best(by)
        values = values[: by.index(best) + 1][-1:] if best is not None else values[-1:]
    kept = values[-1:] if chosen else values[-LATE_ROUNDS:]
    return None if not kept or None in kept else metric(score).shown(mean(known(kept)))


def resampled_means(curve: np.ndarray) -> np.ndarray:
    """Means over seeds of every bootstrap resample, [RESAMPLES, budgets]; the same resamples of as many seeds."""
    n = len(curve)
    weights = np.random.default_rng(0).multinomial(n, [1 / n] * n, RESAMPLES) / n
    return np.asarray(weights @ curve)


def on_front(curves: Curves, sign: int = 1) -> dict[str, np.ndarray]:
    """Method -> the probability that no other is better at each budget, over resamples of their common seeds.

    curves: NaN where a method's first round costs more than the budget. sign: of a gain.
    """
    if not curves:
        return {}
    means = np.stack([sign * resampled_means(curve) for curve in curves.values()])
    means = np.where(np.isnan(means), -np.inf, means)
    best = means.max(axis=0)
    is_best = (means >= best - _SAME) & np.isfinite(best)
    return dict(zip(curves, is_best.mean(axis=1), strict=True))
