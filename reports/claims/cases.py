"""The comparisons that a claim's relations assert, whoever's numbers decide them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, Protocol

from benchmarks.claims import (
    At,
    AtMost,
    AverageBetter,
    Better,
    Cheaper,
    CostShare,
    NotTold,
    Reaches,
    Relation,
    Same,
    Sends,
    Similar,
)
from benchmarks.measures import TRAIN_LOSS, metric
from reports.claims.asked import Asked, Unjudged
from reports.claims.cells import Pair, Tables
from reports.evidence.statistics import Estimate
from reports.pages.text import number

Measure = Literal["score", "loss", "rounds"]
_OF = {"bytes": "communication", "flops": "computation", "seconds": "time"}


@dataclass(frozen=True)
class Case:
    """One comparison: where, of what, what is asked and what is known.

    leads: of what it is held against over rows that do nothing. To be near it is evidence where these hold, too.
    """

    place: str  # "Table III"
    tasks: tuple[str, ...]
    name: str
    asked: Asked
    estimate: Estimate | None  # None where it is neither run nor printed
    leads: tuple[Case, ...] = ()

    @property
    def why_not(self) -> tuple[tuple[str, str], ...]:
        """Columns and why nothing is concluded from the number; empty where something is, or where there is none."""
        return self.estimate.why if isinstance(self.estimate, Unjudged) else ()

    @property
    def is_settled(self) -> bool:
        """Whether a claim about all columns is judged without it."""
        return isinstance(self.estimate, Unjudged) and self.estimate.is_settled

    @property
    def is_run(self) -> bool:
        """Whether there is something to show."""
        return self.estimate is not None and (not self.why_not or (self.estimate.value, self.estimate.n) != (None, 0))

    @property
    def judged(self) -> Estimate | None:
        """The number, where something may be concluded from it."""
        return None if self.why_not else self.estimate

    @property
    def margin(self) -> float:
        value = None if self.estimate is None else self.estimate.value
        return math.inf if value is None else self.asked.margin(value)

    @property
    def text(self) -> str:
        if self.estimate is None or self.estimate.value is None:
            return f"{self.name}: {'not run' if self.estimate is None else 'undefined'}"
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

    def difference(self, relation: Better | Similar, pair: Pair) -> Estimate | None:
        """By how much the row is better than the other by what the relation measures: in its unit, or percent."""

    def leads(self, relation: Better | Similar, pair: Pair) -> Iterator[tuple[At, Estimate | None]]:
        """By how much the other is better than each row that does nothing; none where that is not asked."""

    def average_margin(self, relation: AverageBetter, rivals: Mapping[str, At]) -> Estimate | None:
        """By how much the average is better than those rivals', one a table, mean over the rows."""

    def above_target(self, relation: Reaches, row: At, task: str) -> Estimate | None:
        """By how much the best score is better than the target (or, by printed costs, GB below the limit)."""

    def p_value(self, relation: NotTold, pair: Pair) -> Estimate | None:
        """Of a two-sided t test of the row's scores against the other's."""

    def ratio(self, relation: Cheaper, pair: Pair) -> Estimate | None:
        """The rival's bytes over the row's."""

    def share(self, relation: CostShare, pair: Pair) -> Estimate | None:
        """The row's cost in percent of the rival's."""

    def gigabytes(self, relation: Sends, row: At, task: str) -> Estimate | None:
        """What the rounds send, in the paper's GB."""

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
        if relation.measure == "score":
            name = f"{_names(tables, pair.row, pair.other, pair.score)}, {tables.score_name(pair)}"
        elif relation.measure == "rounds":
            name = f"{_names(tables, pair.other, pair.row)}, rounds on {tables.score_name(pair)}"
        else:
            name = f"{_names(tables, pair.row, pair.other, TRAIN_LOSS)}, loss on {tables.task(pair.row, pair.task)}"
        if name not in seen:  # a task has one loss, however many scores
            seen.add(name)
            estimate = source.difference(relation, pair)
            leads = _leads(relation, pair, -relation.by, source) if -math.inf < relation.by < 0 else ()
            yield Case(tables.benchmark(pair.row).place, (pair.task,), name, asked, estimate, leads)


def _similar(relation: Similar, source: Source) -> Iterator[Case]:
    tables, asked = source.tables, Asked(-relation.within, relation.within, unit=" %" if relation.relative else "")
    for pair in tables.pairs((relation.row,), (relation.other,), relation.tasks, relation.scores):
        name = f"{_names(tables, pair.row, pair.other, pair.score)}, {tables.score_name(pair)}"
        estimate, leads = source.difference(relation, pair), _leads(relation, pair, relation.within, source)
        yield Case(tables.benchmark(pair.row).place, (pair.task,), name, asked, estimate, leads)


def _leads(relation: Better | Similar, pair: Pair, margin: float, source: Source) -> tuple[Case, ...]:
    """Whether what a row is held against would be missed: whatever is near it within the margin may do nothing."""
    tables, asked = source.tables, Asked(margin, strict=True, unit=" %" if relation.relative else "")
    score = tables.score_name(pair)
    return tuple(
        Case("", (pair.task,), f"{_names(tables, pair.other, idle, pair.score)}, {score}", asked, estimate)
        for idle, estimate in source.leads(relation, pair)
    )


