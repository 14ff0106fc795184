"""Records of Table VI's and Figure 6's cells with chosen accuracies, and pages made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from benchmarks.fedsplitbert.figure6 import BENCHMARK as FIGURE6
from benchmarks.fedsplitbert.table6 import BENCHMARK as TABLE6
from benchmarks.record import LedgerEntry, RoundRecord, RunRecord
from benchmarks.spec import Benchmark, Row
from reports.evidence.records import Derive, request_for
from reports.pages.page import Page
from reports.views import page

RunOf = Callable[..., RunRecord]
Shown = Callable[..., Page]
ROWS = {row.id: row for row in FIGURE6.rows}
COLUMNS = {column.task: column for column in FIGURE6.columns}
VALUES = {"fedsplitbert": 5_000_000, "fedsplitbert-qat": 5_000_000, "local-majority": 0}  # a round up; others 10^7


@pytest.fixture(scope="session")
def run_of(record_of: RunOf) -> RunOf:
    def build(row: str, task: str, *accuracy: float, seed: int = 0, scale: str = "lite") -> RunRecord:
        """A record of the view's cell: accuracy after each round, and bytes of its values in its codec."""
        base = record_of("fedavg", "mrpc", {"test/accuracy": 0.5})
        cell = FIGURE6.cell(ROWS[row], COLUMNS[task], FIGURE6.scale(scale), seed)
        values = VALUES.get(row, 10_000_000)
        size = values * (2 if cell.codec == "fp16" else 4)
        rounds = tuple(
            RoundRecord(number, (0,), 0.5, (0.5,), {"test": {"accuracy": score}}, (), size, 0)
            for number, score in enumerate(accuracy, start=1)
        )
        ledger = tuple(LedgerEntry(number, 0, "up", "parameters", values, size) for number in range(1, len(rounds) + 1))
        digests = {name: entry["digest"] for name, entry in base.inputs.items()}
        return replace(base, cell=cell, cell_id=cell.cell_id(digests), rounds=rounds, ledger=ledger)

    return build


@pytest.fixture(scope="session")
def shown() -> Shown:
    """The page of records, of Table VI at the lite scale unless another one is asked for."""

    def build(
        records: Sequence[RunRecord],
        benchmark: Benchmark = TABLE6,
        scale: str = "lite",
        rows: Sequence[Row] = (),
        derive: Derive | None = None,
    ) -> Page:
        return page(request_for(benchmark, benchmark.scale(scale), records, rows=rows, derive=derive))

    return build
