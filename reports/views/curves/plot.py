"""Curves against rounds: a panel a task, a line a method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from benchmarks.spec import Column, Row
from reports.layout import DAGGER, NOT_RUN, row_name
from reports.page import Request
from reports.plots import MARKS, PALETTE, add_legend, new_figure, tidy, wrapped
from reports.views.curves.series import (
    Fact,
    Series,
    all_series,
    facts_of,
    measure_label,
    measure_of,
    methods_of,
    reference_ids,
    references_of,
)

_ACROSS = 3  # panels side by side
_PANEL_INCHES = (3.3, 2.7)
_LEVEL: Any = {"color": "0.35", "linestyle": "--", "linewidth": 1.2}
_STATED: Any = {"color": "black", "linestyle": ":", "linewidth": 1.3}


def _style(request: Request, row: Row) -> dict[str, Any]:
    """A method's colour and mark, whatever part of the benchmark is shown; later ones slimmer, so that equals show."""
    drawn = [found.id for found in request.benchmark.rows if found.id not in reference_ids(request)]
    number = drawn.index(row.id)
    slimmer = number / len(drawn)
    return {
        "color": PALETTE[number % len(PALETTE)],
        "marker": MARKS[number % len(MARKS)],
        "linewidth": 3.0 - 2.0 * slimmer,
        "markersize": 10 - 5 * slimmer,
        "markerfacecolor": "none",
        "markeredgewidth": 1.4,
    }


def _draw_series(axes: Axes, series: Series, style: Mapping[str, Any]) -> None:
    """One method's mean over seeds, with a band from the lowest to the highest seed where there are several."""
    rounds = range(1, len(series.means) + 1)
    y = [math.nan if value is None else value for value in series.means]
    axes.plot(rounds, y, **style)
    if len(series.seeds) > 1:
        low = [min(values, default=math.nan) for values in series.by_round]
        high = [max(values, default=math.nan) for values in series.by_round]
        axes.fill_between(rounds, low, high, color=style["color"], alpha=0.18, linewidth=0)


def _draw_fact(axes: Axes, fact: Fact) -> None:
    """A level and a round, with the corner named."""
    axes.axhline(fact.level, **_STATED)
    axes.axvline(fact.round, **_STATED)
    axes.annotate(
        "stated", (fact.round, fact.level), (4, 3), textcoords="offset points", fontsize=7.5, fontstyle="italic"
    )


def _draw_panel(axes: Axes, request: Request, column: Column, curves: Mapping[tuple[str, str], Series]) -> None:
    """One task."""
    label = measure_label(measure_of(request, column))
    axes.set_title(f"{column.name}: {label}" if label.endswith("(%)") else column.name, fontsize=10)
    tidy(axes)
    axes.tick_params(labelsize=8)
    if not any(value is not None for row in request.rows for value in curves[row.id, column.task].means):
        axes.text(0.5, 0.5, NOT_RUN, transform=axes.transAxes, ha="center", va="center", color="0.35")
        axes.set_xticks([])
        axes.set_yticks([])
        return
    for row in methods_of(request):
        if curves[row.id, column.task].is_run:
            _draw_series(axes, curves[row.id, column.task], _style(request, row))
    for row in references_of(request):
        level = next(iter(curves[row.id, column.task].means), None)
        if level is not None:
            axes.axhline(level, **_LEVEL)
    for fact in facts_of(request):
        if fact.column.task == column.task:
            _draw_fact(axes, fact)
    rounds = max(len(curves[row.id, column.task].means) for row in request.rows)
    axes.set_xlim(0.8, max(rounds, 2) + 0.2)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _handles(request: Request) -> list[Any]:
    """What the legend shows: every method, level and stated fact, whether run or not."""
    handles = [Line2D([], [], label=row_name(row), **_style(request, row)) for row in methods_of(request)]
    handles += [Line2D([], [], label=row_name(row), **_LEVEL) for row in references_of(request)]
    return handles + [Line2D([], [], label=_fact_label(fact), **_STATED) for fact in facts_of(request)]


def _fact_label(fact: Fact) -> str:
    """What is stated, in short."""
    return f"stated: {fact.row.name} on {fact.column.name} > {fact.level:g} within {fact.round} rounds"


def seeds_text(curves: Sequence[Series]) -> str:
    """How many seeds stand behind the curves that were run: "n = 1", "n = 1 to 3"; "" where none was."""
    counts = sorted({len(series.seeds) for series in curves if series.is_run})
    if not counts:
        return ""
    return f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"


def _caption(request: Request, curves: Mapping[tuple[str, str], Series]) -> str:
    """What lines, bands and levels are."""
    run = [series for series in curves.values() if series.is_run]
    text = f"Lines: mean over seeds ({seeds_text(run)})" if run else "Lines: mean over seeds"
    if any(len(series.seeds) > 1 for series in run):
        text += ", band from the lowest to the highest seed"
    text += "; no line: not run."
    if references_of(request):
        text += f" Dashed: answers the same after every round; {DAGGER} not in the paper."
    if facts_of(request):
        text += " Dotted: stated in the paper's text"
        text += "." if request.scale.id == "paper" else ", comparable in level at the paper scale only."
    return text


def curve_plot(request: Request) -> Figure:
    """A panel for each task, "not run" in it where nothing was run."""
    curves = all_series(request)
    across = min(_ACROSS, len(request.columns))
    down = -(-len(request.columns) // across)
    inches = max(5.5, _PANEL_INCHES[0] * across)
    figure = new_figure(inches, 1.6 + _PANEL_INCHES[1] * down)
    panels = figure.subplots(down, across, squeeze=False).flat
    for number, axes in enumerate(panels):
        if number >= len(request.columns):
            axes.set_axis_off()
            continue
        column = request.columns[number]
        _draw_panel(axes, request, column, curves)
        if number + across >= len(request.columns):
            axes.set_xlabel("round", fontsize=9)
        if number % across == 0:
            label = measure_label(measure_of(request, column))
            axes.set_ylabel("score (%)" if label.endswith("(%)") else label, fontsize=9)
    figure.suptitle(wrapped(request.heading, inches, 11), fontsize=11)
    add_legend(figure, _handles(request), _caption(request, curves))
    return figure
