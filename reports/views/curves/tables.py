"""Curves as text and in long form: a method's value after every round, on every task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pandas as pd

from benchmarks.spec import JSON, Row
from reports.layout import NOT_RUN, NOTHING, UNDEFINED, Grid, Group, Line, number, row_name
from reports.page import Request
from reports.statistics import sample_sd
from reports.views.curves.series import (
    TRAIN_LOSS,
    Series,
    all_series,
    facts_of,
    measure_label,
    measure_of,
    quantity_of,
    reference_ids,
)

_SCORE_PLACES, _LOSS_PLACES = 2, 3
FIELDS = [
    *["benchmark", "place", "scale", "scale_label", "row", "method", "printed", "column", "task", "quantity"],
    *["status", "round", "seed", "value"],
]


def _at_round(series: Series, place: int, places: int) -> str:
    """The mean after one round; "not run" stands once a cell, in the first line."""
    if not series.is_run:
        return NOT_RUN if place == 0 else NOTHING
    if place >= len(series.means):
        return NOTHING
    value = series.means[place]
    return UNDEFINED if value is None else number(value, places=places)


def _best(series: Series, is_loss: bool, places: int) -> str:
    """The best of the means, with the first round that reached it."""
    known = [(value, place) for place, value in enumerate(series.means, start=1) if value is not None]
    if not known:
        return NOTHING
    value, place = min(known, key=lambda pair: pair[0] if is_loss else -pair[0])
    return f"{number(value, places=places)} ({place})"


def _last_sd(series: Series, places: int) -> str:
    """Sample standard deviation over seeds after the last round."""
    return number(sample_sd(series.by_round[-1]), places=places) if series.is_run else NOTHING


def _facts_line(request: Request, row: Row) -> tuple[Line, ...]:
    """What the paper states of a method, where it states anything."""
    facts = {fact.column.task: fact for fact in facts_of(request) if fact.row.id == row.id}
    if not facts:
        return ()
    texts = (
        f"> {number(facts[column.task].level)} ({facts[column.task].round})" if column.task in facts else NOTHING
        for column in request.columns
    )
    return (Line("stated (within rounds)", tuple(texts)),)


def _lines(request: Request, row: Row, series: Sequence[Series], has_sd: bool) -> Iterator[Line]:
    """A method's lines: every round, the best one, seeds and their spread."""
    is_loss = quantity_of(request) == TRAIN_LOSS
    places = _LOSS_PLACES if is_loss else _SCORE_PLACES
    is_run = any(entry.is_run for entry in series)

    def line(label: str, text: Callable[[Series], str]) -> Line:
        return Line(label, tuple(map(text, series)))

    if row.id in reference_ids(request):
        yield line("every round", lambda entry: _at_round(entry, 0, places))
    else:
        for place in range(max(1, *(len(entry.means) for entry in series))):
            yield line(f"round {place + 1}", partial(_at_round, place=place, places=places))
        if is_run:
            label = "lowest (round)" if is_loss else "highest (round)"
            yield line(label, lambda entry: _best(entry, is_loss, places))
    if is_run:
        if has_sd:
            yield line("± sd, last round", lambda entry: _last_sd(entry, places))
        yield line("seeds (n)", lambda entry: str(len(entry.seeds)) if entry.is_run else NOTHING)
    yield from _facts_line(request, row)


def curves_grid(request: Request) -> Grid:
    """Groups are methods, columns tasks, lines rounds."""
    curves = all_series(request)
    has_sd = any(len(series.seeds) > 1 for series in curves.values())
    groups = []
    for row in request.rows:
        series = [curves[row.id, column.task] for column in request.columns]
        groups.append(Group(row_name(row), tuple(_lines(request, row, series, has_sd))))
    headers = tuple((column.name, measure_label(measure_of(request, column))) for column in request.columns)
    title = "training loss" if quantity_of(request) == TRAIN_LOSS else "scores"
    return Grid(f"{request.heading}: {title} after every round", headers, tuple(groups))


def _frame_lines(request: Request) -> Iterator[dict[str, JSON]]:
    """One line a method, task, seed and round; one without a value where a cell was not run."""
    curves = all_series(request)
    for row in request.rows:
        for column in request.columns:
            common: dict[str, JSON] = {
                "benchmark": request.benchmark.id,
                "place": request.benchmark.place,
                "scale": request.scale.id,
                "scale_label": request.scale.label,
                "row": row.id,
                "method": row.name,
                "printed": row.printed,
                "column": column.task,
                "task": column.name,
                "quantity": measure_of(request, column),
            }
            series = curves[row.id, column.task]
            if not series.is_run:
                yield common | {"status": NOT_RUN}
            for seed, values in zip(series.seeds, series.values, strict=True):
                for place, value in enumerate(values, start=1):
                    yield common | {"status": "run", "round": place, "seed": seed, "value": value}


def frame(request: Request) -> pd.DataFrame:
    """The curves as a data frame of FIELDS: scores in percent, losses as they are, every seed by itself."""
    table = pd.DataFrame(list(_frame_lines(request)), columns=FIELDS)
    return table.astype({"round": "Int64", "seed": "Int64", "value": "float64"})
