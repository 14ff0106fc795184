"""What a figure against the critical layer shows: each c with its scores and its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.spec import Row, Scale
from reports.comparison import AverageResult, Comparison, compare
from reports.page import Request
from reports.statistics import mean

MEGABYTE = 10**6  # as the paper's axis is read


@dataclass(frozen=True)
class Layer:
    """One row: its c, how many layers that is of the encoder at hand, and bytes of a round in one direction.

    measured_bytes: mean over the tasks run, None where none was. derived_bytes: for the paper's own encoder and the
    first task, None where it was not asked for.
    """

    row: Row
    critical: int
    layers: int
    measured_bytes: float | None
    derived_bytes: int | None


@dataclass(frozen=True)
class Layers:
    """Scores by c and task (published ones from the table that prints them), and every c in the order of the rows."""

    request: Request
    comparison: Comparison
    layers: tuple[Layer, ...]
    references: tuple[Row, ...]  # rows without a c: levels

    @property
    def paper_scale(self) -> Scale:
        """The scale of the paper's own encoder, whose layers c counts."""
        return self.request.benchmark.scale("paper")

    @property
    def has_derived(self) -> bool:
        """Whether bytes of the paper's own encoder are known."""
        return any(layer.derived_bytes is not None for layer in self.layers)

    @property
    def printed_in(self) -> str:
        """The table that prints the scores."""
        return printed_in(self.request)

    def label(self, layer: Layer) -> str:
        """The c of the paper's layers, with the layers of a smaller encoder: "6 (3 of 6)"."""
        depth = self.request.scale.depth
        is_scaled = depth != self.paper_scale.depth
        return f"{layer.critical} ({layer.layers} of {depth})" if is_scaled else str(layer.critical)


def printed_in(request: Request) -> str:
    """The table that prints the scores, by the view's options."""
    return str(request.benchmark.view.options["printed_in"])


def _layer(request: Request, comparison: Comparison, row: Row, critical: int) -> Layer:
    """One row of the figure."""
    benchmark, scale, columns = request.benchmark, request.scale, request.columns
    options = benchmark.cell(row, columns[0], scale, 0).options
    costs = [comparison.cell(row, column).cost for column in columns]
    measured = [cost.round_bytes for cost in costs if cost is not None]
    derived = request.derive(row, columns[0], benchmark.scale("paper")) if request.derive else None
    return Layer(
        row,
        critical,
        int(options.get("critical_layer", scale.depth)),
        mean(measured) if measured else None,
        derived.up_bytes if derived else None,
    )


def join(request: Request) -> Layers:
    """Records and printed values by critical layer; ReportError where a record or the published values are damaged."""
    criticals: Mapping[str, int] = request.benchmark.view.options["critical_layers"]
    printed = replace(request, benchmark=replace(request.benchmark, place=printed_in(request)))
    # No average: the paper prints one over all of its tasks alone.
    averages = tuple(AverageResult(row) for row in request.rows)
    comparison = replace(compare(printed), heading=request.heading, place=request.benchmark.place, averages=averages)
    return Layers(
        request,
        comparison,
        tuple(_layer(request, comparison, row, criticals[row.id]) for row in request.rows if row.id in criticals),
        tuple(row for row in request.rows if row.id not in criticals),
    )
