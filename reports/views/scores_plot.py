"""A comparison as a bar plot: headline scores by task, methods side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.evidence.records import PAPER
from reports.evidence.scores import score_label, unit_of
from reports.pages.plots import fill, new_figure, tidy, wrapped
from reports.pages.text import DAGGER, row_name
from reports.views.comparison import Comparison, ScoreResult

_GROUP_WIDTH = 0.84  # of the distance between two groups
_VISIBLE = 0.5  # points: a lower bar looks like one that was not run, so its number stands there
_PRINTED, _DERIVED = "reported", "derived from the paper's text"
_WHISKERS: Any = {"elinewidth": 0.9, "capsize": 1.5, "ecolor": "black"}
_MARKERS = {_PRINTED: "D", _DERIVED: "o"}


def draw_groups(
    axes: Axes,
    groups: Sequence[str],
    series: Mapping[str, Sequence[ScoreResult | None]],
    unit: str,
    of_methods: bool = False,
) -> list[Any]:
    """Bars side by side in each group, one colour and hatch a series; returns the legend's handles.

    Diamonds where the paper prints a number, circles where its text implies one. series: label -> a result for each
    group, None where the table has no such cell. unit: of the scores, "" of several. of_methods:
    whether labels name methods, which have colours of their own.
    """
    width = _GROUP_WIDTH / len(series)
    marks: dict[str, list[tuple[float, float]]] = {label: [] for label in _MARKERS}
    handles: list[Any] = []
    for number, (name, found) in enumerate(series.items()):
        offset = (number - (len(series) - 1) / 2) * width
        results = [(place + offset, result) for place, result in enumerate(found) if result is not None]
        drawn = [(x, result.ours, result.error) for x, result in results if result.ours is not None]
        method = name.removesuffix(f" {DAGGER}") if of_methods else ""
        style = fill(number, method) | {"yerr": [error for _, _, error in drawn], "error_kw": _WHISKERS, "label": name}
        handles.append(axes.bar([x for x, _, _ in drawn], [height for _, height, _ in drawn], width, **style))
        for x, height, _ in drawn:
            if abs(height) < _VISIBLE:
                axes.annotate("0", (x, 0), (0, 3), textcoords="offset points", ha="center", fontsize=7)
        for x, result in results:
            if result.published is not None:
                marks[_DERIVED if result.is_derived else _PRINTED].append((x, result.published))
    white: Any = {"color": "white", "edgecolors": "black", "zorder": 3}
    for label, points in marks.items():
        if points:
            x_values, y_values = zip(*points, strict=True)
            handles.append(axes.scatter(x_values, y_values, 16, label=label, marker=_MARKERS[label], **white))
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    limit_scores(axes, unit)
    tidy(axes)
    return handles


def limit_scores(axes: Axes, unit: str) -> None:
    """An axis of scores from 0, or lower ones, to 100 where they are in percent."""
    axes.set_ylim(min(0.0, axes.get_ylim()[0]), 100 if unit == "%" else None)
    axes.set_ylabel(axis_label(unit))


def axis_label(unit: str) -> str:
    """What stands beside an axis of scores."""
    return f"score ({unit})" if unit else "score"


def caption(comparison: Comparison) -> str:
    """What bars, whiskers and diamonds are."""
    text = (
        f"Bars: reproduced, mean over clients and seeds ({comparison.request.scored_at} round); no bar: not run. "
        "Whiskers: ± sd over seeds; with one seed, ± SE of the test sets."
    )
    if comparison.shows_published:
        is_derived = any(cell.headline.is_derived for cell in comparison.cells)
        text += " Diamonds: reported" + (f" (circles: {_DERIVED})" if is_derived else "")
        text += "." if comparison.request.scale.id == PAPER else ", not comparable in level: other encoder/scale."
    return text


def plot(comparison: Comparison) -> Figure:
    """Grouped bars of each task's headline score."""
    columns = comparison.columns_shown
    inches = max(7.0, 1.2 + 0.17 * len(columns) * (len(comparison.request.rows) + 1))
    figure = new_figure(inches, 4.8)
    axes = figure.add_subplot()
    names = [f"{column.name}\n{score_label(column, column.averaged)}" for column in columns]
    results = {
        row_name(row): [comparison.cell(row, column).headline for column in columns] for row in comparison.request.rows
    }
    handles = draw_groups(axes, names, results, unit_of(columns), of_methods=True)
    axes.set_title(wrapped(comparison.request.heading, inches, 11), fontsize=11)
    axes.set_xlabel(wrapped(caption(comparison), inches, 8.5), fontsize=8, labelpad=8)
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure
