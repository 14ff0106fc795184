"""A crossed comparison as bars: methods in groups, their variants side by side, references as levels."""

from __future__ import annotations

import textwrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.experiment import Column
from benchmarks.measures import metric
from reports.evidence.scores import score_label
from reports.pages.plots import finish, new_figure
from reports.views.crossed import Crossed, Method
from reports.views.scores_plot import LEVELS, caption, draw_groups, limit_scores

_LABEL = 16  # characters of a method's name on one line


def _draw_levels(axes: Axes, found: Crossed, column: Column) -> list[Any]:
    handles = []
    for number, method in enumerate(method for method in found.methods if method.is_reference):
        cell = found.cells(method, column)[0]
        if cell is not None and cell.headline.ours is not None:
            style: Any = {"color": "0.25", "linestyle": LEVELS[number % len(LEVELS)], "linewidth": 1.0}
            handles.append(axes.axhline(cell.headline.ours, label=method.label, **style))
    return handles


def _is_run(found: Crossed, method: Method) -> bool:
    cells = (cell for column in found.comparison.columns_shown for cell in found.cells(method, column))
    return any(cell is not None and cell.headline.ours is not None for cell in cells)


def plot(found: Crossed) -> Figure:
    """Grouped bars of the headline score, a panel a task."""
    columns = found.comparison.columns_shown
    methods = [method for method in found.methods if not method.is_reference and _is_run(found, method)]
    inches = max(7.0, 1.2 + 1.25 * len(methods), 1.2 + 0.17 * len(methods) * (len(found.variants) + 1))
    figure = new_figure(inches, 1.8 + 3.4 * len(columns))
    panels = figure.subplots(len(columns), squeeze=False)[:, 0]
    handles: list[Any] = []
    for axes, column in zip(panels, columns, strict=True):
        axes.set_title(f"{column.name}, {score_label(column, column.averaged)}", fontsize=10)
        unit = metric(column.averaged).unit
        if methods:
            whole_words: Any = {"break_on_hyphens": False, "break_long_words": False}
            names = [textwrap.fill(method.name, _LABEL, **whole_words) for method in methods]
            by_method = [[cell and cell.headline for cell in found.cells(method, column)] for method in methods]
            results = dict(zip(found.variants, zip(*by_method, strict=True), strict=True))
            handles = draw_groups(axes, names, results, unit, [method.name for method in methods])
        else:
            axes.set_xticks([])
            limit_scores(axes, unit)
        handles += _draw_levels(axes, found, column)
        axes.tick_params(axis="x", labelsize=9)
    text = f"Bars of a group: {found.variant}. {caption(found.comparison)}"
    return finish(figure, found.comparison.request.heading, handles, text, columns=4)
