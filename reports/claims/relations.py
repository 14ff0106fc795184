"""One function for each relation of `benchmarks.claims`: the comparisons that it asserts, with their evidence.

Each function takes the relation and a source of numbers, `Published` or `Measured`, which have the same methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

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
from reports.claims.cells import Pair, Tables
from reports.claims.criterion import Criterion
from reports.claims.hypothesis import Comparison, Hypothesis
from reports.claims.measured import Measured
from reports.claims.published import Published

Source: TypeAlias = Published | Measured
# What a share is of -> the cost that a source of numbers knows, and its name.
_COSTS = {"bytes": ("round", "communication"), "flops": ("flops", "computation"), "seconds": ("seconds", "time")}


def _comparison(source: Source, row: At, task: str, name: str, criterion: Criterion, found: Any) -> Comparison:
    return Comparison(source.tables.benchmark(row).place, (task,), name, criterion, found)


def _difference(tables: Tables, row: At, other: At, score: str) -> str:
    """What is subtracted from what: of a score of which less is better, the row from the other."""
    first, second = (row, other) if metric(score).higher_is_better else (other, row)
    return f"{tables.row(first).name} − {tables.row(second).name}"


def _better(relation: Better, source: Source) -> Iterator[Comparison]:
    tables, unit = source.tables, " %" if relation.relative else ""
    criterion = Criterion(relation.by, relation.most, strict=relation.by == 0, unit=unit)
    names = set()
    for pair in tables.pairs(relation.rows, relation.than, relation.tasks, relation.scores):
        if relation.measure == "score":
            name = f"{_difference(tables, *pair.rows, pair.score)}, {tables.score_name(pair)}"
        elif relation.measure == "rounds":
            name = f"{tables.row(pair.other).name} − {tables.row(pair.row).name}, rounds on {tables.score_name(pair)}"
        else:
            name = f"{_difference(tables, *pair.rows, TRAIN_LOSS)}, loss on {tables.task(pair.row, pair.task)}"
        if name not in names:  # a task has one loss, however many scores
            names.add(name)
            found = _comparison(source, pair.row, pair.task, name, criterion, source.difference(pair, relation))
            yield replace(found, leads=tuple(_leads(pair, relation, source)))


def _leads(pair: Pair, relation: Better, source: Source) -> Iterator[Comparison]:
    """If not much worse is enough, the reference against rows that do nothing: it has to lead them by the margin."""
    if -math.inf < relation.by < 0:
        criterion = Criterion(-relation.by, strict=True, unit=" %" if relation.relative else "")
        for idle, found in source.leads(pair, relation.relative):
            names = _difference(source.tables, pair.other, idle, pair.score)
            yield Comparison("", (pair.task,), f"{names}, {source.tables.score_name(pair)}", criterion, found)


def _similar(relation: Similar, source: Source) -> Iterator[Comparison]:
    """Neither much worse nor much better; a failed reference counts."""
    better = Better(
        (relation.row,),
        (relation.other,),
        by=-relation.within,
        most=relation.within,
        tasks=relation.tasks,
        scores=relation.scores,
        relative=relation.relative,
        over_failed=True,
    )
    yield from _better(better, source)


def _not_told(relation: NotTold, source: Source) -> Iterator[Comparison]:
    tables, criterion = source.tables, Criterion(relation.above, strict=True, is_signed=False)
    for pair in tables.pairs((relation.row,), (relation.other,), relation.tasks, relation.scores):
        name = f"p of {_difference(tables, *pair.rows, pair.score)}, {tables.score_name(pair)}"
        yield _comparison(source, pair.row, pair.task, name, criterion, source.p_value(pair, relation.printed))


def _average_better(relation: AverageBetter, source: Source) -> Iterator[Comparison]:
    tables = source.tables
    places = dict.fromkeys(tables.benchmark(row).place for row in relation.rows)
    tasks = tuple(dict.fromkeys(task for row in relation.rows for task in tables.tasks(row)))
    criterion = Criterion(relation.by, relation.most, strict=relation.by == 0)
    rows = ", ".join(dict.fromkeys(tables.row(row).name for row in relation.rows))
    for rivals in relation.choices():
        others = [tables.row(at).name for at in rivals.values()]
        name = f"averages of {rows} over {', '.join(others if len(set(others)) > 1 else others[:1])}"
        yield Comparison(" and ".join(places), tasks, name, criterion, source.average_margin(relation, rivals))


def _reaches(relation: Reaches, source: Source) -> Iterator[Comparison]:
    for row, task in product(relation.rows, relation.target.percent):
        name = f"{source.tables.row(row).name}, {source.tables.task(row, task)}"
        yield _comparison(source, row, task, name, Criterion(0), source.above_target(relation, row, task))


def _cheaper(relation: Cheaper, source: Source) -> Iterator[Comparison]:
    criterion = Criterion(relation.factor, relation.most, places=relation.places, unit=" ×", is_signed=False)
    of = "run" if relation.whole_run else "round"
    for row, than, task in product(relation.rows, relation.than, relation.tasks):
        names = [source.tables.row(at).name for at in (than, row)]
        if relation.target is None:
            found = source.cost((row, than), task, of, relation.costs, _ratio, " ×")
        else:
            found = source.bytes_to_target(relation, Pair(row, than, task))
        yield _comparison(source, row, task, f"{' / '.join(names)}, {source.tables.task(row, task)}", criterion, found)


def _ratio(own: Any, other: Any) -> Any:
    return other / own if own else math.inf


def _cost_share(relation: CostShare, source: Source) -> Iterator[Comparison]:
    criterion = Criterion(relation.least, relation.most, places=relation.places, unit=" %", is_signed=False)
    of, quantity = _COSTS[relation.of]
    for row, than, task in product(relation.rows, relation.than, relation.tasks):
        names = [source.tables.row(at).name for at in (row, than)]
        name = f"{' of '.join(names)}, {quantity}, {source.tables.task(row, task)}"
        found = source.cost((row, than), task, of, relation.costs, _share, " %")
        yield _comparison(source, row, task, name, criterion, found)


def _share(own: Any, other: Any) -> Any:
    return 100 * own / other if other else math.inf


def _sends(relation: Sends, source: Source) -> Iterator[Comparison]:
    for row, task in product(relation.rows, relation.tasks):
        gigabyte = source.tables.benchmark(row).paper.gigabyte
        criterion = Criterion(relation.least / gigabyte, relation.most / gigabyte, unit=" GB", is_signed=False)
        name = f"{source.tables.row(row).name}, {relation.rounds} rounds on {source.tables.task(row, task)}"
        yield _comparison(source, row, task, name, criterion, source.total(relation, row, task))


def _at_most(relation: AtMost, source: Source) -> Iterator[Comparison]:
    tables, unit = source.tables, f" {metric(relation.score).unit}".rstrip()
    criterion = Criterion(most=relation.percent, unit=unit, is_signed=False)
    for row in relation.rows:
        for task in tables.tasks(row, relation.tasks):
            name = f"{tables.row(row).name}, {tables.score_name(Pair(row, row, task, relation.score))}"
            yield _comparison(source, row, task, name, criterion, source.level(relation, row, task))


def _same(relation: Same, source: Source) -> Iterator[Comparison]:
    """Only the tasks that have evidence: code that makes two runs equal makes them equal on every task."""
    tables, row, every = source.tables, relation.row, []
    names = f"{tables.row(row).name} − {tables.row(relation.other).name}"
    for task in tables.tasks(row, relation.tasks):
        found = source.gap(Pair(row, relation.other, task))
        every.append(_comparison(source, row, task, f"{names}, {tables.task(row, task)}", Criterion(0, 0), found))
    known = [one for one in every if one.evidence is not None]
    yield from [one for one in known if one.evidence and one.evidence.interval] or known or every


_RELATIONS: dict[type, Callable[[Any, Source], Iterator[Comparison]]] = {
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


def hypotheses_of(relations: Iterable[Relation], source: Source) -> list[Hypothesis]:
    """What relations assert, with what a source of numbers says about it."""
    hypotheses = []
    for relation in relations:
        found = tuple(_RELATIONS[type(relation)](relation, source))
        if found:
            one_is_enough = isinstance(relation, Better) and relation.some
            hypotheses += [Hypothesis(found)] if one_is_enough else [Hypothesis((one,)) for one in found]
    return hypotheses
