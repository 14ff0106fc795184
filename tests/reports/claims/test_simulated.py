"""Whole claims on simulated tables of known truth: wrong verdicts are no more than LEVEL, and true ones are found.

Seeds redraw splits of one pool, so their differences share a part (Nadeau and Bengio 2003): its share of the variance
is n_test / n for a test set of n_test of n examples, here a fifth. docs/statistics.md has the rules one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest

from benchmarks.claims import At, AverageBetter, Better, Relation, Similar
from benchmarks.experiment import Benchmark
from reports.claims.asked import counted
from reports.claims.cells import Pair, Tables
from reports.claims.decide import State, decide
from reports.evidence.inference import LEVEL, average_of, resampled
from reports.evidence.statistics import Estimate

TABLE = "fedsplitbert-table3"
SPLIT, QAT, FEDAVG, FEDPROX = (At(TABLE, row) for row in ("fedsplitbert", "fedsplitbert-qat", "fedavg", "fedprox"))
TASKS = ("qqp", "qnli", "rte", "wnli")
ACC = ("test/accuracy",)
REPLICATES = 300
SHARED = 0.2  # of the variance, and of the examples that are tested
RATIO = SHARED / (1 - SHARED)


@dataclass
class Drawn:
    """A Source that draws, for each comparison, one difference a seed around its truth; spread: in points."""

    tables: Tables
    truth: Callable[[str, str, str], float]
    rng: np.random.Generator
    seeds: int = 5
    spread: float = 1.0
    known: dict[tuple[str, str, str], np.ndarray] = field(default_factory=dict)

    def gains(self, row: str, rival: str, task: str) -> np.ndarray:
        key = row, rival, task
        if key not in self.known:
            common, own = self.rng.standard_normal(), self.rng.standard_normal(self.seeds)
            noise = math.sqrt(SHARED) * common + math.sqrt(1 - SHARED) * own
            self.known[key] = self.truth(*key) + self.spread * noise
        return self.known[key]

    def difference(self, relation: Better | Similar, pair: Pair) -> Estimate:
        gains = self.gains(pair.row.row, pair.other.row, pair.task)
        if isinstance(relation, Better) and relation.measure == "rounds":
            return counted([(round(gain), round(gain)) for gain in gains], RATIO)
        return resampled(list(gains), RATIO)

    def leads(self, relation: Better | Similar, pair: Pair) -> Iterator[tuple[At, Estimate | None]]:
        return iter(())

    def average_margin(self, relation: AverageBetter, rivals: Mapping[str, At]) -> Estimate:
        parts = [resampled(list(self.gains(SPLIT.row, rivals[TABLE].row, task)), RATIO) for task in TASKS]
        return average_of(parts)

    above_target = ratio = gigabytes = level = gap = None


def rates(
    table: Benchmark, relations: tuple[Relation, ...], truth: Callable[[str, str, str], float], **changes: float
) -> dict[State, float]:
    """How often each verdict is given."""
    rng, tables = np.random.default_rng(1), Tables({table.id: table})
    found = [decide(relations, Drawn(tables, truth, rng, **changes)).state for _ in range(REPLICATES)]  # type: ignore[arg-type]
    return {state: found.count(state) / REPLICATES for state in State}


def is_rare(rate: float) -> bool:
    """Whether so many of REPLICATES may be LEVEL of all, within three standard errors."""
    return rate <= LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / REPLICATES)


ALL = (Better((SPLIT, QAT), (FEDAVG, FEDPROX), tasks=TASKS, scores=ACC),)  # sixteen comparisons
SOME = (Better((SPLIT, QAT), (FEDAVG, FEDPROX), tasks=TASKS, scores=ACC, some=True),)
SIMILAR = (Similar(QAT, SPLIT, within=3.0, tasks=TASKS[:2], scores=ACC),)
ROUNDS = (Better((SPLIT,), (FEDAVG, FEDPROX), tasks=TASKS, scores=ACC, measure="rounds"),)
ENOUGH = tuple(Better((SPLIT, QAT), (FEDAVG,), tasks=(task,), scores=ACC, some=True) for task in TASKS)
AVERAGE = (AverageBetter((SPLIT,), (FEDAVG, FEDPROX), by=0.0),)


def one(task: str, other: float) -> Callable[[str, str, str], float]:
    """Nothing between FedSplitBERT and FedAvg on a task, so much everywhere else."""
    return lambda row, rival, on: 0.0 if (row, rival, on) == (SPLIT.row, FEDAVG.row, task) else other


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
@pytest.mark.parametrize(
    ("relations", "false", "true"),
    [
        (ALL, one("rte", 9.0), lambda *_: 1e-9),
        (SOME, lambda *_: 0.0, one("rte", -9.0)),
        (SIMILAR, lambda *_: 3.0, lambda *_: 3.0 - 1e-9),
        (SIMILAR, lambda *_: -3.0, lambda *_: 0.0),
        (ENOUGH, one("rte", -9.0), lambda row, *_: 1e-9 if row == SPLIT.row else -9.0),
        (AVERAGE, lambda _, rival, __: 0.0 if rival == FEDPROX.row else 9.0, lambda *_: 1e-9),
    ],
    ids=["all", "some", "similar, above", "similar, below", "enough", "average"],
)
def test_wrong_verdicts_are_rare(
    table3: Benchmark,
    seeds: int,
    relations: tuple[Relation, ...],
    false: Callable[[str, str, str], float],
    true: Callable[[str, str, str], float],
) -> None:
    """Of a claim that is just false, "supported"; of one that is just true, "contradicted"."""
    assert is_rare(rates(table3, relations, false, seeds=seeds)[State.YES])
    assert is_rare(rates(table3, relations, true, seeds=seeds)[State.NO])


@pytest.mark.parametrize("seeds", [7, 10])
def test_wrong_verdicts_on_rounds_are_rare(table3: Benchmark, seeds: int) -> None:
    found = rates(table3, ROUNDS, lambda *_: 0.0, seeds=seeds, spread=3.0)
    assert is_rare(found[State.YES])
    assert is_rare(found[State.NO])


def test_what_is_plain_is_found(table3: Benchmark) -> None:
    """Power, where five seeds differ by a point and the truth is several."""
    assert rates(table3, ALL, lambda *_: 5.0)[State.YES] > 0.9
    assert rates(table3, ALL, one("rte", 5.0))[State.YES] < 0.1
    assert rates(table3, ALL, lambda *_: -5.0)[State.NO] > 0.9
    assert rates(table3, SIMILAR, lambda *_: 0.0)[State.YES] > 0.8
    assert rates(table3, SIMILAR, lambda *_: 8.0)[State.NO] > 0.9
    assert rates(table3, AVERAGE, lambda *_: 1.5)[State.YES] > 0.9
    assert rates(table3, ROUNDS, lambda *_: 6.0, seeds=7)[State.YES] > 0.9


def test_without_the_corrections_they_would_not_be(table3: Benchmark) -> None:
    """A claim of sixteen comparisons that is just true: contradicted by chance, if each counted by itself."""
    rng, tables = np.random.default_rng(1), Tables({table3.id: table3})
    lost = 0
    for _ in range(REPLICATES):
        source = Drawn(tables, lambda *_: 0.0, rng)
        every = product((SPLIT.row, QAT.row), (FEDAVG.row, FEDPROX.row), TASKS)
        lost += any((resampled(list(source.gains(*key)), RATIO).interval or (0, 0))[1] < 0 for key in every)
    assert lost / REPLICATES > 0.4
