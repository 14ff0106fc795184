"""Split learning's costs drawn: bytes of one client's epoch for each mode, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.evidence.split import Compared, Split
from reports.pages.plots import finish, methods_down, new_figure
from reports.pages.styles import MARKS, colour_of
from reports.pages.text import dagger_note, row_name

_POINTS: Any = {"linestyle": "none", "markersize": 6}


def _of(place: int, colour: str) -> dict[str, Any]:
    return _POINTS | {"marker": MARKS[place], "color": colour}


def plot(found: Split) -> Figure:
    """A point for each mode and encoder: by closed form for the paper's, on the wire for the scale's."""
    rows = found.rows
    series: dict[str, Mapping[str, Compared]] = {**found.derived, f"{found.request.scale.id}, measured": found.measured}
    figure = new_figure(8.5, 1.9 + 0.36 * len(rows))
    axes = figure.subplots()
    methods_down(axes, [row_name(row) for row in rows])
    for place, own in enumerate(series.values()):
        for height, row in enumerate(rows):
            if row.id in own:
                axes.plot(own[row.id].total, height, **_of(place, colour_of(row.name)))
    axes.set_xscale("log")
    axes.set_xlabel("bytes of one client's epoch, both directions", fontsize=9)
    handles = [Line2D([], [], label=label, **_of(place, "0.35")) for place, label in enumerate(series)]
    caption = f"Closed forms of Table 2 with averaging and hand-overs.{dagger_note(rows)}"
    return finish(figure, found.request.heading, handles, caption)
