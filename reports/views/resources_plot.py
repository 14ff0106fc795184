"""What one client's training costs beside the baseline's: computation and communication, in print and counted here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.experiment import Row
from reports.evidence.resources import SENT, WORK, Resources
from reports.pages.plots import DIAMOND, finish, mark, methods_down, new_figure
from reports.pages.text import dagger_note, row_name

_INCHES, _ROW_INCHES = 10.5, 0.36
_POINTS: Any = {"linestyle": "none", "markersize": 6}
_PRINTED: Any = DIAMOND | {"markersize": 7, "markerfacecolor": "none", "clip_on": False}

Series = Sequence[tuple[str, dict[str, Any], Mapping[str, float]]]  # label, style, row id -> percent


def _draw(axes: Axes, rows: Sequence[Row], series: Series, title: str) -> None:
    methods_down(axes, [row_name(row) for row in rows])
    axes.tick_params(axis="x", labelsize=8)
    axes.set_title(title, fontsize=10)
    axes.axvline(100, color="0.35", linestyle="--", linewidth=0.9)
    for label, style, values in series:
        points = [(values[row.id], place) for place, row in enumerate(rows) if row.id in values]
        if points:
            axes.plot(*zip(*points, strict=True), label=label, **(_POINTS | style))
    axes.set_xlim(left=0)


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def _computation(found: Resources) -> Series:
    rows, timed = found.rows, found.timed
    ways = {"FLOPs": lambda costs: costs.flops} | {name: form.work for name, form in found.costing.forms.items()}
    series: list[tuple[str, dict[str, Any], Mapping[str, float]]] = [
        (name, mark(place), _known({row.id: found.percent(row, work) for row in rows}))
        for place, (name, work) in enumerate(ways.items())
    ]
    if timed is not None:
        series.append(("timed", mark(len(ways)), timed.percent))
    return [*series, ("printed", _PRINTED, _of_print(found, WORK))]


def _of_print(found: Resources, column: str) -> dict[str, float]:
    return {row.id: float(known[column]) for row in found.rows if column in (known := found.printed(row))}


def plot(found: Resources) -> Figure:
    """Computation at the left, communication at the right, both in percent of the baseline's."""
    rows = found.rows
    figure = new_figure(_INCHES, 1.9 + _ROW_INCHES * len(rows))
    left, right = figure.subplots(1, 2, sharey=True)
    _draw(left, rows, _computation(found), "computation")
    saved = {row.id: found.saved_percent(row) for row in rows}
    sent = {name: float(value) for name, value in saved.items() if value is not None}
    _draw(right, rows, [("saved file", mark(5), sent), ("printed", _PRINTED, _of_print(found, SENT))], "communication")
    for axes in (left, right):
        axes.set_xlabel(f"% of {found.baseline.name}", fontsize=9)
    drawn: Series = [*_computation(found), ("saved file", mark(5), {}), ("printed", _PRINTED, {})]
    styles = {label: style for label, style, _ in drawn}
    handles = [Line2D([], [], label=label, **(_POINTS | style)) for label, style in styles.items()]
    caption = (
        f"One client's training by {found.request.paper_scale.backbone}'s shapes, over {found.baseline.name}'s; "
        f"diamonds: as printed.{dagger_note(rows)}"
    )
    return finish(figure, found.request.heading, handles, caption)
