"""The view of a table of scores: ours beside print, by method and task, and what it cost."""

from __future__ import annotations

from functools import partial

from reports.comparison import Comparison, compare
from reports.page import Page, Request
from reports.views.scores.bars import bar_plot
from reports.views.scores.frame import frame
from reports.views.scores.tables import grids


def scores(request: Request) -> Page:
    """Scores and bytes of every method and task, and a bar plot of them."""
    return comparison_page(compare(request))


def comparison_page(comparison: Comparison) -> Page:
    """A comparison, ready to draw."""
    return Page(
        benchmark_id=comparison.benchmark_id,
        scale_id=comparison.scale.id,
        heading=comparison.heading,
        title=comparison.title,
        run=sum(cell.is_run for cell in comparison.cells),
        cells=len(comparison.cells),
        grids=grids(comparison),
        notes=comparison.notes,
        frame=partial(frame, comparison),
        figure=partial(bar_plot, comparison),
    )
