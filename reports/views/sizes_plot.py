"""Sizes of clients' datasets drawn: a panel a task, a bar for each client and way to share it out."""

from __future__ import annotations

from functools import partial
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks.experiment import Column
from reports.pages.plots import DIAMOND, fill, finish, measured, panels_of, say_not_run, tidy
from reports.views.sizes import Sizes

_WIDTH = 0.8  # of the distance between two clients, all bars together
_PUBLISHED: Any = DIAMOND | {"markersize": 4.5}
_REQUESTED: Any = {"color": "black", "linewidth": 2}


def _is_run(found: Sizes, column: Column) -> bool:
    return any(part.obtained is not None for row in found.request.rows for part in found.of(row, column))


def plot(found: Sizes) -> Figure:
    """A panel for each task that was run, or an empty one for each where none was."""
    rows = found.request.rows
    columns, left_out = measured(found.request.columns, partial(_is_run, found))
    figure, panels = panels_of(len(columns), 3, (3.3, 2.3), "client", least=5.5, room=1.5, sharey=True)
    width = _WIDTH / len(rows)
    for axes, column in zip(panels, columns, strict=True):
        axes.set_title(column.name, fontsize=10)
        tidy(axes)
        axes.tick_params(labelsize=8)
        axes.set_xlim(0.4, found.clients + 0.6)
        axes.set_xticks(range(1, found.clients + 1))
        if not _is_run(found, column):
            say_not_run(axes)
            continue
        axes.set_ylabel("share (%)", fontsize=9)
        for place, row in enumerate(rows):
            for client, part in enumerate(found.of(row, column), start=1):
                centre = client + (place - (len(rows) - 1) / 2) * width
                axes.bar(centre, part.obtained or 0.0, width, **fill(place, row.name))
                axes.hlines(part.requested, centre - width / 2, centre + width / 2, **_REQUESTED)
                if part.published is not None:
                    axes.plot(centre, part.published, zorder=4, **_PUBLISHED)
    handles: list[Any] = [Patch(label=row.name, **fill(place, row.name)) for place, row in enumerate(rows)]
    handles.append(Line2D([], [], label="requested", **_REQUESTED))
    if any(part.published is not None for parts in found.by_cell.values() for part in parts):
        handles.append(Line2D([], [], label="reported", **_PUBLISHED))
    return finish(figure, found.request.heading, handles, "Bars: obtained, held-out examples too." + left_out)
