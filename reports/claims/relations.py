"""A relation as the comparisons that it asserts. What they are judged on, print or records, is a Source."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, Protocol

from benchmarks.claims import At, AtMost, AverageBetter, Better, Cheaper, Reaches, Relation, Same, Similar
from reports.claims.case import Asked, Case, two_sided
from reports.claims.estimate import Estimate
from reports.claims.tables import Pair, Tables

Measure = Literal["score", "loss", "rounds"]


class Source(Protocol):
    """Numbers that relations are judged on; every answer is None where it holds none."""

    @property
    def tables(self) -> Tables:
        """The benchmarks."""

    def difference(self, pair: Pair, measure: Measure, relative: bool) -> Estimate | None:
        """By how much the row is better than the other: points, or percent of the other's."""

    def average_margin(self, relation: AverageBetter) -> Estimate | None:
        """Points above the best rival's average, mean over the rows."""

    def above_target(self, relation: Reaches, row: At, task: str) -> Estimate | None:
        """Points above the target (or, by printed costs, GB below the limit)."""

    def ratio(self, relation: Cheaper, pair: Pair) -> Estimate | None:
        """The rival's bytes over the row's."""

    def level(self, relation: AtMost, row: At, task: str) -> Estimate | None:
        """The score itself, in percent."""

    def gap(self, pair: Pair) -> Estimate | None:
        """The largest difference of two runs that should be one."""


def cases(relation: Relation, source: Source) -> Iterator[Case]:
    """Every comparison of a relation, with what the source knows of it."""
    match relation:
        case Better():
            yield from _better(relation, source)
        case Similar():
            yield from _similar(relation, source)
        case AverageBetter():
            places = dict.fromkeys(source.tables.benchmark(row).place for row in relation.rows)
            tasks = tuple(dict.fromkeys(task for row in relation.rows for task in source.tables.tasks(row)))
            asked = Asked(relation.by, strict=relation.by == 0)
            yield Case(" and ".join(places), tasks, "averages", asked, source.average_margin(relation))
        case Reaches():
            yield from _reaches(relation, source)
        case Cheaper():
            yield from _cheaper(relation, source)
        case AtMost():
            yield from _at_most(relation, source)
        case Same():
            yield from _same(relation, source)


def _names(tables: Tables, row: At, other: At) -> str:
    return f"{tables.row(row).name} − {tables.row(other).name}"


def _better(relation: Better, source: Source) -> Iterator[Case]:
    tables, unit = source.tables, " %" if relation.relative else ""
    asked = Asked(relation.by, relation.most, strict=relation.by == 0, unit=unit)
    seen = set()
    for pair in tables.pairs(relation.rows, relation.than, relation.tasks, relation.scores):
        estimate = source.difference(pair, relation.measure, relation.relative)
        if relation.measure == "score":
            name = f"{_names(tables, pair.row, pair.other)}, {tables.score_name(pair)}"
        elif relation.measure == "rounds":
            name = f"{_names(tables, pair.other, pair.row)}, rounds on {tables.score_name(pair)}"
        else:
            name = f"{_names(tables, pair.other, pair.row)}, loss on {tables.task(pair.row, pair.task)}"
        if name not in seen:  # a task has one loss, however many scores
            seen.add(name)
            yield Case(tables.benchmark(pair.row).place, (pair.task,), name, asked, estimate)


def _similar(relation: Similar, source: Source) -> Iterator[Case]:
    tables = source.tables
    for pair in tables.pairs((relation.row,), (relation.other,), relation.tasks, relation.scores):
        name = f"{_names(tables, pair.row, pair.other)}, {tables.score_name(pair)}"
        estimate = source.difference(pair, "score", False)
        yield Case(tables.benchmark(pair.row).place, (pair.task,), name, two_sided(relation.within), estimate)


def _reaches(relation: Reaches, source: Source) -> Iterator[Case]:
    tables = source.tables
    for row in relation.rows:
        for task in relation.target.percent:
            name = f"{tables.row(row).name}, {tables.task(row, task)}"
            estimate = source.above_target(relation, row, task)
            yield Case(tables.benchmark(row).place, (task,), name, Asked(0), estimate)


def _cheaper(relation: Cheaper, source: Source) -> Iterator[Case]:
    tables, asked = source.tables, Asked(relation.factor, places=relation.places, unit=" ×", is_signed=False)
    for row in relation.rows:
        for than in relation.than:
            for task in relation.tasks:
                name = f"{tables.row(than).name} / {tables.row(row).name}, {tables.task(row, task)}"
                estimate = source.ratio(relation, Pair(row, than, task))
                yield Case(tables.benchmark(row).place, (task,), name, asked, estimate)


def _at_most(relation: AtMost, source: Source) -> Iterator[Case]:
    tables, asked = source.tables, Asked(-math.inf, relation.percent, unit=" %", is_signed=False)
    for row in relation.rows:
        for task in tables.tasks(row, relation.tasks):
            name = f"{tables.row(row).name}, {tables.score_name(Pair(row, row, task, relation.score))}"
            yield Case(tables.benchmark(row).place, (task,), name, asked, source.level(relation, row, task))


def _same(relation: Same, source: Source) -> Iterator[Case]:
    tables = source.tables
    for task in tables.tasks(relation.row, relation.tasks):
        name = f"{_names(tables, relation.row, relation.other)}, {tables.task(relation.row, task)}"
        estimate = source.gap(Pair(relation.row, relation.other, task))
        yield Case(tables.benchmark(relation.row).place, (task,), name, two_sided(0), estimate)
