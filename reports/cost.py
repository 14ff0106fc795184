"""What a cell cost: bytes as the ledger counted them, test examples and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.record import RunRecord
from reports.errors import ReportError
from reports.statistics import mean


@dataclass(frozen=True)
class Cost:
    """Means over the seeds of one cell; payload bytes are summed over clients.

    round_bytes, run_bytes: of one round and of the whole run, in the directions of the paper's convention.
    up_bytes, down_bytes: of the whole run.
    setup_bytes: sent once, before the first round, and in none of the others.
    test_examples: of all clients together. train_seconds: None where no record holds them.
    """

    rounds: float
    round_bytes: float
    run_bytes: float
    up_bytes: float
    down_bytes: float
    setup_bytes: float
    test_examples: float
    train_seconds: float | None = None


def ledger_bytes(record: RunRecord, direction: str) -> int:
    """Payload bytes of all rounds in one direction ("up", "down"), summed over clients.

    ReportError where the ledger and the rounds' own sums differ: one of the two was changed.
    """
    counted = sum(row.bytes for row in record.ledger if row.round >= 1 and row.direction == direction)
    stated = sum(getattr(entry, f"{direction}_bytes") for entry in record.rounds)
    if counted != stated:
        raise ReportError(
            f"record {record.file_name}: expected one sum of bytes {direction}, found {counted} in its "
            f"ledger and {stated} in its rounds. Move the record away to compute the cell again."
        )
    return counted


def kind_bytes(record: RunRecord) -> dict[str, int]:
    """Payload bytes of all rounds by kind, summed over clients and both directions."""
    sizes: dict[str, int] = {}
    for number, _, _, kind, _, size, _ in record.ledger:
        if number >= 1:
            sizes[kind] = sizes.get(kind, 0) + size
    return sizes


def measure(records: Sequence[RunRecord], directions: Sequence[str] = ("up",)) -> Cost | None:
    """The mean cost of one cell's records; None where there are none. directions: the paper's convention."""
    if not records:
        return None
    run_bytes = [sum(ledger_bytes(record, way) for way in directions) for record in records]
    seconds = [record.timing["train_seconds"] for record in records if "train_seconds" in record.timing]
    return Cost(
        rounds=mean([len(record.rounds) for record in records]),
        round_bytes=mean([size / len(record.rounds) for size, record in zip(run_bytes, records, strict=True)]),
        run_bytes=mean(run_bytes),
        up_bytes=mean([ledger_bytes(record, "up") for record in records]),
        down_bytes=mean([ledger_bytes(record, "down") for record in records]),
        setup_bytes=mean([record.setup_bytes for record in records]),
        test_examples=mean([record.test_examples for record in records]),
        train_seconds=mean(seconds) if seconds else None,
    )
