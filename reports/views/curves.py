"""The view of a figure of curves: scores or training loss against rounds.

Options: quantity, "score" (each column's averaged one) or "train_loss"; references, ids of rows that answer the same
after every round. What the paper's text states of a curve is a line of the published CSV with the score's id, beside
one whose score is "rounds".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import pandas as pd

from benchmarks.experiment import Column, Row
from benchmarks.measures import TRAIN_LOSS, metric
from benchmarks.run_config import JSON
from reports import ReportError
from reports.evidence.published import published_for
from reports.evidence.records import Request
from reports.evidence.scores import Scores, score_label, scores_of
from reports.evidence.statistics import sample_sd
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.text import NOTHING, UNDEFINED, in_units, not_run, notes_under, number, over_clients, row_name

QUANTITIES = ("score", TRAIN_LOSS)
FIELDS = [*KEYS, "quantity", "status", "round", "seed", "value"]


@dataclass(frozen=True)
class Fact:
    """What the paper's text states of a curve: beyond `level` within `round` rounds."""

    row: Row
    column: Column
    level: float
    round: int
    sign: str  # ">", or "<" where lower is better


@dataclass(frozen=True)
class Curves:
    """(row id, task) -> a curve, and what the paper states of them: nothing at the demo scale."""

    request: Request
    is_loss: bool  # of training, else scores
    by_cell: Mapping[tuple[str, str], Scores]
    facts: tuple[Fact, ...]
    references: tuple[str, ...]  # ids of the rows that are drawn as levels

    @property
    def places(self) -> int:
        return 3 if self.is_loss else 2

    def of(self, row: Row, column: Column) -> Scores:
        return self.by_cell[row.id, column.task]

    def label(self, column: Column) -> str:
        measured = metric(self.measure(column))
        name = measured.label if self.is_loss else score_label(column, column.averaged)
        return f"{name} ({measured.unit})" if measured.unit else name

    def measure(self, column: Column) -> str:
        """The quantity of a task as a score id: "test/accuracy", …, or TRAIN_LOSS."""
        return TRAIN_LOSS if self.is_loss else column.averaged

    @property
    def best_word(self) -> str:
        words = {metric(self.measure(column)).higher_is_better for column in self.request.columns}
        return "best" if len(words) > 1 else "highest" if words.pop() else "lowest"


def join(request: Request) -> Curves:
    """Every curve; ReportError where a record lacks the score, and for an unknown quantity."""
    options = request.benchmark.view.options
    quantity = str(options["quantity"])
    if quantity not in QUANTITIES:
        raise ReportError(f"{request.benchmark.id}: expected a quantity of {', '.join(QUANTITIES)}, found {quantity!r}")
    is_loss = quantity == TRAIN_LOSS
    names = {column.task: TRAIN_LOSS if is_loss else column.averaged for column in request.columns}
    pairs = list(product(request.rows, request.columns))
    curves = {(row.id, at.task): scores_of(request.records_of(row, at), names[at.task]) for row, at in pairs}
    stated, facts = published_for(request), []
    for row, column in pairs:
        level = stated.get((row.id, column.task, names[column.task]))
        if level is not None:
            sign = ">" if metric(names[column.task]).higher_is_better else "<"
            facts.append(Fact(row, column, level.value, int(stated[row.id, column.task, "rounds"].value), sign))
    return Curves(request, is_loss, curves, tuple(facts), tuple(options.get("references", ())))


def _method(found: Curves) -> Iterator[str]:
    if found.is_loss:
        yield (
            "Training loss: the task's own, mean over the examples that the clients of a round trained on, taken while "
            "they train and so before the round's aggregation; then mean over n seeds; ± sd over seeds (n - 1). "
            "lowest: of these means."
        )
    else:
        columns = found.request.columns
        yield (
            f"Scores{in_units(columns)} after each round's aggregation: {over_clients(columns)}, then over n seeds; "
            f"± sd over seeds (n - 1). {found.best_word}: of these means, so chosen on the test score itself."
        )
    if found.facts:
        yield "stated: what the paper's text says of a curve; the curves themselves are printed without numbers."


