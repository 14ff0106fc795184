"""A comparison as a bar plot: headline scores by task, methods side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.spec import Column
from reports.comparison import Comparison, ScoreResult
from reports.layout import row_name, score_label
from reports.plots import HATCHES, PALETTE, new_figure, tidy, wrapped
from reports.views.scores.tables import columns_shown

_GROUP_WIDTH = 0.84  # of the distance between two tasks


def _error(result: ScoreResult) -> float:
    """Length of an error bar in points: seed noise where there is any, else test noise."""
    return (result.sd if result.sd is not None else result.sampling_error) or 0.0


def _draw_rows(axes: Axes, comparison: Comparison, columns: Sequence[Column]) -> list[Any]:
    """One colour and hatch a method, diamonds where the paper prints a number; the legend's handles."""
    width = _GROUP_WIDTH / len(comparison.rows)
    published: list[tuple[float, float]] = []
    handles: list[Any] = []
    for number, row in enumerate(comparison.rows):
        offset = (number - (len(comparison.rows) - 1) / 2) * width
        results = [comparison.cell(row, column).headline for column in columns]
        drawn = [(place + offset, result) for place, result in enumerate(results) if result.ours is not None]
        bars = axes.bar(
            [x for x, _ in drawn],
            [result.ours or 0.0 for _, result in drawn],
            width,
            yerr=[_error(result) for _, result in drawn],
            error_kw={"elinewidth": 0.9, "capsize": 1.5, "ecolor": "black"},
            color=PALETTE[number % len(PALETTE)],
            hatch=HATCHES[number % len(HATCHES)],
            edgecolor="black",
            linewidth=0.5,
            label=row_name(row),
        )
        handles.append(bars)
        published += [
            (place + offset, result.published) for place, result in enumerate(results) if result.published is not None
        ]
    if published:
        x, y = zip(*published, strict=True)
        style: Any = {"marker": "D", "color": "white", "edgecolors": "black", "zorder": 3}
        handles.append(axes.scatter(x, y, 16, label="published", **style))
    return handles


def _caption(comparison: Comparison) -> str:
    """What bars, whiskers and diamonds are."""
    text = (
        f"Bars: ours, mean over clients and seeds ({comparison.score_at} round); no bar: not run. "
        "Whiskers: ± sd over seeds; with one seed, ± sampling error of the test sets."
    )
    if comparison.shows_published:
        text += " Diamonds: published"
        text += "." if comparison.scale.id == "paper" else ", not comparable in level: other encoder/scale."
    return text


def bar_plot(comparison: Comparison) -> Figure:
    """Grouped bars of each task's headline score, in percent."""
    columns = columns_shown(comparison)
    inches = max(7.0, 1.2 + 0.17 * len(columns) * (len(comparison.rows) + 1))
    figure = new_figure(inches, 4.8)
    axes = figure.add_subplot()
    handles = _draw_rows(axes, comparison, columns)
    names = [f"{column.name}\n{score_label(column.averaged)}" for column in columns]
    axes.set_xticks(range(len(columns)), names)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(min(0.0, axes.get_ylim()[0]), 100)
    axes.set_ylabel("score (%)")
    tidy(axes)
    axes.set_title(wrapped(comparison.heading, inches, 11), fontsize=11)
    axes.set_xlabel(wrapped(_caption(comparison), inches, 8.5), fontsize=8, labelpad=8)
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure
