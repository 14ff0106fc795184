"""The comparisons that a claim's relations assert, and whether each is met, whoever's numbers decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Any, Literal, Protocol

from benchmarks.claims import At, AtMost, AverageBetter, Better, Cheaper, Reaches, Relation, Same, Similar
from benchmarks.measures import TRAIN_LOSS, metric
from reports.claims.cells import Pair, Tables
from reports.evidence.statistics import Estimate, printed
from reports.pages.text import number

Measure = Literal["score", "loss", "rounds"]


class State(Enum):
    """What is known of a statement."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"
    MISSING = "missing"  # neither run nor printed


def every(states: Iterable[State], deciding: State = State.NO) -> State:
    """Of statements that are all asserted, one that is wrong decides; where one is enough, one that is right."""
    known = set(states)
    if deciding in known:
        return deciding
    return known.pop() if len(known) == 1 else State.UNDECIDED if known else State.MISSING


@dataclass(frozen=True)
class Asked:
    """Which values meet a comparison: from least to most; strict: more than the least."""

    least: float
    most: float = math.inf
    strict: bool = False
    places: int | None = None  # decimals to which a value is rounded first
    unit: str = ""
    is_signed: bool = True  # shown with its sign, as differences are

    def _seen(self, value: float) -> float:
        rounds = self.places is not None and math.isfinite(value)
        return float(printed(value, "round", self.places or 0)) if rounds else value

    def _is_above(self, value: float) -> bool:
        return self._seen(value) > self.least if self.strict else self._seen(value) >= self.least

    def meets(self, value: float) -> bool:
        return self._is_above(value) and self._seen(value) <= self.most

    def state(self, estimate: Estimate | None) -> State:
        if estimate is None:
            return State.MISSING
        if estimate.interval is None:
            return State.UNDECIDED
        low, high = estimate.interval
        if self.meets(low) and self.meets(high):
            return State.YES
        return State.NO if not self._is_above(high) or self._seen(low) > self.most else State.UNDECIDED

    def margin(self, value: float) -> float:
        return min(self._seen(value) - self.least, self.most - self._seen(value))

    @property
    def text(self) -> str:
        if math.isinf(self.least):
            return f"≤ {self.most:g}{self.unit}"
        if self.most == -self.least:
            return "0" if self.most == 0 else f"within ± {self.most:g}"
        least = f"{'>' if self.strict else '≥'} {self.least:g}{self.unit}"
        return least if math.isinf(self.most) else f"{least}, ≤ {self.most:g}{self.unit}"


@dataclass(frozen=True)
class Case:
    """One comparison: where, of what, what is asked and what is known."""

    place: str  # "Table III"
    tasks: tuple[str, ...]
    name: str
    asked: Asked
    estimate: Estimate | None  # None where it is neither run nor printed

    @property
    def state(self) -> State:
        return self.asked.state(self.estimate)

    @property
    def margin(self) -> float:
        value = None if self.estimate is None else self.estimate.value
        return math.inf if value is None else self.asked.margin(value)

    @property
    def text(self) -> str:
        if self.estimate is None or self.estimate.value is None:
            return f"{self.name}: undefined"
        sign = "+" if self.asked.is_signed else ""
        shown = f"{_signed(self.estimate.value, sign)}{self.asked.unit}"
        if self.estimate.interval is not None and self.estimate.interval[0] < self.estimate.interval[1]:
            low, high = (_signed(end, sign) for end in self.estimate.interval)
            shown += f" [{low}, {high}]"
        return f"{self.name} {shown}" + (f" ({self.estimate.note})" if self.estimate.note else "")


def _signed(value: float, sign: str) -> str:
    if math.isfinite(value):
        return number(value, sign)
    return "∞" if value > 0 else "−∞"


class Source(Protocol):
    """Numbers that relations are judged on; every answer is None where it holds none."""

    @property
    def tables(self) -> Tables:
        """The benchmarks."""

    def difference(self, pair: Pair, measure: Measure, relative: bool) -> Estimate | None:
        """By how much the row is better than the other, in the metric's unit, or percent of the other's."""

    def average_margin(self, relation: AverageBetter) -> Estimate | None:
        """By how much the average is better than the best rival's, mean over the rows."""

    def above_target(self, relation: Reaches, row: At, task: str) -> Estimate | None:
        """By how much the best score is better than the target (or, by printed costs, GB below the limit)."""

    def ratio(self, relation: Cheaper, pair: Pair) -> Estimate | None:
        """The rival's bytes over the row's."""

    def level(self, relation: AtMost, row: At, task: str) -> Estimate | None:
        """The score itself, in its metric's unit."""

    def gap(self, pair: Pair) -> Estimate | None:
        """The largest difference of two runs that should be one."""