def _undefined(found: Curves) -> Iterator[str]:
    for row, column in product(found.request.rows, found.request.columns):
        curve = found.of(row, column)
        missing = [place for place, known in enumerate(curve.by_round, start=1) if len(known) < len(curve.seeds)]
        if missing:
            where, rounds = f"{row.name}, {column.name}", ", ".join(map(str, missing))
            yield f"{where}: undefined for some seeds, which the mean leaves out, in rounds {rounds}."


def notes(found: Curves) -> Iterator[str]:
    """Every note under the curves."""
    return notes_under(found.request, _method(found), about=_undefined(found))


def _at_round(curve: Scores, place: int, places: int) -> str:
    if not curve.is_run:
        return NOTHING
    if place >= len(curve.means):
        return NOTHING
    value = curve.means[place]
    return UNDEFINED if value is None else number(value, places=places)


def _best(curve: Scores, places: int) -> str:
    best = curve.metric.best(curve.means)
    return NOTHING if best is None else f"{number(best, places=places)} ({curve.means.index(best) + 1})"


def _facts_line(found: Curves, row: Row) -> tuple[Line, ...]:
    facts = {fact.column.task: fact for fact in found.facts if fact.row.id == row.id}
    if not facts:
        return ()
    known = (facts.get(column.task) for column in found.request.columns)
    texts = (f"{fact.sign} {number(fact.level)} ({fact.round})" if fact else NOTHING for fact in known)
    return (Line("stated (within rounds)", tuple(texts)),)


def _lines(found: Curves, row: Row, curves: Sequence[Scores], has_sd: bool) -> Iterator[Line]:
    is_run = any(curve.is_run for curve in curves)

    def line(label: str, text: Callable[..., str], **options: int) -> Line:
        texts = map(partial(text, places=found.places, **options), curves)
        if options.get("place") != 0:
            return Line(label, tuple(texts))
        cells = zip(texts, curves, found.request.columns, strict=True)
        return Line(label, tuple(t if curve.is_run else not_run(found.request, row, at) for t, curve, at in cells))

    if row.id in found.references:
        yield line("every round", _at_round, place=0)
    else:
        for place in range(max(1, *(len(curve.means) for curve in curves))):
            yield line(f"round {place + 1}", _at_round, place=place)
        if is_run:
            yield line(f"{found.best_word} (round)", _best)
    if is_run:
        if has_sd:
            sds = (sample_sd(curve.by_round[-1]) if curve.is_run else None for curve in curves)
            yield Line("± sd, last round", tuple(number(sd, places=found.places) for sd in sds))
        yield Line("seeds (n)", tuple(str(len(curve.seeds)) if curve.is_run else NOTHING for curve in curves))
    yield from _facts_line(found, row)


def grids(found: Curves) -> tuple[Grid, ...]:
    """Groups are methods, columns tasks, lines rounds."""
    request = found.request
    has_sd = any(len(curve.seeds) > 1 for curve in found.by_cell.values())
    by_row = {row.id: [found.of(row, column) for column in request.columns] for row in request.rows}
    groups = tuple(Group(row_name(row), tuple(_lines(found, row, by_row[row.id], has_sd))) for row in request.rows)
    headers = tuple((column.name, found.label(column)) for column in request.columns)
    title = metric(TRAIN_LOSS).label if found.is_loss else "scores"
    return (Grid(f"{request.heading}: {title} after every round", headers, groups),)


def _frame_lines(found: Curves) -> Iterator[dict[str, JSON]]:
    for row, column in product(found.request.rows, found.request.columns):
        common = keys_of(found.request, row, column) | {"quantity": found.measure(column)}
        curve = found.of(row, column)
        if not curve.is_run:
            yield common | {"status": not_run(found.request, row, column)}
        for seed, values in zip(curve.seeds, curve.shown, strict=True):
            for place, value in enumerate(values, start=1):
                yield common | {"status": "run", "round": place, "seed": seed, "value": value}


def frame(found: Curves) -> pd.DataFrame:
    """The curves as a data frame of FIELDS: scores and losses in their units, every seed by itself."""
    return long_form(_frame_lines(found), FIELDS, {"Int64": ("round", "seed"), "float64": ("value",)})
