"""Scores within a budget of bytes, and the method that is best at each budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.measures import metric
from benchmarks.results import Find, RunResult, all_stages, chosen_round
from reports.evidence.inference import LEVEL
from reports.evidence.scores import LATE_ROUNDS, defined, round_scores
from reports.evidence.statistics import FEWEST_SEEDS, mean
from reports.evidence.traffic import sent_by_round

RESAMPLES, OUTER = 1000, 200
_SAME = 1e-9
Curves = Mapping[str, np.ndarray]  # method -> the scores of its seeds at each budget, [seeds, budgets]


def spent(record: RunResult, find: Find, directions: Sequence[str]) -> list[float] | None:
    """Payload bytes of one client after each round, a mean over clients, with all parent runs.

    None if the record of a parent run is missing.
    """
    stages = all_stages(record, find)
    if stages is None:
        return None
    before = sum(sent_by_round(stage, directions)[-1] / stage.cell.cohort_size for stage in stages[:-1])
    return [before + size / record.cell.cohort_size for size in sent_by_round(record, directions)[1:]]


def rounds_within(record: RunResult, budget: float, find: Find, directions: Sequence[str]) -> int:
    """How many rounds fit into a client's bytes."""
    return sum(size <= budget for size in spent(record, find, directions) or ())


def score_within(record: RunResult, score: str, budget: float, find: Find, directions: Sequence[str]) -> float | None:
    """The mean of up to the last three rounds within a client's bytes, in the metric's unit; None without a round."""
    kept = round_scores(record, score)[: rounds_within(record, budget, find, directions)][-LATE_ROUNDS:]
    return None if not kept or None in kept else metric(score).shown(mean(defined(kept)))


def chosen_within(
    record: RunResult, score: str, budget: float, find: Find, directions: Sequence[str], by: RunResult
) -> float | None:
    """The score in the round within a client's bytes that is best on validation data; None if it is not known.

    by: the run whose validation scores choose: the record, or the run whose predictions it corrects.
    """
    rounds = rounds_within(record, budget, find, directions)
    if not rounds:
        return None
    chosen = chosen_round([entry.scores for entry in by.rounds[:rounds]], by.chosen_by)
    value = round_scores(record, score)[chosen - 1]
    return None if value is None else metric(score).shown(value)


def resampled_means(curve: np.ndarray) -> np.ndarray:
    """Means over seeds of every bootstrap resample, the same ones for all curves: [RESAMPLES, budgets]."""
    n = len(curve)
    weights = np.random.default_rng(0).multinomial(n, [1 / n] * n, RESAMPLES) / n
    return np.asarray(weights @ curve)


def on_front(curves: Curves, sign: int = 1) -> dict[str, np.ndarray]:
    """Method -> the probability that no other method is better at each budget, and its band: [3, budgets].

    The probability comes from resamples of the seeds, each of them the same for all methods; its band comes from a
    double bootstrap. {} below FEWEST_SEEDS.

    Args:
        curves: Of the same seeds. A method with NaN, as its first round costs more, is not the best at that budget.
        sign: Of a gain.
    """
    n = min(map(len, curves.values()), default=0)
    if n < FEWEST_SEEDS:
        return {}
    every = sign * np.stack(list(curves.values()))  # [methods, seeds, budgets]
    every = np.where(np.isnan(every).any(axis=1, keepdims=True), np.nan, every)
    rng = np.random.default_rng(0)
    drawn = [_shares(every[:, rng.integers(n, size=n)]) for _ in range(OUTER)]
    both = np.stack([_shares(every), *np.quantile(drawn, (LEVEL, 1 - LEVEL), axis=0)], axis=1)
    return dict(zip(curves, both, strict=True))


def _shares(curves: np.ndarray) -> np.ndarray:
    """How often each method has the best mean at each budget, [methods, budgets]."""
    means = np.stack(list(map(resampled_means, curves)))
    means = np.where(np.isnan(means), -np.inf, means)
    best = means.max(axis=0)
    return np.asarray(((means >= best - _SAME) & np.isfinite(best)).mean(axis=1))