def _names(tables: Tables, row: At, other: At, score: str = "") -> str:
    """What is subtracted from what: of a score of which less is better, the row from the other."""
    first, second = (row, other) if not score or metric(score).higher_is_better else (other, row)
    return f"{tables.row(first).name} − {tables.row(second).name}"


def _better(relation: Better, source: Source) -> Iterator[Case]:
    tables, unit = source.tables, " %" if relation.relative else ""
    asked = Asked(relation.by, relation.most, strict=relation.by == 0, unit=unit)
    seen = set()
    for pair in tables.pairs(relation.rows, relation.than, relation.tasks, relation.scores):
        estimate = source.difference(pair, relation.measure, relation.relative)
        if relation.measure == "score":
            name = f"{_names(tables, pair.row, pair.other, pair.score)}, {tables.score_name(pair)}"
        elif relation.measure == "rounds":
            name = f"{_names(tables, pair.other, pair.row)}, rounds on {tables.score_name(pair)}"
        else:
            name = f"{_names(tables, pair.row, pair.other, TRAIN_LOSS)}, loss on {tables.task(pair.row, pair.task)}"
        if name not in seen:  # a task has one loss, however many scores
            seen.add(name)
            yield Case(tables.benchmark(pair.row).place, (pair.task,), name, asked, estimate)


def _similar(relation: Similar, source: Source) -> Iterator[Case]:
    tables = source.tables
    for pair in tables.pairs((relation.row,), (relation.other,), relation.tasks, relation.scores):
        name = f"{_names(tables, pair.row, pair.other, pair.score)}, {tables.score_name(pair)}"
        estimate = source.difference(pair, "score", False)
        yield Case(
            tables.benchmark(pair.row).place, (pair.task,), name, Asked(-relation.within, relation.within), estimate
        )


def _reaches(relation: Reaches, source: Source) -> Iterator[Case]:
    tables = source.tables
    for row, task in product(relation.rows, relation.target.percent):
        name = f"{tables.row(row).name}, {tables.task(row, task)}"
        yield Case(tables.benchmark(row).place, (task,), name, Asked(0), source.above_target(relation, row, task))


def _cheaper(relation: Cheaper, source: Source) -> Iterator[Case]:
    tables, asked = source.tables, Asked(relation.factor, places=relation.places, unit=" ×", is_signed=False)
    for row, than, task in product(relation.rows, relation.than, relation.tasks):
        name = f"{tables.row(than).name} / {tables.row(row).name}, {tables.task(row, task)}"
        estimate = source.ratio(relation, Pair(row, than, task))
        yield Case(tables.benchmark(row).place, (task,), name, asked, estimate)


def _at_most(relation: AtMost, source: Source) -> Iterator[Case]:
    tables, unit = source.tables, f" {metric(relation.score).unit}".rstrip()
    asked = Asked(-math.inf, relation.percent, unit=unit, is_signed=False)
    for row in relation.rows:
        for task in tables.tasks(row, relation.tasks):
            name = f"{tables.row(row).name}, {tables.score_name(Pair(row, row, task, relation.score))}"
            yield Case(tables.benchmark(row).place, (task,), name, asked, source.level(relation, row, task))


def _same(relation: Same, source: Source) -> Iterator[Case]:
    tables = source.tables
    for task in tables.tasks(relation.row, relation.tasks):
        name = f"{_names(tables, relation.row, relation.other)}, {tables.task(relation.row, task)}"
        estimate = source.gap(Pair(relation.row, relation.other, task))
        yield Case(tables.benchmark(relation.row).place, (task,), name, Asked(0, 0), estimate)


def _average_better(relation: AverageBetter, source: Source) -> Iterator[Case]:
    places = dict.fromkeys(source.tables.benchmark(row).place for row in relation.rows)
    tasks = tuple(dict.fromkeys(task for row in relation.rows for task in source.tables.tasks(row)))
    asked = Asked(relation.by, strict=relation.by == 0)
    yield Case(" and ".join(places), tasks, "averages", asked, source.average_margin(relation))


_CASES: dict[type, Callable[[Any, Source], Iterator[Case]]] = {
    Better: _better,
    Similar: _similar,
    AverageBetter: _average_better,
    Reaches: _reaches,
    Cheaper: _cheaper,
    AtMost: _at_most,
    Same: _same,
}


def cases(relation: Relation, source: Source) -> Iterator[Case]:
    """Every comparison of a relation, with what the source knows of it."""
    return _CASES[type(relation)](relation, source)
