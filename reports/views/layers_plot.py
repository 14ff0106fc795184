"""Bytes a round and scores against the critical layer: two plots side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.experiment import Column
from reports.evidence.published import MEGABYTE
from reports.evidence.records import PAPER
from reports.evidence.scores import score_label, unit_of
from reports.pages.plots import digits, finish, mark, measured, new_figure, say_not_run, tidy
from reports.pages.text import dagger_note, row_name
from reports.views.layers import Layer, Layers
from reports.views.scores_plot import axis_label

_INCHES = (10.5, 5.8)
_GREY: Any = {"color": "0.35", "linewidth": 0.9}


def _axis(axes: Axes, found: Layers, ascending: Sequence[Layer]) -> None:
    tidy(axes)
    axes.tick_params(labelsize=8)
    labels = [found.label(layer).replace(" ", "\n", 1) for layer in ascending]
    axes.set_xticks([layer.critical for layer in ascending], labels)
    axes.set_xlim(-0.7, found.request.paper_scale.depth + 0.7)


def _not_run(axes: Axes) -> None:
    say_not_run(axes)
    axes.set_yticks([])


def _draw_bytes(axes: Axes, sizes: Mapping[int, float | None], title: str, style: dict[str, Any]) -> None:
    """Megabytes of a round by c, each with its number."""
    points = [(critical, size / MEGABYTE) for critical, size in sizes.items() if size is not None]
    axes.set_title(title, fontsize=10)
    axes.set_ylabel("MB per round", fontsize=9)
    if not points:
        _not_run(axes)
        return
    axes.plot(*zip(*points, strict=True), **style)
    for x, y in points:
        axes.annotate(digits(y), (x, y), (0, 6), textcoords="offset points", ha="center", fontsize=7.5)
    axes.set_ylim(0, 1.18 * max(y for _, y in points) or 1.0)


def _draw_task(axes: Axes, found: Layers, column: Column, ascending: Sequence[Layer]) -> None:
    number = found.request.benchmark.columns.index(column)
    style = mark(number) | {"markersize": 6}
    results = [(layer.critical, found.comparison.cell(layer.row, column).headline) for layer in ascending]
    ours = [(x, result.ours, result.error) for x, result in results if result.ours is not None]
    if ours:
        x, y, errors = zip(*ours, strict=True)
        axes.errorbar(x, y, errors, capsize=2, elinewidth=0.9, linewidth=1.6, **style)
    published = [(x, result.published) for x, result in results if result.published is not None]
    if published:
        x, y = zip(*published, strict=True)
        axes.plot(x, y, markerfacecolor="white", linestyle=":", linewidth=0.9, **style)
    for row in found.references:
        level = found.comparison.cell(row, column).headline.ours
        if level is not None:
            axes.axhline(level, color=style["color"], linestyle="--", linewidth=0.9)


def _is_run(found: Layers, column: Column) -> bool:
    return any(found.comparison.cell(layer.row, column).headline.ours is not None for layer in found.layers)


def _handles(found: Layers, shown: Sequence[Column]) -> list[Any]:
    columns = found.request.benchmark.columns
    handles = []
    for column in shown:
        place, label = columns.index(column), f"{column.name} ({score_label(column, column.averaged)})"
        handles.append(Line2D([], [], label=label, **mark(place)))
    if found.comparison.shows_published:
        hollow: Any = {"marker": "o", "markerfacecolor": "white", "linestyle": ":"}
        handles.append(Line2D([], [], label=f"reported ({found.printed_in})", **_GREY, **hollow))
    for row in found.references:
        handles.append(Line2D([], [], label=f"{row_name(row)}, in the task's colour", linestyle="--", **_GREY))
    return handles


def _caption(found: Layers) -> str:
    counts = sorted({len(cell.seeds) for cell in found.comparison.cells if cell.is_run})
    n = f", n = {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}" if counts else ""
    text = (
        f"Scores: reproduced, mean over clients and seeds{n} ({found.request.scored_at} round); no mark: not run. "
        "Whiskers: ± sd over seeds; with one seed, ± SE of the test sets. Bytes: one direction, all clients."
    )
    if found.request.scale.depth != found.request.paper_scale.depth:
        text += f" c counts the paper's {found.request.paper_scale.depth} layers; in brackets those of this encoder."
    text += dagger_note(found.references)
    if found.comparison.shows_published:
        text += " Hollow: reported"
        text += "." if found.request.scale.id == PAPER else ", not comparable in level: other encoder/scale."
    return text


def plot(found: Layers) -> Figure:
    """Bytes of a round at the left (measured above derived), scores at the right."""
    columns, left_out = measured(found.request.columns, partial(_is_run, found))
    ascending = sorted(found.layers, key=lambda layer: layer.critical)
    figure = new_figure(*_INCHES)
    places: Any = [["measured", "scores"], ["derived", "scores"]] if found.has_derived else [["measured", "scores"]]
    panels: dict[str, Axes] = figure.subplot_mosaic(places, width_ratios=[1, 1.15])
    for axes in panels.values():
        _axis(axes, found, ascending)
    solid = {"color": "black", "marker": "o", "markersize": 5, "linewidth": 1.4}
    counted = {layer.critical: layer.measured_bytes for layer in ascending}
    _draw_bytes(panels["measured"], counted, f"measured, {found.request.scale.backbone}", solid)
    if found.has_derived:
        derived = {layer.critical: layer.derived_bytes for layer in ascending}
        hollow = solid | {"markerfacecolor": "white", "linestyle": "--"}
        _draw_bytes(panels["derived"], derived, f"derived, {found.request.paper_scale.backbone}", hollow)
    scores = panels["scores"]
    scores.set_title("test scores", fontsize=10)
    scores.set_ylabel(axis_label(unit_of(columns)), fontsize=9)
    for column in columns:
        _draw_task(scores, found, column, ascending)
    if not scores.has_data():
        _not_run(scores)
    for name in ("derived" if found.has_derived else "measured", "scores"):
        panels[name].set_xlabel(f"global layers c (of {found.request.paper_scale.depth})", fontsize=9)
    return finish(figure, found.request.heading, _handles(found, columns), _caption(found) + left_out)
