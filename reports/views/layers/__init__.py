"""The view of a figure against the critical layer: bytes a round, and scores.

Options: critical_layers, row id -> c of the paper's own encoder (rows without one are drawn as levels); printed_in,
the table whose printed scores stand beside ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from reports.notes import data_notes, deviation_notes, row_notes, scale_note, selection_notes
from reports.page import Page, Request
from reports.verdicts import RULE
from reports.views.layers.join import Layers, join
from reports.views.layers.plot import layer_plot
from reports.views.layers.tables import frame, layers_grid


def _method(found: Layers) -> Iterator[str]:
    """How the numbers came about."""
    request = found.request
    best = "at the best round, chosen on the test score itself"
    at = "at the last round" if request.score_at == "last" else best
    yield (
        f"Scores in percent: mean over clients {at}, then over n seeds; ± sd over seeds (n - 1); ± test set is the "
        "sampling error of the finite test sets of the last round, root mean square over seeds."
    )
    if found.comparison.shows_published:
        yield f"published: {found.printed_in}; the figure itself is printed without numbers."
    if request.scale.id == "paper":
        yield RULE
    yield (
        f"Bytes a round: {request.benchmark.paper.bytes_convention}; measured: mean over rounds, seeds and the "
        "tasks run, which differ by the size of the classifier alone."
    )
    if found.has_derived:
        yield (
            f"derived for {found.paper_scale.backbone}: the same channel on its shapes alone, without training; for "
            f"{request.columns[0].name}."
        )


def _notes(found: Layers) -> Iterator[str]:
    """Every note under the figure."""
    request = found.request
    yield scale_note(request.scale)
    yield from _method(found)
    yield from row_notes(request.rows)
    yield from data_notes(request)
    yield from selection_notes(request)
    yield from deviation_notes(request)


def layers(request: Request) -> Page:
    """Scores and bytes by critical layer, and both plots."""
    found = join(request)
    return request.page(
        grids=(layers_grid(found),),
        notes=tuple(_notes(found)),
        frame=partial(frame, found),
        figure=partial(layer_plot, found),
    )
