"""The view of a figure against the critical layer: bytes a round, and scores.

Options: critical_layers, row id -> c of the paper's own encoder (rows without one are drawn as levels); printed_in,
the table whose printed scores stand beside ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from benchmarks.experiment import Row
from benchmarks.measures import metric
from reports.evidence.published import MEGABYTE  # as the paper's axis is read
from reports.evidence.records import PAPER, Request
from reports.evidence.scores import score_label
from reports.evidence.statistics import mean
from reports.evidence.traffic import derived_cost
from reports.pages.page import Grid, Group
from reports.pages.text import NOT_RUN, at_round, in_units, notes_under, number, over_clients, row_name
from reports.views.comparison import AverageResult, Comparison, compare
from reports.views.reproduced import RULE
from reports.views.scores import frame as scores_frame
from reports.views.scores import score_lines


@dataclass(frozen=True)
class Layer:
    """One row: its c, how many layers that is of the encoder at hand, and bytes of a round by the paper's convention.

    measured_bytes: mean over the tasks run, None where none was. derived_bytes: for the paper's own encoder and the
    first task, None where it was not asked for.
    """

    row: Row
    critical: int
    layers: int
    measured_bytes: float | None
    derived_bytes: float | None


@dataclass(frozen=True)
class Layers:
    """Scores by c and task (published ones from the table that prints them), and every c in the order of the rows."""

    comparison: Comparison
    layers: tuple[Layer, ...]
    references: tuple[Row, ...]  # rows without a c: levels
    printed_in: str  # the table that prints the scores

    @property
    def request(self) -> Request:
        return self.comparison.request

    @property
    def has_derived(self) -> bool:
        return any(layer.derived_bytes is not None for layer in self.layers)

    def label(self, layer: Layer) -> str:
        """The c of the paper's layers, with the layers of a smaller encoder: "6 (3 of 6)"."""
        depth = self.request.scale.depth
        is_scaled = depth != self.request.paper_scale.depth
        return f"{layer.critical} ({layer.layers} of {depth})" if is_scaled else str(layer.critical)


def _layer(comparison: Comparison, row: Row, critical: int) -> Layer:
    request = comparison.request
    options = request.benchmark.cell(row, request.columns[0], request.scale, 0).options
    costs = [comparison.cell(row, column).cost for column in request.columns]
    measured = [cost.round_bytes for cost in costs if cost is not None]
    derived = derived_cost(request, row)
    layers = int(options.get("critical_layer", request.scale.depth))
    return Layer(row, critical, layers, mean(measured) if measured else None, derived.round_bytes if derived else None)


def join(request: Request) -> Layers:
    """Records and printed values by critical layer; ReportError where a record or the published values are damaged."""
    options = request.benchmark.view.options
    criticals: Mapping[str, int] = options["critical_layers"]
    # No average: the paper prints one over all of its tasks alone.
    averages = tuple(AverageResult(row) for row in request.rows)
    comparison = replace(compare(request, str(options["printed_in"])), averages=averages)
    layers = tuple(_layer(comparison, row, criticals[row.id]) for row in request.rows if row.id in criticals)
    return Layers(
        comparison, layers, tuple(row for row in request.rows if row.id not in criticals), str(options["printed_in"])
    )


def _method(found: Layers) -> Iterator[str]:
    request = found.request
    yield (
        f"Scores{in_units(request.columns)}: {over_clients(request.columns)} {at_round(request.scored_at)}, then "
        "over n seeds; ± sd over seeds (n - 1); ± SE (test set): "
        "sampling error of the finite test sets, root mean square over seeds."
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


def notes(found: Layers) -> Iterator[str]:
    """Every note under the figure."""
    return notes_under(found.request, _method(found))


def grids(found: Layers) -> tuple[Grid, ...]:
    """Groups are c, columns tasks and bytes of a round."""
    columns = found.request.columns
    headers = [(column.name, score_label(column, column.averaged)) for column in columns]
    headers.append(("MB per round", "measured"))
    if found.has_derived:
        headers.append(("MB per round", f"derived for {found.request.paper_scale.backbone}"))
    texts: dict[str, tuple[str, ...]] = {}
    for layer in found.layers:
        sizes = (layer.measured_bytes, *([] if layer.derived_bytes is None else [layer.derived_bytes]))
        texts[layer.row.id] = tuple(NOT_RUN if size is None else number(size / MEGABYTE) for size in sizes)
    names = {layer.row.id: f"c = {found.label(layer)}" for layer in found.layers}
    nothing = ("",) * (len(headers) - len(columns))
    groups = []
    for row in found.request.rows:
        lines = score_lines(found.comparison, row, columns)
        tails = [texts.get(row.id, nothing), *[nothing] * (len(lines) - 1)]
        wider = (replace(line, cells=(*line.cells, *tail)) for line, tail in zip(lines, tails, strict=True))
        groups.append(Group(names.get(row.id, row_name(row)), tuple(wider)))
    title = f"{found.request.heading}: scores and bytes"
    signs = [(metric(column.averaged).sign,) for column in columns] + [()] * len(nothing)
    return (Grid(title, tuple(headers), tuple(groups), stub="Global layers", signs=tuple(signs)),)


def frame(found: Layers) -> pd.DataFrame:
    """The scores' data frame, with c, the layers exchanged and the bytes derived for the paper's own encoder."""
    table = scores_frame(replace(found.comparison, averages=()))
    by_row = {layer.row.id: layer for layer in found.layers}
    known = [by_row.get(row_id) for row_id in table["row"]]
    fields = {"critical_layer": "critical", "layers_exchanged": "layers", "derived_round_bytes": "derived_bytes"}
    for name, field in fields.items():
        table[name] = [None if layer is None else getattr(layer, field) for layer in known]
    return table.astype({"critical_layer": "Int64", "layers_exchanged": "Int64", "derived_round_bytes": "Float64"})
