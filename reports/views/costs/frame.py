"""Costs in long form: one line for each method, way to count and quantity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from benchmarks.spec import JSON, Row
from reports.layout import NOT_RUN
from reports.views.costs.closed import Closed
from reports.views.costs.join import Costs
from reports.views.costs.tables import DEPENDS
from reports.views.costs.traffic import KINDS, Traffic

FIELDS = [
    *["benchmark", "place", "scale", "scale_label", "row", "method", "printed", "column", "task", "encoder", "counted"],
    *["quantity", "over", "value", "published", "n_seeds"],
]
Quantity = dict[str, JSON]


def _gains(gains: Mapping[str, float]) -> Iterator[Quantity]:
    """Gains over baselines."""
    for baseline, gain in gains.items():
        yield {"quantity": "gain", "over": baseline, "value": gain}


def _closed(closed: Closed) -> Iterator[Quantity]:
    """One equation, counted as the paper does and in consistent bytes."""
    paper, consistent = {"counted": "equation, as printed"}, {"counted": "equation, consistent bytes"}
    yield paper | {"quantity": "cost_gb", "value": closed.printed_gb}
    for entry in _gains(closed.printed_gains):
        published = closed.published.get(entry["over"])
        yield paper | entry | {"published": None if published is None else float(published)}
    if closed.consistent_bytes is not None:
        yield consistent | {"quantity": "bytes", "value": closed.consistent_bytes}
        yield from (consistent | entry for entry in _gains(closed.consistent_gains))


def _traffic(traffic: Traffic | None, unknown: str) -> Iterator[Quantity]:
    """What is known of one method's bytes."""
    if traffic is None:
        yield {"quantity": unknown}
        return
    yield {"quantity": "bytes", "value": traffic.total_bytes}
    yield {"quantity": "up_bytes", "value": traffic.up_bytes}
    yield {"quantity": "down_bytes", "value": traffic.down_bytes}
    for kind, name in KINDS.items():
        yield {"quantity": f"{name}_bytes", "value": traffic.kinds.get(kind, 0)}
    yield {"quantity": "setup_bytes", "value": traffic.setup_bytes}
    yield from _gains(traffic.gains)


def _lines(found: Costs, row: Row) -> Iterator[Quantity]:
    """Everything of one method."""
    papers, ours = {"encoder": found.paper_scale.backbone}, {"encoder": found.request.scale.backbone}
    for closed in found.closed:
        if closed.row == row:
            yield from (papers | entry for entry in _closed(closed))
    if found.derived:
        for entry in _traffic(found.derived.get(row.id), DEPENDS):
            yield papers | {"counted": "wire, derived"} | entry
    measured = found.measured.get(row.id)
    for entry in _traffic(measured, NOT_RUN):
        yield ours | {"counted": "wire, measured", "n_seeds": measured.seeds if measured else None} | entry


def frame(found: Costs) -> pd.DataFrame:
    """All costs as a data frame of FIELDS; bytes of all rounds, clients and, where not said, both directions."""
    request = found.request
    lines = [
        {
            "benchmark": request.benchmark.id,
            "place": request.benchmark.place,
            "scale": request.scale.id,
            "scale_label": request.scale.label,
            "row": row.id,
            "method": row.name,
            "printed": row.printed,
            "column": request.columns[0].task,
            "task": request.columns[0].name,
        }
        | entry
        for row in request.rows
        for entry in _lines(found, row)
    ]
    table = pd.DataFrame(lines, columns=FIELDS)
    return table.astype({"n_seeds": "Int64", "value": "Float64", "published": "Float64"})
