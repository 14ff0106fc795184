"""A crossed comparison as bars: methods in groups, their variants side by side, references as levels."""

from __future__ import annotations

import textwrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.spec import Column
from reports.layout import score_label
from reports.plots import add_legend, new_figure, wrapped
from reports.views.crossed.join import Crossed, Method
from reports.views.scores.bars import Series, caption, draw_groups
from reports.views.scores.tables import columns_shown

_LABEL = 16  # characters of a method's name on one line
_LEVELS = ("--", ":", "-.")


def _broken(name: str) -> str:
    """A method's name on several lines, its words whole."""
    return textwrap.fill(name, _LABEL, break_on_hyphens=False, break_long_words=False)


def _series(found: Crossed, column: Column, methods: list[Method]) -> list[Series]:
    """The variants' headline scores."""
    by_method = [[cell and cell.headline for cell in found.cells(method, column)] for method in methods]
    return [
        Series(variant, tuple(row)) for variant, row in zip(found.variants, zip(*by_method, strict=True), strict=True)
    ]


def _draw_levels(axes: Axes, found: Crossed, column: Column) -> list[Any]:
    """The references, which have no variants."""
    handles = []
    for number, method in enumerate(method for method in found.methods if method.is_reference):
        cell = found.cells(method, column)[0]
        if cell is not None and cell.headline.ours is not None:
            style: Any = {"color": "0.25", "linestyle": _LEVELS[number % len(_LEVELS)], "linewidth": 1.0}
            handles.append(axes.axhline(cell.headline.ours, label=method.label, **style))
    return handles


def crossed_plot(found: Crossed) -> Figure:
    """Grouped bars of the headline score in percent, a panel a task."""
    columns = columns_shown(found.comparison)
    methods = [method for method in found.methods if not method.is_reference]
    inches = max(7.0, 1.2 + 1.25 * len(methods), 1.2 + 0.17 * len(methods) * (len(found.variants) + 1))
    figure = new_figure(inches, 1.8 + 3.4 * len(columns))
    panels = figure.subplots(len(columns), squeeze=False)[:, 0]
    handles: list[Any] = []
    for axes, column in zip(panels, columns, strict=True):
        axes.set_title(f"{column.name}, {score_label(column.averaged)}", fontsize=10)
        if methods:
            handles = draw_groups(axes, [_broken(method.name) for method in methods], _series(found, column, methods))
        else:
            axes.set_xticks([])
            axes.set_ylim(0, 100)
        handles += _draw_levels(axes, found, column)
        axes.tick_params(axis="x", labelsize=9)
    figure.suptitle(wrapped(found.comparison.heading, inches, 11), fontsize=11)
    add_legend(figure, handles, f"Bars of a group: {found.variant}. {caption(found.comparison)}", columns=4)
    return figure
