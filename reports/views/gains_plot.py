"""Gains over a reference drawn: a panel a task, a mark for each row, and how far the simple part alone comes."""

from __future__ import annotations

from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from reports.evidence.scores import score_label
from reports.pages.plots import finish, measured, method_mark, methods_down, panels_of, say_not_run
from reports.pages.text import dagger_note, row_name
from reports.views.gains import Gains, ci

_ZERO: Any = {"color": "0.35", "linewidth": 0.9}
_PART: Any = {"linestyle": "--", "linewidth": 1.1}


def _is_run(found: Gains, column: Column) -> bool:
    return found.of(found.part, column).over is not None


def _draw(axes: Axes, found: Gains, rows: list[Row], column: Column) -> None:
    label = score_label(column, column.averaged)
    axes.set_title(f"{column.name}, {label}{' (points)' if metric(column.averaged).unit else ''}", fontsize=10)
    methods_down(axes, [row_name(row) for row in rows])
    axes.tick_params(axis="x", labelsize=8)
    axes.axvline(0, **_ZERO)
    if not _is_run(found, column):
        say_not_run(axes)
    for place, row in enumerate(rows):
        gain = found.of(row, column).over
        if gain is None or gain.value is None:
            continue
        low, high = ci(gain) or (gain.value, gain.value)
        style = method_mark(row.name)
        axes.errorbar(gain.value, place, xerr=[[gain.value - low], [high - gain.value]], capsize=2, **style)
        if row.id == found.part.id:
            axes.axvline(gain.value, color=style["color"], **_PART)


def plot(found: Gains) -> Figure:
    """A panel for each task on which some row was held against the reference."""
    columns, left_out = measured(found.request.columns, partial(_is_run, found), f"Without {found.part.name}")
    rows = [row for row in found.request.rows if row.id != found.reference.id]
    figure, panels = panels_of(
        len(columns), 2, (5.2, 0.7 + 0.3 * len(rows)), f"gain over {found.reference.name}", 7, 1.5
    )
    for axes, column in zip(panels, columns, strict=True):
        _draw(axes, found, rows, column)
    part = Line2D([], [], color=method_mark(found.part.name)["color"], label=f"{found.part.name} alone", **_PART)
    caption = (
        "Means of differences paired by seed, with 95 % intervals from three seeds on; no mark: not run."
        f"{dagger_note(found.request.rows)}{left_out}"
    )
    return finish(figure, found.request.heading, [part], caption)
