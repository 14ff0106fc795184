"""A comparison as a bar plot: headline scores by task, methods side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks.experiment import Column, Row
from reports.evidence.records import PAPER
from reports.evidence.scores import score_label, unit_of
from reports.pages.plots import DECADES, fill, finish, new_figure, say_not_run, tidy, variant_fill
from reports.pages.text import DAGGER, row_name
from reports.views.comparison import Comparison, ScoreResult

_GROUP_WIDTH = 0.84  # of the distance between two groups
_MOST_INCHES = 9.5  # so that its text can be read where a page shows it 900 px wide
LEVELS = ("--", ":", "-.")  # of references that are drawn as lines
_VISIBLE = 0.5  # points: a lower bar looks like one that was not run, so its number stands there
_PRINTED, _DERIVED = "reported", "derived from the paper's text"
_WHISKERS: Any = {"elinewidth": 0.9, "capsize": 1.5, "ecolor": "black"}
_MARKERS = {_PRINTED: "D", _DERIVED: "o"}


def draw_groups(
    axes: Axes,
    groups: Sequence[str],
    series: Mapping[str, Sequence[ScoreResult | None]],
    unit: str,
    methods: Sequence[str] = (),
) -> list[Any]:
    """Bars side by side in each group, one colour and hatch a series; returns the legend's handles.

    Diamonds where the paper prints a number, circles where its text implies one. series: label -> a result for each
    group, None where the table has no such cell. unit: of the scores, "" of several. methods: the names of groups that
    are methods, of which series are variants; without them series are methods.
    """
    width = _GROUP_WIDTH / max(len(series), 1)
    marks: dict[str, list[tuple[float, float]]] = {label: [] for label in _MARKERS}
    handles: list[Any] = []
    for number, (name, found) in enumerate(series.items()):
        offset = (number - (len(series) - 1) / 2) * width
        results = [(place, result) for place, result in enumerate(found) if result is not None]
        drawn = [(place, result.ours, result.error) for place, result in results if result.ours is not None]
        own = fill(number, name.removesuffix(f" {DAGGER}"))
        for place, height, error in drawn:
            style = variant_fill(number, methods[place]) if methods else own
            axes.bar(place + offset, height, width, yerr=error, error_kw=_WHISKERS, **style)
            if abs(height) < _VISIBLE:
                axes.annotate("0", (place + offset, 0), (0, 3), textcoords="offset points", ha="center", fontsize=7)
        if drawn:
            handles.append(Patch(label=name, **(variant_fill(number) if methods else own)))
        for place, result in results:
            if result.published is not None:
                marks[_DERIVED if result.is_derived else _PRINTED].append((place + offset, result.published))
    white: Any = {"color": "white", "edgecolors": "black", "zorder": 3}
    for label, points in marks.items():
        if points:
            x_values, y_values = zip(*points, strict=True)
            handles.append(axes.scatter(x_values, y_values, 16, label=label, marker=_MARKERS[label], **white))
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    drawn_at = [result.ours for found in series.values() for result in found if result is not None]
    heights = [height for height in drawn_at if height is not None]
    heights += [height for points in marks.values() for _, height in points]
    if not unit and heights and min(heights) > 0 and max(heights) > DECADES * min(heights):  # perplexities, say
        axes.set_yscale("log")
        axes.set_ylim(min(heights) / 2, 2 * max(heights))
        axes.set_ylabel(f"{axis_label(unit)}, logarithmic")
    else:
        limit_scores(axes, unit)
    tidy(axes)
    return handles


def _draw_levels(axes: Axes, comparison: Comparison, rows: Sequence[Row], columns: Sequence[Column]) -> list[Any]:
    """A line across each group for rows that are levels; returns the legend's handles."""
    handles = []
    for number, row in enumerate(rows):
        style: Any = {"color": "black", "linestyle": LEVELS[number % len(LEVELS)], "linewidth": 1.2}
        for place, column in enumerate(columns):
            level = comparison.cell(row, column).headline.ours
            if level is not None:
                axes.plot([place - 0.46, place + 0.46], [level, level], zorder=2.5, **style)
        handles.append(Line2D([], [], label=row_name(row), **style))
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


def _run_rows(comparison: Comparison) -> list[Row]:
    scored = comparison.columns_shown
    return [
        row
        for row in comparison.request.rows
        if any(comparison.cell(row, column).headline.ours is not None for column in scored)
    ]


def plot(comparison: Comparison) -> Figure:
    """Grouped bars of each task's headline score, a few tasks a panel; the majority class as lines, no bars."""
    columns, rows = comparison.columns_shown, _run_rows(comparison)
    levels = [row for row in rows if "majority" in row.algorithm]
    bars = [row for row in rows if row not in levels]
    most = max(1, int((_MOST_INCHES - 1.2) / (0.17 * (len(bars) + 1))))
    down = -(-len(columns) // most)
    across = -(-len(columns) // down)
    inches = min(_MOST_INCHES, max(7.0, 1.2 + 0.17 * across * (len(bars) + 1)))
    figure = new_figure(inches, 2.2 + 2.6 * down)
    handles: dict[str, Any] = {}
    for place, axes in enumerate(figure.subplots(down, squeeze=False)[:, 0]):
        part = columns[place * across : (place + 1) * across]
        names = [f"{column.name}\n{score_label(column, column.averaged)}" for column in part]
        results = {row_name(row): [comparison.cell(row, column).headline for column in part] for row in bars}
        drawn = draw_groups(axes, names, results, unit_of(part))
        handles |= {handle.get_label(): handle for handle in [*drawn, *_draw_levels(axes, comparison, levels, part)]}
        axes.set_xlim(-0.5, across - 0.5)
        if not rows:
            say_not_run(axes)
    ordered = [handles.pop(name) for name in map(row_name, rows) if name in handles]
    return finish(figure, comparison.request.heading, [*ordered, *handles.values()], caption(comparison))
