"""One function for each relation of `benchmarks.claims`: the comparisons that it asserts, with their evidence.

Each function takes the relation and a source of numbers, `PublishedNumbers` or `MeasuredNumbers`, which have the same
methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

from benchmarks.claims import At, AtMost, AverageBetter, Better, CostBound, Reaches, Relation, Same, Sends
from benchmarks.measures import TRAIN_LOSS, metric
from reports.claims.cells import Pair, Tables
from reports.claims.criterion import Criterion
from reports.claims.hypothesis import Assertion, Hypothesis
from reports.claims.measured import MeasuredNumbers
from reports.claims.published import PublishedNumbers
from reports.evidence.records import PAPER

Source: TypeAlias = PublishedNumbers | MeasuredNumbers
EQUAL = 1.0  # points within which two scores count as equal (docs/protocol.md)
_PASSES = Criterion(0.05, strict=True, is_signed=False)  # a p-value, as papers read it
_QUANTITIES = {
    "round": "communication per round",
    "run": "communication of a run",
    "form": "communication per round",
    "flops": "computation",
    "seconds": "training time per round",
    "time": "time of a run",
}


def _assertion(source: Source, row: At, task: str, name: str, criterion: Criterion, evidence: Any) -> Assertion:
    return Assertion(source.tables.benchmark(row).place, (task,), name, criterion, evidence)


def _difference(tables: Tables, row: At, other: At, score: str) -> str:
    """The difference as text: A − B; if lower scores are better, the other minus the row."""
    first, second = (row, other) if metric(score).higher_is_better else (other, row)
    minuend, subtrahend = tables.row(first).name, tables.row(second).name
    return f"{minuend} − {_operand(subtrahend)}"


def _operand(name: str) -> str:
    """A row's name as part of a formula, in brackets if it is a sum."""
    return f"({name})" if " + " in name else name


def _better(relation: Better, source: Source) -> Iterator[Assertion]:
    tables, measure, earlier, names = source.tables, relation.measure, relation.since, set()
    for pair in tables.pairs(relation.rows, relation.than, relation.tasks, relation.scores):
        rows = pair.row, pair.other
        gained, words, unit = _difference(tables, *rows, pair.score), None, ""
        if earlier and relation.relative:
            unit = " percentage points"
            names_by_side = [[tables.row(at).name for at in side] for side in zip(rows, earlier, strict=True)]
            gained = " − ".join(f"gain of {after} over {before}" for after, before in names_by_side)
        elif relation.relative:
            of, unit = metric(pair.score), " %"
            words = ("higher", "lower") if of.higher_is_better else ("lower", "higher")
            gained = f"{tables.row(pair.row).name} relative to {tables.row(pair.other).name}"
        elif earlier:
            place = tables.benchmark(earlier[0]).place
            where = f", {place}" if earlier[0].benchmark != pair.row.benchmark else ""
            gained = f"({gained}) − ({_difference(tables, *earlier, pair.score)}{where})"
        name = {
            "score": f"{gained}, {tables.score_name(pair)}",
            "rounds": f"rounds to target, {tables.row(rows[1]).name} − {_operand(tables.row(rows[0]).name)}, "
            f"{tables.score_name(pair)}",
            "loss": f"training loss, {_difference(tables, *rows, TRAIN_LOSS)}, {tables.task(pair.row, pair.task)}",
        }[measure]
        if name in names:  # a task has one loss, however many scores
            continue
        names.add(name)
        place, evidence = tables.benchmark(pair.row).place, source.difference(pair, relation)
        if relation.p_values and isinstance(source, PublishedNumbers):
            yield Assertion(place, (pair.task,), f"p of {name}", _PASSES, evidence)
            continue
        leads, runs = tuple(_leads(pair, relation, source)), source.identities(pair)
        compared = _difference(tables, *rows, pair.score) if measure == "score" and not relation.some else ""
        runs = runs and (measure, pair.score, *runs)
        equal = EQUAL if measure == "score" and metric(pair.score).unit and not relation.relative else None
        strict = relation.by == 0
        criterion = Criterion(relation.by, relation.most, strict=strict, unit=unit, words=words, equal=equal)
        yield Assertion(place, (pair.task,), name, criterion, evidence, leads, runs, compared)


def _leads(pair: Pair, relation: Better, source: Source) -> Iterator[Assertion]:
    """For "not much worse": the reference against rows without a treatment, which it must lead by the margin."""
    if -math.inf < relation.by < 0:
        criterion = Criterion(-relation.by, strict=True, unit=" %" if relation.relative else "")
        for idle, evidence in source.leads(pair, relation.relative):
            names = _difference(source.tables, pair.other, idle, pair.score)
            yield Assertion("", (pair.task,), f"{names}, {source.tables.score_name(pair)}", criterion, evidence)


