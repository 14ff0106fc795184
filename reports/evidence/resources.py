"""What one client's training costs: as printed, by a formula, by shapes, timed, and measured on the wire."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from benchmarks.costs import ClientCosts, Costing
from benchmarks.experiment import Row
from benchmarks.run_config import JSON
from fedsim.files import read_json
from reports import ReportError
from reports.evidence.published import Numbers, read_published
from reports.evidence.records import Request
from reports.evidence.statistics import printed
from reports.evidence.traffic import client_traffic

SECONDS, WORK, MEGABYTES, SENT = PRINTED = (  # the columns at which costs are published
    "computation_seconds",
    "computation_percent",
    "communication_mb",
    "communication_percent",
)
MEBIBYTE = 2**20
Pair = tuple[float | None, float | None]  # value, published


@dataclass(frozen=True)
class Timed:
    """Rows trained one after the other in one timed run. percent: row id -> of the baseline's seconds.

    noise: by how many points less work was timed above more, at most.
    """

    percent: Mapping[str, float]
    noise: float
    machine: str
    finished: str


@dataclass(frozen=True)
class Resources:
    """The costs of a request's rows with the paper's own encoder; records are the scale's.

    ReportError where a file is damaged.
    """

    request: Request

    @cached_property
    def costing(self) -> Costing:
        costing = self.request.benchmark.costing
        if costing is None:
            raise ReportError(f"{self.request.benchmark.id}: expected a definition with `costing`, found none")
        return costing

    @cached_property
    def baseline(self) -> Row:
        table = self.request.benchmark
        return (table.stage.benchmark if table.stage else table).row(self.costing.baseline)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The request's rows with a cost; where all are asked for, the rows of the paper's own scale too."""
        request = self.request
        if {row.id for row in request.rows} >= {row.id for row in request.benchmark.rows_at(request.scale)}:
            return request.benchmark.rows_at(request.paper_scale)
        return request.rows

    @cached_property
    def costs(self) -> dict[str, ClientCosts]:
        """Row id -> what its client's training costs by shapes; empty where nothing derives it."""
        request, found = self.request, dict[str, ClientCosts]()
        table, scale = request.benchmark, request.paper_scale
        column = table.columns_at(scale)[0]
        for row in {row.id: row for row in (*self.rows, self.baseline)}.values():
            cell = table.stage.cell(row, column, scale) if table.stage else table.cell(row, column, scale, 0)
            costs = request.derive_client(cell) if request.derive_client and cell is not None else None
            found |= {} if costs is None else {row.id: costs}
        return found

    @cached_property
    def published(self) -> Numbers:
        return Numbers.of(read_published(self.request.benchmark.published_csv))

    @cached_property
    def timed(self) -> Timed | None:
        """The run that timed the rows; None where there is none. ReportError where it is damaged."""
        path = self.costing.timed
        if path is None or not path.is_file():
            return None
        try:
            content = read_json(path)
            percent = {entry["row"]: float(entry["percent"]) for entry in content["rows"] if entry["row"]}
            host = content["environment"]
            machine = f"{host['device']}, {host['threads']} threads, {host['precision']}"
            return Timed(percent, _noise(content["rows"]), machine, str(content["finished"])[:10])
        except (ValueError, KeyError, TypeError) as error:
            raise ReportError(
                f"{path}: expected a file of timings, found a damaged one ({type(error).__name__}: {error}). "
                f"Restore the file."
            ) from None

    def percent(self, row: Row, amount: Callable[[ClientCosts], float]) -> float | None:
        """A row's amount in percent of the baseline's; None where it is not derived."""
        if row.id not in self.costs or self.baseline.id not in self.costs:
            return None
        return 100 * amount(self.costs[row.id]) / amount(self.costs[self.baseline.id])

    def saved_mb(self, row: Row) -> float | None:
        """The file that goes up, in the paper's MB and its two decimals; None where nothing goes up, or not derived."""
        costs = self.costs.get(row.id)
        return float(printed(costs.saved_bytes / MEBIBYTE)) if costs is not None and costs.saved_bytes else None

    @cached_property
    def lines(self) -> dict[str, dict[tuple[str, str], Pair]]:
        """Row id -> (counted, quantity) -> value and published; percent of the baseline's."""
        return {row.id: self._of(row) for row in self.rows}

    def _of(self, row: Row) -> dict[tuple[str, str], Pair]:
        places = {name: (self.request.benchmark.place, row.id, name, "") for name in PRINTED}
        known = {name: self.published.values.get(place) for name, place in places.items()}
        paper = {name: None if value is None else float(value) for name, value in known.items()}
        ways = {"flops": _flops} | {f"formula, {name}": form.work for name, form in self.costing.forms.items()}
        saved, base = self.saved_mb(row), self.saved_mb(self.baseline)
        # Both rounded before, as the paper's ratios are of printed sizes.
        share = float(printed(100 * printed(saved) / printed(base))) if saved is not None and base is not None else None
        found: dict[tuple[str, str], Pair] = {("print", SECONDS): (None, paper[SECONDS])}
        found |= {(name, WORK): (self.percent(row, work), paper[WORK]) for name, work in ways.items()}
        if self.timed is not None:
            found["timed", WORK] = self.timed.percent.get(row.id), paper[WORK]
        found |= {("saved file", MEGABYTES): (saved, paper[MEGABYTES]), ("saved file", SENT): (share, paper[SENT])}
        costs = self.costs.get(row.id)
        return found | {("shapes", name): (value, None) for name, value in (vars(costs).items() if costs else ())}

    @cached_property
    def measured(self) -> dict[str, dict[tuple[str, str], Pair]]:
        """Row id -> what one client sent and received in a round, from the records of the first task."""
        request, found = self.request, dict[str, dict[tuple[str, str], Pair]]()
        for row in request.rows:
            traffic = client_traffic(request.records_of(row, request.columns[0]))
            if traffic is not None:
                found[row.id] = {("wire, measured", name): (float(value), None) for name, value in traffic.items()}
        return found

    @property
    def costed(self) -> list[Row]:
        """The rows of which a cost is printed or derived."""
        return [
            row
            for row in self.rows
            if row.id in self.costs or any(known is not None for _, known in self.lines[row.id].values())
        ]


def _flops(costs: ClientCosts) -> float:
    return costs.flops


def _noise(lines: Sequence[Mapping[str, JSON]]) -> float:
    """By how many points a client that trains one layer was timed above another that does no less, at most."""
    trained = ((line, re.match(r"layer (\d+) ", line.get("trained", ""))) for line in lines)
    # Layers that run, and how many of them have a gradient: from the trained one upwards.
    jobs = [(line["layers"], line["layers"] - int(layer[1]), line["percent"]) for line, layer in trained if layer]
    pairs = ((one, other) for one, other in product(jobs, repeat=2) if one[0] <= other[0] and one[1] <= other[1])
    return max((one[2] - other[2] for one, other in pairs), default=0.0)
