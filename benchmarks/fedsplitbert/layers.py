"""Figure 5: bytes per round and scores by critical layer.

Rows without a critical layer become levels. Option: printed_in, the table with the published scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.experiment import Row
from benchmarks.fedsplitbert.tables import CRITICAL_LAYERS
from reports.evidence.published import MEGABYTE
from reports.evidence.statistics import mean
from reports.evidence.traffic import derived_cost
from reports.pages.page import Grid, one_line
from reports.pages.plots import HOLLOW, Dots, Panel, dot_plot
from reports.pages.text import NOT_RUN, number
from reports.views.scores import ScoreTable


@dataclass(frozen=True)
class Layer:
    """A row's c, its layers in the scale's encoder, and bytes per round by the paper's convention.

    Args:
        measured_bytes: The mean over the tasks run; None without a run.
        derived_bytes: For the paper's encoder and the first task; None if not derivable.
        name: c in the paper's layers, and in a smaller encoder's.
    """

    critical: int
    layers: int
    measured_bytes: float | None
    derived_bytes: float | None
    name: str


class LayerFigure(ScoreTable):
    """Scores by c and task; without an average, which the paper has only over all its tasks."""

    averages = False
    is_of_whole_runs = False

    @cached_property
    def layers(self) -> dict[str, Layer]:
        """Row id -> layers, for rows with a c."""
        rows = (row for row in self.request.rows if row.id in CRITICAL_LAYERS)
        return {row.id: self._layer(row, CRITICAL_LAYERS[row.id]) for row in rows}

    def _layer(self, row: Row, critical: int) -> Layer:
        request, depth = self.request, self.request.scale.depth
        options = request.benchmark.cell(row, request.columns[0], request.scale, 0).options
        layers, derived = int(options.get("critical_layer", depth)), derived_cost(request, row)
        costs = [self.cell(row, column).cost for column in request.columns]
        sizes = [cost.round_bytes for cost in costs if cost is not None]
        name = f"c = {critical}" + (f" ({layers} of {depth})" if depth != request.paper_scale.depth else "")
        return Layer(critical, layers, mean(sizes) if sizes else None, derived.round_bytes if derived else None, name)

    @property
    def _encoder(self) -> str:
        """The encoder for which bytes are derived; "" if they are not."""
        is_derived = any(layer.derived_bytes is not None for layer in self.layers.values())
        return self.request.paper_scale.backbone if is_derived else ""

    def notes(self) -> Iterator[str]:
        """Where the reported scores and the bytes come from, and every note of a table of scores."""
        request = self.request
        if self.shows_published:
            where = request.benchmark.view.options["printed_in"]
            yield f"reported: {where}; the figure itself is printed without numbers."
        yield "Bytes: mean over rounds, seeds and the tasks run, which differ only in the classifier's size."
        if self._encoder:
            task = request.columns[0].name
            yield f"derived for {self._encoder}: the same channel on its shapes, without training; for {task}."
        yield from super().notes()

    def grids(self) -> Iterator[Grid]:
        """Scores as in any score table, and bytes per round by c."""
        ways = ("measured", *([f"derived for {self._encoder}"] if self._encoder else []))
        groups = []
        for layer in self.layers.values():
            sizes = (layer.measured_bytes, layer.derived_bytes)[: len(ways)]
            texts = (NOT_RUN if size is None else number(size / MEGABYTE) for size in sizes)
            groups.append(one_line(layer.name, texts))
        headers = tuple(("MB per round", way) for way in ways)
        yield self.scores_grid()
        yield Grid(f"{self.request.heading}: bytes", headers, tuple(groups), "Global layers")

    def frame(self) -> pd.DataFrame:
        """The scores' frame, with c, the layers exchanged and the bytes derived for the paper's encoder."""
        table = super().frame()
        layers = [self.layers.get(row_id) for row_id in table["row"]]
        fields = {"critical_layer": "critical", "layers_exchanged": "layers", "derived_round_bytes": "derived_bytes"}
        for name, field in fields.items():
            table[name] = [None if layer is None else getattr(layer, field) for layer in layers]
        return table.astype({"critical_layer": "Int64", "layers_exchanged": "Int64", "derived_round_bytes": "Float64"})

    def plot(self) -> Figure:
        """Measured and derived bytes per round by c, and a score panel per task."""

        def bytes_of(way: str, **style: str) -> Dots:
            sizes = {layer.name: getattr(layer, f"{way}_bytes") for layer in self.layers.values()}
            sizes = {label: size / MEGABYTE for label, size in sizes.items() if size is not None}
            return Dots(f"bytes, {way}", sizes, style)

        series = [bytes_of("measured"), *([bytes_of("derived", **HOLLOW)] if self._encoder else [])]
        names = {row_id: layer.name for row_id, layer in self.layers.items()}
        levels = {row.id: self.request.name_of(row) for row in self.request.rows if row.id not in names}
        panels = [Panel("MB per round", list(names.values()), series)]
        panels += self.score_panels(names | levels, list(levels))
        text = f"{self.caption} Bytes: one direction, all clients."
        text += " The paper prints the figure itself without numbers." if self.shows_published else ""
        return dot_plot(self.request.heading, panels, "", text, across=2)
