"""Scores within a budget of bytes, and the method that is best at each budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.measures import metric
from benchmarks.results import Find, RunResult, all_stages
from reports.evidence.inference import LEVEL
from reports.evidence.scores import LATE_ROUNDS, defined, round_scores
from reports.evidence.statistics import FEWEST_SEEDS, mean
from reports.evidence.traffic import sent_by_round

RESAMPLES, OUTER = 1000, 200
_SAME = 1e-9
Curves = Mapping[str, np.ndarray]  # method -> the scores of its seeds at each budget, [seeds, budgets]


def spent(record: RunResult, find: Find, directions: Sequence[str]) -> list[float] | None:
    """Payload bytes of one client after each round, a mean over clients, with all earlier runs.

    None if the record of an earlier run is missing.
    """
    stages = all_stages(record, find)
    if stages is None:
        return None
    before = sum(sent_by_round(stage, directions)[-1] / stage.cell.cohort_size for stage in stages[:-1])
    return [before + size / record.cell.cohort_size for size in sent_by_round(record, directions)[1:]]


def score_within(
    record: RunResult, score: str, budget: float, find: Find, directions: Sequence[str], chosen: bool = False
) -> float | None:
    """The mean of up to the last three rounds within a client's bytes, in the metric's unit; None without a round.

    chosen: take the round among those that is best on validation data, instead of the mean.
    """
    rounds = sum(size <= budget for size in spent(record, find, directions) or ())
    values = round_scores(record, score)[:rounds]
    if chosen and rounds and record.chosen_by:
        by = round_scores(record, record.chosen_by)[:rounds]
        best = metric(record.chosen_by).best(by)
        values = values[: by.index(best) + 1][-1:] if best is not None else values[-1:]
    kept = values[-1:] if chosen else values[-LATE_ROUNDS:]
    return None if not kept or None in kept else metric(score).shown(mean(defined(kept)))


def resampled_means(curve: np.ndarray, seed: int = 0) -> np.ndarray:
    """Means over seeds of every bootstrap resample, [RESAMPLES, budgets]."""
    n = len(curve)
    weights = np.random.default_rng(seed).multinomial(n, [1 / n] * n, RESAMPLES) / n
    return np.asarray(weights @ curve)


def on_front(curves: Curves, sign: int = 1) -> dict[str, np.ndarray]:
    """Method -> the probability that no other method is better at each budget, and its band: [3, budgets].

    The probability comes from resamples of each method's seeds, its band from a double bootstrap. Methods below
    FEWEST_SEEDS are left out.

    Args:
        curves: NaN if a method's first round costs more than the budget; then it is not the best there.
        sign: Of a gain.
    """
    several = {name: sign * curve for name, curve in curves.items() if len(curve) >= FEWEST_SEEDS}
    if not several:
        return {}
    rng = np.random.default_rng(0)
    drawn = [[curve[rng.integers(len(curve), size=len(curve))] for curve in several.values()] for _ in range(OUTER)]
    ends = np.quantile([_shares(each) for each in drawn], (LEVEL, 1 - LEVEL), axis=0)
    both = np.stack([_shares(list(several.values())), *ends], axis=1)
    return dict(zip(several, both, strict=True))


def _shares(curves: Sequence[np.ndarray]) -> np.ndarray:
    """How often each method has the best mean at each budget, [methods, budgets]."""
    means = np.stack([resampled_means(curve, seed) for seed, curve in enumerate(curves)])
    means = np.where(np.isnan(means), -np.inf, means)
    best = means.max(axis=0)
    return np.asarray(((means >= best - _SAME) & np.isfinite(best)).mean(axis=1))
