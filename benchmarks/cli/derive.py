"""What the rounds of a benchmark's cells send and what its clients compute, derived from shapes for those who ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.costs import ClientCosts, WirePlan
from benchmarks.derived import answered, client_from, key_of, plan_from
from benchmarks.errors import DependsOnTextsError, RoundRefusedError
from benchmarks.spec import Benchmark, Cell, Column, Row, Scale

if TYPE_CHECKING:
    from reports.evidence.records import Derive


def derive_for(benchmark: Benchmark) -> Derive:
    """What the rounds of its cells send; asked once for a cell."""
    known: dict[tuple[str, int | None], WirePlan | None] = {}

    def derive(row: Row, column: Column, scale: Scale, examples: int | None = None) -> WirePlan | None:
        cell = benchmark.cell(row, column, scale, 0)
        if (cell.spec_id, examples) not in known:
            key = key_of("plan", cell, examples)
            known[cell.spec_id, examples] = answered(key, plan_from, lambda: plan_of(cell, examples))
        return known[cell.spec_id, examples]

    return derive


def plan_of(cell: Cell, examples: int | None) -> WirePlan | None:
    """What rounds send with so many examples, shared out evenly as their sum alone is known; None where unknown."""
    from benchmarks.planning import wire_plan

    shared = None if examples is None else [(examples + client) // cell.clients for client in range(cell.clients)]
    try:
        return wire_plan(cell, examples=shared)
    except (DependsOnTextsError, RoundRefusedError):
        return None


_KNOWN_COSTS: dict[str, ClientCosts | None] = {}  # the same for every corpus on which an objective is trained


def derive_client(cell: Cell) -> ClientCosts | None:
    """What one client's training costs; asked once for cells whose costs are the same."""
    key = key_of("client", cell)
    if key not in _KNOWN_COSTS:
        _KNOWN_COSTS[key] = answered(key, client_from, lambda: costs_of(cell))
    return _KNOWN_COSTS[key]


def costs_of(cell: Cell) -> ClientCosts | None:
    """What one client's training costs, derived."""
    from benchmarks.resources import client_costs

    return client_costs(cell)