def _average_better(relation: AverageBetter, source: Source) -> Iterator[Assertion]:
    tables = source.tables
    relation = replace(relation, rows=tables.independent(relation.rows))
    places = dict.fromkeys(tables.benchmark(row).place for row in relation.rows)
    tasks = tuple(dict.fromkeys(task for row in relation.rows for task in tables.tasks(row, relation.tasks)))
    criterion = Criterion(relation.by, relation.most, strict=relation.by == 0)
    rows = ", ".join(dict.fromkeys(tables.row(row).name for row in relation.rows))
    for rivals in relation.choices():
        others = [tables.row(at).name for at in rivals.values()]
        name = f"mean over tasks of {rows} minus {', '.join(others if len(set(others)) > 1 else others[:1])}"
        yield Assertion(" and ".join(places), tasks, name, criterion, source.average_margin(relation, rivals))


def _reaches(relation: Reaches, source: Source) -> Iterator[Assertion]:
    is_size = relation.below_bytes is not None and isinstance(source, PublishedNumbers)
    for row, task in product(relation.rows, relation.target.percent):
        where = source.tables.score_name(Pair(row, row, task, relation.target.score))
        quantity = "limit minus communication to target" if is_size else "best score minus target"
        criterion = Criterion(0, unit=" GB" if is_size else "")
        name = f"{quantity}, {source.tables.row(row).name}, {where}"
        yield _assertion(source, row, task, name, criterion, source.above_target(relation, row, task))


def _cost_bound(relation: CostBound, source: Source) -> Iterator[Assertion]:
    tables, unit = source.tables, " %" if relation.share else " ×"
    criterion = Criterion(relation.least, relation.most, places=relation.places, unit=unit, is_signed=False)
    for row, than, task in product(relation.rows, relation.than, relation.tasks):
        first, second = (_operand(tables.row(at).name) for at in (row, than))
        quantity = "communication to target" if relation.target else _QUANTITIES[relation.of]
        names = f"{quantity}, {f'{first} ÷ {second}' if relation.share else f'{second} ÷ {first}'}"
        is_form = relation.of == "form"  # depends on the encoder, not on the task
        place = tables.benchmark(row).scale(PAPER).backbone if is_form else tables.task(*tables.costed(row, task))
        name = f"{names}, {place}"
        yield _assertion(source, row, task, name, criterion, source.cost(relation, Pair(row, than, task)))


def _sends(relation: Sends, source: Source) -> Iterator[Assertion]:
    for row, task in product(relation.rows, relation.tasks):
        gigabyte = source.tables.benchmark(row).paper.gigabyte
        criterion = Criterion(relation.least / gigabyte, relation.most / gigabyte, unit=" GB", is_signed=False)
        name = f"communication of {relation.rounds} rounds, {source.tables.row(row).name}, "
        name += source.tables.task(row, task)
        yield _assertion(source, row, task, name, criterion, source.total(relation, row, task))


def _at_most(relation: AtMost, source: Source) -> Iterator[Assertion]:
    tables, unit = source.tables, f" {metric(relation.score).unit}".rstrip()
    criterion = Criterion(most=relation.percent, unit=unit, is_signed=False)
    for row in relation.rows:
        for task in tables.tasks(row, relation.tasks):
            name = f"{tables.row(row).name}, {tables.score_name(Pair(row, row, task, relation.score))}"
            yield _assertion(source, row, task, name, criterion, source.level(relation, row, task))


def _same(relation: Same, source: Source) -> Iterator[Assertion]:
    """Only the tasks that have evidence: code that makes two runs equal makes them equal on every task."""
    tables, (row, other), every = source.tables, relation.rows, []
    names = f"largest difference of a score, {tables.row(row).name} − {tables.row(other).name}"
    for task in tables.tasks(row, relation.tasks):
        evidence = source.gap(Pair(row, other, task))
        every.append(_assertion(source, row, task, f"{names}, {tables.task(row, task)}", Criterion(0, 0), evidence))
    run = [one for one in every if one.evidence is not None]
    yield from [one for one in run if one.evidence and one.evidence.interval] or run or every


_RELATIONS: dict[type, Callable[[Any, Source], Iterator[Assertion]]] = {
    Better: _better,
    AverageBetter: _average_better,
    Reaches: _reaches,
    CostBound: _cost_bound,
    Sends: _sends,
    AtMost: _at_most,
    Same: _same,
}


def hypotheses_of(relations: Iterable[Relation], source: Source) -> list[Hypothesis]:
    """Relations' assertions with evidence from a source of numbers; runs that two tables share count once."""
    hypotheses, compared = [], set()
    for relation in relations:
        every = [(one, (one.criterion, one.runs)) for one in _RELATIONS[type(relation)](relation, source)]
        assertions = tuple(one for one, key in every if not one.runs or key not in compared)
        compared |= {key for _, key in every}
        if assertions:
            one_is_enough = isinstance(relation, Better) and relation.some
            hypotheses += [Hypothesis(assertions)] if one_is_enough else [Hypothesis((one,)) for one in assertions]
    return hypotheses
