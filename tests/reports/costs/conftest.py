"""Records of Table 4's cells with chosen bytes, and what shapes give for the paper's own encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from benchmarks.fedfreezebert.table4 import BENCHMARK as TABLE4
from benchmarks.record import LedgerEntry, RoundRecord, RunRecord
from benchmarks.shapes import derive_for
from benchmarks.spec import Benchmark, Row
from reports.evidence.records import Derive, Request, request_for

RecordOf = Callable[..., RunRecord]
(TASK,) = TABLE4.columns


@pytest.fixture(scope="session")
def sent_of(record_of: RecordOf) -> RecordOf:
    def build(row: str, *payloads: tuple[str, str, int], seed: int = 0, scale: str = "lite") -> RunRecord:
        """A record of Table 4's cell: each of two rounds carries payloads of (direction, kind, bytes)."""
        base = record_of("fedavg", "mrpc", {"test/accuracy": 0.5})
        rows = {entry.id: entry for entry in TABLE4.rows}
        cell = TABLE4.cell(rows[row], TASK, TABLE4.scale(scale), seed)
        scores = {"test": {"f1_pn": 0.5, "accuracy": 0.5}}
        sums = [sum(size for way, _, size in payloads if way == direction) for direction in ("up", "down")]
        rounds = tuple(RoundRecord(number, (0,), 0.5, (0.5,), scores, (), *sums) for number in (1, 2))
        ledger = tuple(
            LedgerEntry(number, 0, way, kind, size // 4, size)
            for number in (1, 2)
            for way, kind, size in payloads
            if size
        )
        setup = LedgerEntry(0, 0, "down", "parameters", 3000, 12_000)
        digests = {name: entry["digest"] for name, entry in base.inputs.items()}
        return replace(
            base, cell=cell, cell_id=cell.cell_id(digests), rounds=rounds, ledger=(setup, *ledger), setup_bytes=12_000
        )

    return build


@pytest.fixture(scope="session")
def derive() -> Derive:
    """As the command line has it."""
    return derive_for(TABLE4)


@pytest.fixture(scope="session")
def asked(derive: Derive) -> Callable[..., Request]:
    def build(
        records: Sequence[RunRecord] = (),
        scale: str = "lite",
        rows: Sequence[Row] = (),
        benchmark: Benchmark = TABLE4,
        derived: bool = True,
    ) -> Request:
        return request_for(benchmark, benchmark.scale(scale), records, rows=rows, derive=derive if derived else None)

    return build


@pytest.fixture(scope="session")
def bytes_of(sent_of: RecordOf) -> Callable[..., RunRecord]:
    def build(row: str, kinds: Mapping[str, int], **options: object) -> RunRecord:
        """All of a record's kinds go up; the weights also come down."""
        up = [("up", kind, size) for kind, size in kinds.items()]
        return sent_of(row, *up, ("down", "parameters", kinds["parameters"]), **options)

    return build
