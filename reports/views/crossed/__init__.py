"""The view of a table whose rows are crossed: methods in lines, variants of each method in columns.

Options: variant, what the columns are, such as "aggregation architecture"; methods, a method's name -> a variant's
name -> the row that is both. Rows that are none of these, such as a reference, have a line of their own, which holds
for every variant.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from reports.page import Page, Request
from reports.views.crossed.join import Crossed, join
from reports.views.crossed.plot import crossed_plot
from reports.views.crossed.tables import grids
from reports.views.scores.frame import frame


def _notes(found: Crossed) -> Iterator[str]:
    """How the table is laid out, and every note of a table of scores."""
    names = [method.name for method in found.methods if method.is_reference]
    yield f"Columns: {found.variant}" + (f"; the same in every column: {', '.join(names)}." if names else ".")
    yield from found.comparison.notes


def crossed(request: Request) -> Page:
    """A table for each score, one of bytes, and the headline scores as bars."""
    found = join(request)
    return request.page(
        grids=grids(found),
        notes=tuple(_notes(found)),
        frame=partial(frame, found.comparison),
        figure=partial(crossed_plot, found),
    )
