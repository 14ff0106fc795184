"""What the rounds of a benchmark's cells send and what its clients compute, derived from shapes for those who ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.costs import ClientCosts, WirePlan
from benchmarks.errors import DependsOnTextsError, RoundRefusedError
from benchmarks.planning import wire_plan
from benchmarks.spec import Benchmark, Cell, Column, Row, Scale, canonical_json
from benchmarks.tasks import task

if TYPE_CHECKING:
    from reports.evidence.records import Derive


def derive_for(benchmark: Benchmark) -> Derive:
    """What the rounds of its cells send; asked once for a cell."""
    known: dict[tuple[str, int | None], WirePlan | None] = {}

    def derive(row: Row, column: Column, scale: Scale, examples: int | None = None) -> WirePlan | None:
        cell = benchmark.cell(row, column, scale, 0)
        if (cell.spec_id, examples) not in known:
            known[cell.spec_id, examples] = _plan(cell, examples)
        return known[cell.spec_id, examples]

    return derive


def _plan(cell: Cell, examples: int | None) -> WirePlan | None:
    """What rounds send with so many examples, shared out evenly as their sum alone is known; None where unknown."""
    shared = None if examples is None else [(examples + client) // cell.clients for client in range(cell.clients)]
    try:
        return wire_plan(cell, examples=shared)
    except (DependsOnTextsError, RoundRefusedError):
        return None


_KNOWN_COSTS: dict[str, ClientCosts | None] = {}  # the same for every corpus on which an objective is trained


def derive_client(cell: Cell) -> ClientCosts | None:
    """What one client's training costs; asked once for cells whose costs are the same."""
    found = task(cell.task)
    decisive = cell.backbone, cell.algorithm, cell.options, cell.clients, cell.codec, cell.head, vars(cell.training)
    key = canonical_json([*decisive, found.objective, found.classes, found.objective_options])
    if key not in _KNOWN_COSTS:
        from benchmarks.resources import client_costs

        _KNOWN_COSTS[key] = client_costs(cell)
    return _KNOWN_COSTS[key]
