"""Methods over all tasks of a table at once: performance profiles and the probability of improvement.

Profiles follow Dolan and Moré (2002), by distance from the best in points, as scores of 0 have no ratio. Both are over
seeds and tasks as in Agarwal et al. (2021, section 4.3), with their stratified bootstrap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from reports.evidence.records import Request
from reports.evidence.scores import known, scores_of

RESAMPLES = 1000
FEWEST_TASKS = 3  # below that, nothing is said about "tasks"
STEPS = 61
Runs = dict[str, dict[str, np.ndarray]]  # method -> task -> scores in percent, one a seed, higher is better


@dataclass(frozen=True)
class Improvement:
    """How probable it is that a run of one method beats a run of another on a task drawn at random.

    interval: 95 %, by the stratified bootstrap over seeds; None if a method has one seed on some task.
    """

    probability: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Profiles:
    """Methods on the tasks that all of them were run on.

    Args:
        distances: From the best, in points.
        shares: Method -> the share of runs that lie no farther than each distance, mean over tasks.
        improvements: (method, other) -> the probability that the method is better.
        seeds: Fewest and most of a method on a task.
    """

    request: Request
    tasks: tuple[Column, ...]
    distances: tuple[float, ...]
    shares: Mapping[str, tuple[float, ...]]
    improvements: Mapping[tuple[str, str], Improvement]
    seeds: tuple[int, int]


def profiles_of(request: Request) -> Profiles | None:
    """None if no two methods were run on the same three tasks whose scores are percentages."""
    if request.benchmark.view.name != "scores":
        return None
    columns = [column for column in request.columns if metric(column.averaged).unit == "%"]
    every = {row.name: _runs(request, row, columns) for row in request.rows}
    tasks = _common([frozenset(found) for found in every.values()])
    if len(tasks) < FEWEST_TASKS:
        return None
    runs = {name: {task: own[task] for task in tasks} for name, own in every.items() if tasks <= set(own)}
    counts = [len(values) for own in runs.values() for values in own.values()]
    shown = tuple(column for column in columns if column.task in tasks)
    improvements = {pair: improvement(*pair, runs) for pair in permutations(runs, 2)}
    return Profiles(request, shown, *profile_shares(runs), improvements, (min(counts), max(counts)))


def _runs(request: Request, row: Row, columns: Sequence[Column]) -> dict[str, np.ndarray]:
    found = {}
    for column in columns:
        records = request.records_of(row, column)
        values = known(scores_of(records, column.averaged).at()) if records else ()
        if values:
            found[column.task] = metric(column.averaged).sign * np.array(values)
    return found


def _common(sets: Sequence[frozenset[str]]) -> frozenset[str]:
    """The tasks on which two methods or more can be compared in the most cells."""
    options = {own & other for own, other in combinations(sets, 2)}
    sizes = {option: len(option) * sum(option <= found for found in sets) for option in options}
    return max(sorted(options, key=sorted), key=lambda option: sizes[option], default=frozenset())


def profile_shares(runs: Runs) -> tuple[tuple[float, ...], dict[str, tuple[float, ...]]]:
    """Distances from the best mean in points, and by method the share of runs that lie no farther."""
    tasks = next(iter(runs.values()))
    best = {task: max(float(own[task].mean()) for own in runs.values()) for task in tasks}
    gaps = {method: [best[task] - own[task] for task in tasks] for method, own in runs.items()}
    widest = max(float(gap.max()) for own in gaps.values() for gap in own)
    distances = np.linspace(0.0, max(widest, 1.0), STEPS)

    def shares(own: Sequence[np.ndarray]) -> tuple[float, ...]:
        return tuple(float(np.mean([np.mean(gap <= at + 1e-9) for gap in own])) for at in distances)

    return tuple(map(float, distances)), {method: shares(own) for method, own in gaps.items()}


def improvement(own: str, other: str, runs: Runs) -> Improvement:
    """How probable it is that a run of the first method beats one of the second."""
    pairs = [(runs[own][task], runs[other][task]) for task in runs[own]]
    probability = float(np.mean([_wins(*pair).mean() for pair in pairs]))
    if min(len(values) for pair in pairs for values in pair) < 2:
        return Improvement(probability, None)
    rng, means = np.random.default_rng(0), np.zeros(RESAMPLES)
    for pair in pairs:
        first, second = (rng.multinomial(len(own), [1 / len(own)] * len(own), RESAMPLES) / len(own) for own in pair)
        means += ((first @ _wins(*pair)) * second).sum(axis=1) / len(pairs)
    low, high = np.quantile(means, (0.025, 0.975))
    return Improvement(probability, (float(low), float(high)))


def _wins(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """1 if a run of the first beats one of the second, ½ for ties. own [n], other [m] -> [n, m]."""
    gap = own[:, None] - other[None, :]
    return np.asarray((gap > 1e-9) + 0.5 * (np.abs(gap) <= 1e-9))
