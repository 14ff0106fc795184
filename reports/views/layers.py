"""The view of a figure against the critical layer: bytes a round, and scores.

Options: critical_layers, row id -> c of the paper's own encoder (rows without one are drawn as levels); printed_in,
the table that prints the published scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.experiment import Row
from reports.evidence.published import MEGABYTE
from reports.evidence.records import Request
from reports.evidence.statistics import mean
from reports.evidence.traffic import derived_cost
from reports.pages.page import Grid, one_line
from reports.pages.plots import HOLLOW, Dots, Panel, dot_plot
from reports.pages.text import NOT_RUN, number, row_name
from reports.views.comparison import Comparison, compare
from reports.views.scores import caption, score_panels, scores_grid
from reports.views.scores import frame as scores_frame


@dataclass(frozen=True)
class Layer:
    """One row: its c, how many layers of the scale's encoder that is, and bytes of a round by the paper's convention.

    measured_bytes: mean over the tasks run, None where none was. derived_bytes: for the paper's own encoder and the
    first task, None where the request cannot derive them. name: c of the paper's layers, and of a smaller encoder's.
    """

    critical: int
    layers: int
    measured_bytes: float | None
    derived_bytes: float | None
    name: str


@dataclass(frozen=True)
class Layers:
    """Scores by c and task, and row id -> its layers."""

    comparison: Comparison
    layers: Mapping[str, Layer]

    @property
    def request(self) -> Request:
        return self.comparison.request

    @property
    def has_derived(self) -> bool:
        return any(layer.derived_bytes is not None for layer in self.layers.values())


def join(request: Request) -> Layers:
    """Records and published scores by critical layer; ReportError where a record or the published values are damaged.

    Without an average: the paper prints one over all of its tasks alone.
    """
    options = request.benchmark.view.options
    criticals: Mapping[str, int] = options["critical_layers"]
    comparison = compare(request, str(options["printed_in"]), averages=False)
    rows = (row for row in request.rows if row.id in criticals)
    return Layers(comparison, {row.id: _layer(comparison, row, criticals[row.id]) for row in rows})


def _layer(comparison: Comparison, row: Row, critical: int) -> Layer:
    request, depth = comparison.request, comparison.request.scale.depth
    layers = int(request.benchmark.cell(row, request.columns[0], request.scale, 0).options.get("critical_layer", depth))
    costs = [comparison.cell(row, column).cost for column in request.columns]
    sizes, derived = [cost.round_bytes for cost in costs if cost is not None], derived_cost(request, row)
    name = f"c = {critical}" + (f" ({layers} of {depth})" if depth != request.paper_scale.depth else "")
    return Layer(critical, layers, mean(sizes) if sizes else None, derived.round_bytes if derived else None, name)


def notes(found: Layers) -> Iterator[str]:
    """Where the reported scores and the bytes come from, and every note of a table of scores."""
    request = found.request
    if found.comparison.shows_published:
        where = request.benchmark.view.options["printed_in"]
        yield f"reported: {where}; the figure itself is printed without numbers."
    yield "Bytes: mean over rounds, seeds and the tasks run, which differ by the size of the classifier alone."
    if found.has_derived:
        encoder, task = request.paper_scale.backbone, request.columns[0].name
        yield f"derived for {encoder}: the same channel on its shapes alone, without training; for {task}."
    yield from found.comparison.notes


def grids(found: Layers) -> tuple[Grid, ...]:
    """Scores as in any table of scores, and the bytes of a round by c."""
    headers: tuple[tuple[str, ...], ...]
    headers = (("MB per round", "measured"), ("MB per round", f"derived for {found.request.paper_scale.backbone}"))
    headers = headers[: 1 + found.has_derived]
    groups = []
    for layer in found.layers.values():
        sizes = (layer.measured_bytes, layer.derived_bytes)[: len(headers)]
        groups.append(one_line(layer.name, (NOT_RUN if size is None else number(size / MEGABYTE) for size in sizes)))
    table = Grid(f"{found.request.heading}: bytes", headers, tuple(groups), stub="Global layers")
    return scores_grid(found.comparison), table


def frame(found: Layers) -> pd.DataFrame:
    """The scores' data frame, with c, the layers exchanged and the bytes derived for the paper's own encoder."""
    table = scores_frame(found.comparison)
    layers = [found.layers.get(row_id) for row_id in table["row"]]
    fields = {"critical_layer": "critical", "layers_exchanged": "layers", "derived_round_bytes": "derived_bytes"}
    for name, field in fields.items():
        table[name] = [None if layer is None else getattr(layer, field) for layer in layers]
    return table.astype({"critical_layer": "Int64", "layers_exchanged": "Int64", "derived_round_bytes": "Float64"})


def plot(found: Layers) -> Figure:
    """A line for each c: bytes of a round, measured and derived, and a panel of scores for each task."""

    def megabytes(name: str) -> dict[str, float]:
        sizes = {layer.name: getattr(layer, name) for layer in found.layers.values()}
        return {label: size / MEGABYTE for label, size in sizes.items() if size is not None}

    bytes_of = [Dots("bytes, measured", megabytes("measured_bytes"), {"color": "black"})]
    if found.has_derived:
        bytes_of.append(Dots("bytes, derived", megabytes("derived_bytes"), HOLLOW | {"color": "black"}))
    names = {row_id: layer.name for row_id, layer in found.layers.items()}
    levels = {row.id: row_name(row) for row in found.request.rows if row.id not in names}
    panels = [Panel("MB per round", list(names.values()), bytes_of)]
    panels += score_panels(found.comparison, names | levels, list(levels))
    text = f"{caption(found.comparison)} Bytes: one direction, all clients."
    return dot_plot(found.request.heading, panels, "", text, across=2)
