"""Methods over all tasks of a table at once: performance profiles and the probability of improvement.

Profiles after Dolan and Moré (2002), by distance from the best in points, as scores of 0 have no ratio; both over seeds
and tasks as Agarwal et al. (2021, section 4.3) do, with their stratified bootstrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from reports.evidence.records import Request
from reports.evidence.scores import known, scores_of

RESAMPLES = 1000
FEWEST_TASKS = 3  # below that, nothing is said of "tasks"
STEPS = 61


@dataclass(frozen=True)
class Profile:
    """For each distance from the best (points): the share of runs that lie no farther, mean over tasks."""

    method: str
    distances: tuple[float, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Improvement:
    """How probable it is that a run of one method beats a run of another on a task drawn at random.

    interval: 95 %, of the stratified bootstrap over seeds; None where a method has one seed on some task.
    """

    method: str
    than: str
    probability: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Profiles:
    """What is said of a request: its methods on the tasks that all of them were run on."""

    request: Request
    tasks: tuple[Column, ...]
    profiles: tuple[Profile, ...]
    improvements: tuple[Improvement, ...]
    seeds: tuple[int, int]  # fewest and most of a method on a task


Runs = dict[str, dict[str, np.ndarray]]  # method -> task -> scores in percent, one a seed, higher is better


def profiles_of(request: Request) -> Profiles | None:
    """None where no two methods were run on the same three tasks whose scores are percentages."""
    if request.benchmark.view.name != "scores":
        return None
    columns = [column for column in request.columns if metric(column.averaged).unit == "%"]
    runs = {row.id: _runs(request, row, columns) for row in request.rows}
    tasks = _common([frozenset(found) for found in runs.values()])
    if len(tasks) < FEWEST_TASKS:
        return None
    names = {row.id: row.name for row in request.rows}
    shown: Runs = {
        names[row]: {task: found[task] for task in tasks} for row, found in runs.items() if tasks <= set(found)
    }
    counts = [len(values) for found in shown.values() for values in found.values()]
    pairs = [(own, other) for own in shown for other in shown if own != other]
    return Profiles(
        request,
        tuple(column for column in columns if column.task in tasks),
        tuple(_profiles(shown)),
        tuple(_improvement(own, other, shown) for own, other in pairs),
        (min(counts), max(counts)),
    )


def _runs(request: Request, row: Row, columns: Sequence[Column]) -> dict[str, np.ndarray]:
    found = {}
    for column in columns:
        records = request.records_of(row, column)
        values = known(scores_of(records, column.averaged).at()) if records else ()
        if values:
            found[column.task] = metric(column.averaged).sign * np.array(values)
    return found


def _common(sets: Sequence[frozenset[str]]) -> frozenset[str]:
    """The tasks on which most cells, of two methods or more, can be compared."""
    options = {own & other for place, own in enumerate(sets) for other in sets[place + 1 :]}
    sizes = {option: len(option) * sum(option <= found for found in sets) for option in options}
    return max(sorted(options, key=sorted), key=lambda option: sizes[option], default=frozenset())


def _profiles(runs: Runs) -> list[Profile]:
    tasks = next(iter(runs.values()))
    best = {task: max(float(found[task].mean()) for found in runs.values()) for task in tasks}
    gaps = {method: {task: best[task] - found[task] for task in tasks} for method, found in runs.items()}
    widest = max(float(gap.max()) for found in gaps.values() for gap in found.values())
    distances = np.linspace(0.0, max(widest, 1.0), STEPS)
    return [
        Profile(
            method,
            tuple(map(float, distances)),
            tuple(float(np.mean([np.mean(gap <= at + 1e-9) for gap in found.values()])) for at in distances),
        )
        for method, found in gaps.items()
    ]


def _wins(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """1 where a run of the first beats one of the second, ½ for ties. own [n], other [m] -> [n, m]."""
    gap = own[:, None] - other[None, :]
    return np.asarray((gap > 1e-9) + 0.5 * (np.abs(gap) <= 1e-9))


def _improvement(own: str, other: str, runs: Runs) -> Improvement:
    rng = np.random.default_rng(0)
    pairs = [(runs[own][task], runs[other][task]) for task in runs[own]]
    probability = float(np.mean([_wins(*pair).mean() for pair in pairs]))
    if min(len(values) for pair in pairs for values in pair) < 2:
        return Improvement(own, other, probability, None)
    means = np.zeros(RESAMPLES)
    for first, second in pairs:
        drawn = [_shares(rng, len(values)) for values in (first, second)]
        means += ((drawn[0] @ _wins(first, second)) * drawn[1]).sum(axis=1) / len(pairs)
    low, high = np.quantile(means, (0.025, 0.975))
    return Improvement(own, other, probability, (float(low), float(high)))


def _shares(rng: np.random.Generator, n: int) -> np.ndarray:
    """The share that each of n seeds has of every resample, float64 [RESAMPLES, n]."""
    return np.asarray(rng.multinomial(n, [1 / n] * n, size=RESAMPLES) / n)
