"""What one client's training costs: as printed, by a formula, by shapes, timed side by side, measured on the wire."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import product

from benchmarks.costs import ClientCosts, Costing
from benchmarks.experiment import Row
from benchmarks.run_config import JSON
from fedsim.files import read_json
from reports import ReportError
from reports.evidence.published import Numbers, is_printed_as, read_published
from reports.evidence.records import Request
from reports.evidence.statistics import printed
from reports.evidence.traffic import ClientTraffic, client_traffic

# The columns at which costs are published.
PRINTED = SECONDS, WORK, MEGABYTES, SENT = (
    "computation_seconds",
    "computation_percent",
    "communication_mb",
    "communication_percent",
)
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Timed:
    """Rows that were trained side by side in one run of `make bench`. percent: row id -> of the baseline's seconds.

    part: of the bench, which measures them. noise: by how many points less work was timed above more, at most.
    """

    part: str
    percent: Mapping[str, float]
    noise: float
    machine: str
    finished: str


@dataclass(frozen=True)
class Resources:
    """The costs of the rows of a request, by the paper's own encoder, whatever the scale; records are the scale's.

    Everything that is derived is empty where nobody derives it. ReportError where a file is damaged.
    """

    request: Request

    @property
    def costing(self) -> Costing:
        """How the benchmark shows them; ReportError where it shows none."""
        costing = self.request.benchmark.costing
        if costing is None:
            raise ReportError(f"{self.request.benchmark.id}: expected a definition with `costing`, found none")
        return costing

    @cached_property
    def baseline(self) -> Row:
        return {row.id: row for row in self.request.benchmark.costed_rows}[self.costing.baseline]

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Those asked for; where all are, those of the paper's own scale, too, as no record stands behind its costs."""
        request = self.request
        if {row.id for row in request.rows} >= {row.id for row in request.benchmark.rows_at(request.scale)}:
            return request.benchmark.rows_at(request.paper_scale)
        return request.rows

    @cached_property
    def costs(self) -> dict[str, ClientCosts]:
        """Row id -> what its client's training costs, of the rows that train one; and the baseline's."""
        found = {row.id: self._derived(row) for row in (*self.rows, self.baseline)}
        return {name: costs for name, costs in found.items() if costs is not None}

    def _derived(self, row: Row) -> ClientCosts | None:
        benchmark, scale = self.request.benchmark, self.request.paper_scale
        if self.request.derive_client is None:
            return None
        cell = benchmark.costed(row, benchmark.columns_at(scale)[0], scale)
        return self.request.derive_client(cell) if cell is not None else None

    def percent(self, row: Row, amount: Callable[[ClientCosts], float]) -> float | None:
        """A row's amount in percent of the baseline's; None where it is not derived."""
        if row.id not in self.costs or self.baseline.id not in self.costs:
            return None
        return 100 * amount(self.costs[row.id]) / amount(self.costs[self.baseline.id])

    def saved_mb(self, row: Row) -> Decimal | None:
        """The file that goes up, in the paper's MB and its two decimals; None where nothing goes up, or not derived."""
        costs = self.costs.get(row.id)
        return printed(costs.saved_bytes / MEBIBYTE) if costs is not None and costs.saved_bytes else None

    def saved_percent(self, row: Row) -> Decimal | None:
        """The same in percent of the baseline's, both rounded before, as the paper's ratios are of printed sizes."""
        own, base = self.saved_mb(row), self.saved_mb(self.baseline)
        return printed(100 * own / base) if own is not None and base is not None else None

    def printed(self, row: Row) -> dict[str, Decimal]:
        """Column -> what the table prints of a row's costs."""
        places = (
            (column, (self.request.benchmark.place, row.id, column, "")) for column in (SECONDS, WORK, MEGABYTES, SENT)
        )
        return {column: self._numbers.values[place] for column, place in places if place in self._numbers.values}

    @cached_property
    def _numbers(self) -> Numbers:
        return Numbers.of(read_published(self.request.benchmark.published_csv))

    def agreements(self, row: Row) -> tuple[bool, ...]:
        """Whether the saved file's size, and its ratio, are as printed: of what is both derived and printed."""
        known = self.printed(row)
        pairs = ((self.saved_mb(row), known.get(MEGABYTES)), (self.saved_percent(row), known.get(SENT)))
        return tuple(
            is_printed_as(own, of_print) for own, of_print in pairs if own is not None and of_print is not None
        )

    @cached_property
    def measured(self) -> dict[str, ClientTraffic]:
        """Row id -> what one client sent and took in a round, by the records of the first task."""
        found = {
            row.id: client_traffic(self.request.records_of(row, self.request.columns[0])) for row in self.request.rows
        }
        return {name: traffic for name, traffic in found.items() if traffic is not None}

    @cached_property
    def timed(self) -> Timed | None:
        """The run that trained the rows side by side; None where there is none. ReportError where it is damaged."""
        path = self.costing.timed
        if path is None or not path.is_file():
            return None
        try:
            found = read_json(path)
            percent = {entry["row"]: float(entry["percent"]) for entry in found["rows"] if entry["row"]}
            own = found["environment"]
            machine = f"{own['device']}, {own['threads']} threads, {own['precision']}"
            return Timed(path.stem, percent, _noise(found["rows"]), machine, str(found["finished"])[:10])
        except (ValueError, KeyError, TypeError) as error:
            raise ReportError(
                f"{path}: expected a result of `make bench`, found a damaged one ({type(error).__name__}: {error}). "
                f"Restore the file, or measure again."
            ) from None


def _noise(lines: Sequence[Mapping[str, JSON]]) -> float:
    """By how many points a client that trains one layer was timed above another that does no less, at most."""
    trained = ((line, re.match(r"layer (\d+) ", line.get("trained", ""))) for line in lines)
    # Layers that run, and of these such that have a gradient: from the trained one upwards.
    jobs = [(line["layers"], line["layers"] - int(layer[1]), line["percent"]) for line, layer in trained if layer]
    pairs = ((own, other) for own, other in product(jobs, repeat=2) if own[0] <= other[0] and own[1] <= other[1])
    return max((own[2] - other[2] for own, other in pairs), default=0.0)
