"""What a whole run carries over the wire: derived for the paper's own encoder, and measured by our records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.record import RunRecord
from benchmarks.spec import Row
from reports.cost import kind_bytes, measure
from reports.page import Request
from reports.statistics import mean
from reports.views.costs.closed import baselines_of, derived_plan

KINDS = {"features": "features", "masks": "masks", "labels": "labels", "parameters": "weights"}  # and their names


@dataclass(frozen=True)
class Traffic:
    """Bytes of all rounds and clients; setup_bytes are in none of the others.

    kinds: kind of payload -> its bytes, of both directions. gains: baseline's row id -> its bytes over these. seeds:
    over which bytes are means; 0 where they are derived.
    """

    seeds: int
    up_bytes: float
    down_bytes: float
    setup_bytes: float
    kinds: dict[str, float]
    gains: dict[str, float]

    @property
    def total_bytes(self) -> float:
        """Both directions."""
        return self.up_bytes + self.down_bytes


def derived_run(request: Request, row: Row) -> Traffic | None:
    """All rounds of the paper's own encoder; None where they are not derived."""
    plan = derived_plan(request, row)
    if plan is None:
        return None
    benchmark = request.benchmark
    rounds = benchmark.cell(row, request.columns[0], benchmark.scale("paper"), 0).training.rounds
    kinds: Counter[str] = Counter()
    for (_, kind), size in plan.kinds.items():
        kinds[kind] += rounds * size
    return Traffic(0, rounds * plan.up_bytes, rounds * plan.down_bytes, plan.setup_bytes, dict(kinds), {})


def _measured(records: Sequence[RunRecord]) -> Traffic | None:
    """The mean over a cell's records; None where there are none. ReportError where one is damaged."""
    cost = measure(records)
    if cost is None:
        return None
    found = [kind_bytes(record) for record in records]
    kinds = {kind: mean([sizes.get(kind, 0) for sizes in found]) for kind in KINDS}
    return Traffic(len(records), cost.up_bytes, cost.down_bytes, cost.setup_bytes, kinds, {})


def _with_gains(request: Request, found: dict[str, Traffic | None]) -> dict[str, Traffic]:
    """Those that are known, each with its gains over the baselines that are known."""
    bases = {base.id: traffic for base in baselines_of(request) if (traffic := found[base.id]) is not None}
    return {
        name: replace(
            traffic,
            gains={base: other.total_bytes / traffic.total_bytes for base, other in bases.items()}
            if traffic.total_bytes
            else {},
        )
        for name, traffic in found.items()
        if traffic is not None
    }


def derived_traffic(request: Request) -> dict[str, Traffic]:
    """Row id -> what the paper's own encoder sends, of every row for which shapes alone give it."""
    return _with_gains(request, {row.id: derived_run(request, row) for row in request.benchmark.rows})


def measured_traffic(request: Request) -> dict[str, Traffic]:
    """Row id -> what our records say, of every row with a record of the benchmark's task."""
    every = replace(request, rows=request.benchmark.rows)  # gains need baselines even where those are not shown
    return _with_gains(every, {row.id: _measured(every.records_of(row, every.columns[0])) for row in every.rows})
