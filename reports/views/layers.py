"""The view of a figure against the critical layer: bytes a round, and scores.

Options: critical_layers, row id -> c of the paper's own encoder (rows without one are drawn as levels); printed_in,
the table that prints the published scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.experiment import Row
from reports.evidence.published import MEGABYTE
from reports.evidence.records import PAPER, Request
from reports.evidence.scores import score_label, unit_of
from reports.evidence.statistics import mean
from reports.evidence.traffic import derived_cost
from reports.pages.page import Grid, Group
from reports.pages.plots import digits, finish, mark, new_figure, say_not_run, tidy
from reports.pages.text import (
    NOT_RUN,
    REPORTED,
    at_round,
    dagger_note,
    in_units,
    notes_under,
    number,
    over_clients,
    row_name,
    seed_counts,
)
from reports.views.comparison import Comparison, compare
from reports.views.reproduced import RULE
from reports.views.scores import axis_label, score_lines
from reports.views.scores import frame as scores_frame

_GREY: Any = {"color": "0.35", "linewidth": 0.9}


@dataclass(frozen=True)
class Layer:
    """One row: its c, how many layers of the scale's encoder that is, and bytes of a round by the paper's convention.

    measured_bytes: mean over the tasks run, None where none was. derived_bytes: for the paper's own encoder and the
    first task, None where the request cannot derive them.
    """

    critical: int
    layers: int
    measured_bytes: float | None
    derived_bytes: float | None


@dataclass(frozen=True)
class Layers:
    """Scores by c and task (published ones from the table that prints them), and row id -> its layers."""

    comparison: Comparison
    layers: Mapping[str, Layer]

    @property
    def request(self) -> Request:
        return self.comparison.request

    @property
    def printed_in(self) -> str:
        return str(self.request.benchmark.view.options["printed_in"])

    @property
    def has_derived(self) -> bool:
        return any(layer.derived_bytes is not None for layer in self.layers.values())

    def label(self, layer: Layer) -> str:
        """The c of the paper's layers, with the layers of a smaller encoder: "6 (3 of 6)"."""
        depth = self.request.scale.depth
        is_scaled = depth != self.request.paper_scale.depth
        return f"{layer.critical} ({layer.layers} of {depth})" if is_scaled else str(layer.critical)


def _layer(comparison: Comparison, row: Row, critical: int) -> Layer:
    request = comparison.request
    options = request.benchmark.cell(row, request.columns[0], request.scale, 0).options
    costs = [comparison.cell(row, column).cost for column in request.columns]
    sizes = [cost.round_bytes for cost in costs if cost is not None]
    derived = derived_cost(request, row)
    layers = int(options.get("critical_layer", request.scale.depth))
    return Layer(critical, layers, mean(sizes) if sizes else None, derived.round_bytes if derived else None)


def join(request: Request) -> Layers:
    """Records and published scores by critical layer; ReportError where a record or the published values are damaged.

    Without an average: the paper prints one over all of its tasks alone.
    """
    options = request.benchmark.view.options
    criticals: Mapping[str, int] = options["critical_layers"]
    comparison = compare(request, str(options["printed_in"]), averages=False)
    rows = (row for row in request.rows if row.id in criticals)
    return Layers(comparison, {row.id: _layer(comparison, row, criticals[row.id]) for row in rows})


def notes(found: Layers) -> Iterator[str]:
    """Every note under the figure."""
    return notes_under(found.request, _method(found))


def _method(found: Layers) -> Iterator[str]:
    request = found.request
    yield (
        f"Scores{in_units(request.columns)}: {over_clients(request.columns)} {at_round(request.scored_at)}, then "
        "over n seeds; ± sd over seeds (n - 1); ± SE (test set): sampling error of the finite test sets, root mean "
        "square over seeds."
    )
    if found.comparison.shows_published:
        yield f"reported: {found.printed_in}; the figure itself is printed without numbers."
    if request.scale.id == PAPER:
        yield RULE
    yield (
        f"Bytes per round: {request.benchmark.paper.bytes_convention}; measured: mean over rounds, seeds and the "
        "tasks run, which differ by the size of the classifier alone."
    )
    if found.has_derived:
        yield (
            f"derived for {request.paper_scale.backbone}: the same channel on its shapes alone, without training; for "
            f"{request.columns[0].name}."
        )


def grids(found: Layers) -> tuple[Grid, ...]:
    """Groups are c, columns tasks and bytes of a round."""
    request, columns = found.request, found.request.columns
    headers = [(column.name, score_label(column, column.averaged)) for column in columns]
    headers.append(("MB per round", "measured"))
    if found.has_derived:
        headers.append(("MB per round", f"derived for {request.paper_scale.backbone}"))
    groups = []
    for row in request.rows:
        name, tail = row_name(row), ("",) * (len(headers) - len(columns))
        lines, empty = score_lines(found.comparison, row, columns), tail
        if row.id in found.layers:
            layer = found.layers[row.id]
            sizes = (layer.measured_bytes, layer.derived_bytes)[: len(tail)]
            tail = tuple(NOT_RUN if size is None else number(size / MEGABYTE) for size in sizes)
            name = f"c = {found.label(layer)}"
        wider = [
            replace(line, cells=(*line.cells, *(empty if place else tail)), best=(*line.best, *[()] * len(tail)))
            if line.best
            else replace(line, cells=(*line.cells, *(empty if place else tail)))
            for place, line in enumerate(lines)
        ]
        groups.append(Group(name, tuple(wider)))
    return (Grid(f"{request.heading}: scores and bytes", tuple(headers), tuple(groups), stub="Global layers"),)


