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
from reports.evidence.records import PAPER, Request
from reports.evidence.scores import score_label
from reports.evidence.statistics import mean
from reports.evidence.traffic import derived_cost
from reports.pages.page import Grid, one_line
from reports.pages.plots import HOLLOW, Dots, Panel, dot_plot
from reports.pages.text import NOT_RUN, at_round, dagger_note, in_units, notes_under, number, over_clients, row_name
from reports.views.comparison import Comparison, compare
from reports.views.reproduced import RULE
from reports.views.scores import caption, dots, scores_grid
from reports.views.scores import frame as scores_frame


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
    """Scores as in any table of scores, and the bytes of a round by c."""
    headers: tuple[tuple[str, ...], ...]
    headers = (("MB per round", "measured"), ("MB per round", f"derived for {found.request.paper_scale.backbone}"))
    headers = headers[: 1 + found.has_derived]
    groups = []
    for layer in found.layers.values():
        sizes = (layer.measured_bytes, layer.derived_bytes)[: len(headers)]
        cells = (NOT_RUN if size is None else number(size / MEGABYTE) for size in sizes)
        groups.append(one_line(f"c = {found.label(layer)}", cells))
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
    request = found.request
    labels = {row_id: f"c = {found.label(layer)}" for row_id, layer in found.layers.items()}
    bytes_of = [Dots("measured", _megabytes(found, labels, "measured_bytes"), {"color": "black"})]
    if found.has_derived:
        derived = f"derived, {request.paper_scale.backbone}"
        bytes_of.append(Dots(derived, _megabytes(found, labels, "derived_bytes"), HOLLOW | {"color": "black"}))
    panels = [Panel("MB per round", list(labels.values()), bytes_of)]
    for column in request.columns:
        results = [(row, found.comparison.cell(row, column).headline) for row in request.rows]
        levels = {row_name(row): result.ours for row, result in results if row.id not in labels}
        shown = {labels[row.id]: result for row, result in results if row.id in labels}
        title = f"{column.name}, {score_label(column, column.averaged)}"
        known = {name: level for name, level in levels.items() if level is not None}
        panels.append(Panel(title, list(shown), dots(shown), levels=known))
    text = f"{caption(found.comparison)} Bytes: one direction, all clients.{dagger_note(request.rows)}"
    if request.scale.depth != request.paper_scale.depth:
        text += f" c counts the paper's {request.paper_scale.depth} layers; in brackets those of this encoder."
    return dot_plot(request.heading, panels, "", text, across=2)


def _megabytes(found: Layers, labels: Mapping[str, str], name: str) -> dict[str, float]:
    sizes = {labels[row_id]: getattr(layer, name) for row_id, layer in found.layers.items()}
    return {label: size / MEGABYTE for label, size in sizes.items() if size is not None}
