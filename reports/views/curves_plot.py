"""Curves against rounds: a panel a task, a line a method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from reports.evidence.records import PAPER
from reports.evidence.scores import Scores
from reports.pages.plots import finish, measured, method_mark, panels_of, say_not_run, tidy
from reports.pages.text import DAGGER, row_name
from reports.views.curves import Curves
from reports.views.scores_plot import axis_label

_LEVEL: Any = {"color": "0.35", "linestyle": "--", "linewidth": 1.2}
_STATED: Any = {"color": "black", "linestyle": ":", "linewidth": 1.3}
_SMALL: Any = {"fontsize": 7.5, "fontstyle": "italic"}


def _style(found: Curves, row: Row) -> dict[str, Any]:
    """A method's colour and mark, whatever part of the benchmark is shown; later ones slimmer, so that equals show."""
    drawn = [entry.id for entry in found.request.benchmark.rows if entry.id not in found.references]
    number = drawn.index(row.id)
    slimmer = number / len(drawn)
    sizes = {"linewidth": 3.0 - 2.0 * slimmer, "markersize": 10 - 5 * slimmer, "markeredgewidth": 1.4}
    return method_mark(row.name) | sizes | {"markerfacecolor": "none"}


def _draw_curve(axes: Axes, curve: Scores, style: Mapping[str, Any]) -> None:
    rounds = range(1, len(curve.means) + 1)
    axes.plot(rounds, [math.nan if value is None else value for value in curve.means], **style)
    if len(curve.seeds) > 1:
        low, high = ([end(values, default=math.nan) for values in curve.by_round] for end in (min, max))
        axes.fill_between(rounds, low, high, color=style["color"], alpha=0.18, linewidth=0)


def _has_curve(found: Curves, column: Column) -> bool:
    """Whether a method has a score there: the level of a reference alone is no curve."""
    rows = (row for row in found.request.rows if row.id not in found.references)
    return any(value is not None for row in rows for value in found.of(row, column).means)


def _draw_panel(axes: Axes, found: Curves, column: Column) -> None:
    rows, label = found.request.rows, found.label(column)
    axes.set_title(f"{column.name}: {label}" if not found.is_loss else column.name, fontsize=10)
    tidy(axes)
    axes.tick_params(labelsize=8)
    curves = {row.id: found.of(row, column) for row in rows}
    for row in rows:
        curve = curves[row.id]
        if row.id not in found.references and curve.is_run:
            _draw_curve(axes, curve, _style(found, row))
    for row in rows:
        level = next(iter(curves[row.id].means), None)
        if row.id in found.references and level is not None:
            axes.axhline(level, **_LEVEL)
    for fact in (fact for fact in found.facts if fact.column.task == column.task):
        axes.axhline(fact.level, **_STATED)
        axes.axvline(fact.round, **_STATED)
        axes.annotate("stated", (fact.round, fact.level), (4, 3), textcoords="offset points", **_SMALL)
    axes.set_xlim(0.8, max(2, *(len(curve.means) for curve in curves.values())) + 0.2)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if not axes.has_data():
        say_not_run(axes)
        axes.set_xticks([])
        axes.set_yticks([])


def _handles(found: Curves, columns: Sequence[Column]) -> list[Any]:
    run = {row_id for (row_id, _), curve in found.by_cell.items() if curve.is_run}
    methods = [row for row in found.request.rows if row.id not in found.references and row.id in run]
    levels = [row for row in found.request.rows if row.id in found.references]
    handles = [Line2D([], [], label=row_name(row), **_style(found, row)) for row in methods]
    handles += [Line2D([], [], label=row_name(row), **_LEVEL) for row in levels]
    for fact in (fact for fact in found.facts if fact.column in columns):
        text = f"{fact.row.name} on {fact.column.name} {fact.sign} {fact.level:g} within {fact.round} rounds"
        handles.append(Line2D([], [], label=f"stated: {text}", **_STATED))
    return handles


def _caption(found: Curves, columns: Sequence[Column]) -> str:
    counts = sorted({len(curve.seeds) for curve in found.by_cell.values() if curve.is_run})
    text = "Lines: mean over seeds"
    if counts:
        text += f" (n = {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))})"
    if counts and counts[-1] > 1:
        text += ", band from the lowest to the highest seed"
    text += "; no line: not run."
    if any(row.id in found.references for row in found.request.rows):
        text += f" Dashed: answers the same after every round; {DAGGER} not in the paper."
    if any(fact.column in columns for fact in found.facts):
        text += " Dotted: stated in the paper's text"
        text += "." if found.request.scale.id == PAPER else ", comparable in level at the paper scale only."
    return text


def plot(found: Curves) -> Figure:
    """A panel for each task that was run; each says "not run" where none was."""
    columns, left_out = measured(found.request.columns, partial(_has_curve, found))
    figure, panels = panels_of(len(columns), 3, (3.3, 2.7), "round", least=5.5, room=1.6)
    for number, (axes, column) in enumerate(zip(panels, columns, strict=True)):
        _draw_panel(axes, found, column)
        if number % 3 == 0:
            label = found.label(column) if found.is_loss else axis_label(metric(column.averaged).unit)
            axes.set_ylabel(label, fontsize=9)
    return finish(figure, found.request.heading, _handles(found, columns), _caption(found, columns) + left_out)