def frame(found: Layers) -> pd.DataFrame:
    """The scores' data frame, with c, the layers exchanged and the bytes derived for the paper's own encoder."""
    table = scores_frame(found.comparison)
    layers = [found.layers.get(row_id) for row_id in table["row"]]
    fields = {"critical_layer": "critical", "layers_exchanged": "layers", "derived_round_bytes": "derived_bytes"}
    for name, field in fields.items():
        table[name] = [None if layer is None else getattr(layer, field) for layer in layers]
    return table.astype({"critical_layer": "Int64", "layers_exchanged": "Int64", "derived_round_bytes": "Float64"})


def _draw_bytes(axes: Axes, points: Sequence[tuple[int, float]], title: str, style: dict[str, Any]) -> None:
    """Megabytes of a round by c, each with its number."""
    axes.set_title(title, fontsize=10)
    axes.set_ylabel("MB per round", fontsize=9)
    if points:
        axes.plot(*zip(*points, strict=True), color="black", marker="o", markersize=5, linewidth=1.4, **style)
        axes.set_ylim(0, 1.18 * max(y for _, y in points) or 1.0)
    for x, y in points:
        axes.annotate(digits(y), (x, y), (0, 6), textcoords="offset points", ha="center", fontsize=7.5)


def _draw_scores(axes: Axes, found: Layers, layers: Mapping[str, Layer]) -> list[Any]:
    handles: list[Any] = []
    rows = {row.id: row for row in found.request.rows}
    for column in found.request.columns:
        style = mark(found.request.benchmark.columns.index(column)) | {"markersize": 6}
        cells = {
            layer.critical: found.comparison.cell(rows[row_id], column).headline for row_id, layer in layers.items()
        }
        ours = [(c, result.ours, result.error) for c, result in cells.items() if result.ours is not None]
        if ours:
            axes.errorbar(*zip(*ours, strict=True), capsize=2, elinewidth=0.9, linewidth=1.6, **style)
        published = [(c, result.published) for c, result in cells.items() if result.published is not None]
        if published:
            hollow: Any = style | {"markerfacecolor": "white", "linestyle": ":", "linewidth": 0.9}
            axes.plot(*zip(*published, strict=True), **hollow)
        for row in (row for row in rows.values() if row.id not in layers):
            level = found.comparison.cell(row, column).headline.ours
            if level is not None:
                axes.axhline(level, color=style["color"], linestyle="--", linewidth=0.9)
        handles.append(Line2D([], [], label=f"{column.name} ({score_label(column, column.averaged)})", **style))
    if found.comparison.shows_published:
        hollow = {"marker": "o", "markerfacecolor": "white", "linestyle": ":"}
        handles.append(Line2D([], [], label=f"{REPORTED} ({found.printed_in})", **_GREY, **hollow))
    for row in (row for row in rows.values() if row.id not in layers):
        handles.append(Line2D([], [], label=f"{row_name(row)}, in the task's colour", linestyle="--", **_GREY))
    return handles


def plot(found: Layers) -> Figure:
    """Bytes of a round at the left (measured above derived), scores at the right."""
    request, figure = found.request, new_figure(10.5, 5.8)
    layers = dict(sorted(found.layers.items(), key=lambda entry: entry[1].critical))
    places: Any = [["measured", "scores"], ["derived", "scores"]] if found.has_derived else [["measured", "scores"]]
    panels: dict[str, Axes] = figure.subplot_mosaic(places, width_ratios=[1, 1.15])
    styles: dict[str, Any] = {"measured": {}, "derived": {"markerfacecolor": "white", "linestyle": "--"}}
    for name, style in list(styles.items())[: len(places)]:
        sizes = [(layer.critical, getattr(layer, f"{name}_bytes")) for layer in layers.values()]
        backbone = (request.scale if name == "measured" else request.paper_scale).backbone
        points = [(critical, size / MEGABYTE) for critical, size in sizes if size is not None]
        _draw_bytes(panels[name], points, f"{name}, {backbone}", style)
    handles = _draw_scores(panels["scores"], found, layers)
    panels["scores"].set_title("test scores", fontsize=10)
    panels["scores"].set_ylabel(axis_label(unit_of(request.columns)), fontsize=9)
    labels = [found.label(layer).replace(" ", "\n", 1) for layer in layers.values()]
    for axes in panels.values():
        tidy(axes)
        axes.tick_params(labelsize=8)
        axes.set_xticks([layer.critical for layer in layers.values()], labels)
        axes.set_xlabel(f"global layers c (of {request.paper_scale.depth})", fontsize=9)
        if not axes.has_data():
            say_not_run(axes)
    n = seed_counts([len(cell.seeds) for cell in found.comparison.cells])
    caption = (
        f"Scores: reproduced, mean over clients and seeds{n} ({request.scored_at} round); no mark: not run. Whiskers: "
        "± sd over seeds; with one seed, ± SE of the test sets. Bytes: one direction, all clients. Hollow: reported; "
        f"comparable in level at the paper scale only.{dagger_note(request.rows)}"
    )
    if request.scale.depth != request.paper_scale.depth:
        caption += f" c counts the paper's {request.paper_scale.depth} layers; in brackets those of this encoder."
    return finish(figure, request.heading, handles, caption)