def _not_told(relation: NotTold, source: Source) -> Iterator[Case]:
    tables, asked = source.tables, Asked(relation.above, strict=True, is_signed=False)
    for pair in tables.pairs((relation.row,), (relation.other,), relation.tasks, relation.scores):
        name = f"p of {_names(tables, pair.row, pair.other, pair.score)}, {tables.score_name(pair)}"
        estimate = source.p_value(relation, pair)
        yield Case(tables.benchmark(pair.row).place, (pair.task,), name, asked, estimate)


def _reaches(relation: Reaches, source: Source) -> Iterator[Case]:
    tables = source.tables
    for row, task in product(relation.rows, relation.target.percent):
        name = f"{tables.row(row).name}, {tables.task(row, task)}"
        yield Case(tables.benchmark(row).place, (task,), name, Asked(0), source.above_target(relation, row, task))


def _cheaper(relation: Cheaper, source: Source) -> Iterator[Case]:
    tables = source.tables
    asked = Asked(relation.factor, relation.most, places=relation.places, unit=" ×", is_signed=False)
    for row, than, task in product(relation.rows, relation.than, relation.tasks):
        name = f"{tables.row(than).name} / {tables.row(row).name}, {tables.task(row, task)}"
        estimate = source.ratio(relation, Pair(row, than, task))
        yield Case(tables.benchmark(row).place, (task,), name, asked, estimate)


def _cost_share(relation: CostShare, source: Source) -> Iterator[Case]:
    tables = source.tables
    asked = Asked(relation.least, relation.most, places=relation.places, unit=" %", is_signed=False)
    for row, than, task in product(relation.rows, relation.than, relation.tasks):
        name = f"{tables.row(row).name} of {tables.row(than).name}, {_OF[relation.of]}, {tables.task(row, task)}"
        estimate = source.share(relation, Pair(row, than, task))
        yield Case(tables.benchmark(row).place, (task,), name, asked, estimate)


def _sends(relation: Sends, source: Source) -> Iterator[Case]:
    tables = source.tables
    for row, task in product(relation.rows, relation.tasks):
        gigabyte = tables.benchmark(row).paper.gigabyte
        asked = Asked(relation.least / gigabyte, relation.most / gigabyte, unit=" GB", is_signed=False)
        name = f"{tables.row(row).name}, {relation.rounds} rounds on {tables.task(row, task)}"
        yield Case(tables.benchmark(row).place, (task,), name, asked, source.gigabytes(relation, row, task))


def _at_most(relation: AtMost, source: Source) -> Iterator[Case]:
    tables, unit = source.tables, f" {metric(relation.score).unit}".rstrip()
    asked = Asked(-math.inf, relation.percent, unit=unit, is_signed=False)
    for row in relation.rows:
        for task in tables.tasks(row, relation.tasks):
            name = f"{tables.row(row).name}, {tables.score_name(Pair(row, row, task, relation.score))}"
            yield Case(tables.benchmark(row).place, (task,), name, asked, source.level(relation, row, task))


def _same(relation: Same, source: Source) -> Iterator[Case]:
    """Of the tasks that tell something: code that makes two runs one makes them one wherever it runs."""
    tables, found = source.tables, []
    for task in tables.tasks(relation.row, relation.tasks):
        name = f"{_names(tables, relation.row, relation.other)}, {tables.task(relation.row, task)}"
        estimate = source.gap(Pair(relation.row, relation.other, task))
        found.append(Case(tables.benchmark(relation.row).place, (task,), name, Asked(0, 0), estimate))
    known = [case for case in found if case.estimate is not None]
    yield from [case for case in known if case.estimate and case.estimate.interval] or known or found


def _average_better(relation: AverageBetter, source: Source) -> Iterator[Case]:
    tables = source.tables
    places = dict.fromkeys(tables.benchmark(row).place for row in relation.rows)
    tasks = tuple(dict.fromkeys(task for row in relation.rows for task in tables.tasks(row)))
    asked = Asked(relation.by, relation.most, strict=relation.by == 0)
    own = ", ".join(dict.fromkeys(tables.row(row).name for row in relation.rows))
    for rivals in relation.choices():
        others = [tables.row(at).name for at in rivals.values()]
        name = f"averages of {own} over {', '.join(others if len(set(others)) > 1 else others[:1])}"
        yield Case(" and ".join(places), tasks, name, asked, source.average_margin(relation, rivals))


_CASES: dict[type, Callable[[Any, Source], Iterator[Case]]] = {
    Better: _better,
    Similar: _similar,
    NotTold: _not_told,
    AverageBetter: _average_better,
    Reaches: _reaches,
    Cheaper: _cheaper,
    CostShare: _cost_share,
    Sends: _sends,
    AtMost: _at_most,
    Same: _same,
}


def cases(relation: Relation, source: Source) -> Iterator[Case]:
    """Every comparison of a relation, with what the source knows of it."""
    return _CASES[type(relation)](relation, source)
