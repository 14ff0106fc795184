"""The view of a figure of curves: scores or training loss against rounds.

Options: quantity, "score" (each column's averaged one) or "train_loss"; references, ids of rows that answer the same
after every round. What the paper's text states of a curve is a line of the published CSV with the score's id, beside
one whose score is "rounds".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from reports.notes import data_notes, deviation_notes, row_notes, scale_note, selection_notes
from reports.page import Page, Request
from reports.views.curves.plot import curve_plot
from reports.views.curves.series import TRAIN_LOSS, all_series, facts_of, quantity_of
from reports.views.curves.tables import curves_grid, frame


def _method(request: Request) -> Iterator[str]:
    """How the numbers came about."""
    if quantity_of(request) == TRAIN_LOSS:
        yield (
            "Training loss: the task's own, mean over the examples that the clients of a round trained on, taken while "
            "they train and so before the round's aggregation; then mean over n seeds; ± sd over seeds (n - 1). "
            "lowest: of these means."
        )
    else:
        yield (
            "Scores in percent after each round's aggregation: mean over clients, then over n seeds; ± sd over seeds "
            "(n - 1). highest: of these means, so chosen on the test score itself."
        )
    if facts_of(request):
        yield "stated: what the paper's text says of a curve; the curves themselves are printed without numbers."


def _undefined(request: Request) -> Iterator[str]:
    """Which rounds have no value for some seeds."""
    for series in all_series(request).values():
        missing = [place for place, values in enumerate(series.by_round, start=1) if len(values) < len(series.seeds)]
        if missing:
            rounds = ", ".join(map(str, missing))
            where = f"{series.row.name}, {series.column.name}"
            yield f"{where}: undefined for some seeds, which the mean leaves out, in rounds {rounds}."


def _notes(request: Request) -> Iterator[str]:
    """Every note under the curves."""
    yield scale_note(request.scale)
    yield from _method(request)
    yield from row_notes(request.rows)
    yield from data_notes(request)
    yield from selection_notes(request)
    yield from _undefined(request)
    yield from deviation_notes(request)


def curves(request: Request) -> Page:
    """A method's value after every round on every task, and a panel a task."""
    return request.page(
        grids=(curves_grid(request),),
        notes=tuple(_notes(request)),
        frame=partial(frame, request),
        figure=partial(curve_plot, request),
    )
