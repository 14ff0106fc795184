"""What a run needed to reach a target score. Pure functions on records; scores and targets are fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.record import RunRecord
from reports.cost import ledger_bytes
from reports.errors import ReportError
from reports.statistics import mean

# A mean of equal scores may miss them by a last bit; no test set is so large that one example counts for less.
_ROUNDING = 1e-9


def round_scores(record: RunRecord, score: str) -> tuple[float | None, ...]:
    """A score ("test/accuracy") after every round, mean over clients; None where undefined or without its test set.

    ReportError where the record does not hold it.
    """
    evaluation, metric = score.split("/")
    if evaluation not in record.rounds[0].scores and evaluation != "test":
        return (None,) * len(record.rounds)
    try:
        return tuple(entry.scores[evaluation][metric] for entry in record.rounds)
    except KeyError:
        raise ReportError(
            f"record {record.file_name}: expected the score {score!r} of every round, found none. "
            "Move the record away to compute the cell again."
        ) from None


def round_reaching(record: RunRecord, score: str, target: float) -> int | None:
    """The first round whose score is at the target or above; None where none is: such a run is censored."""
    scores = enumerate(round_scores(record, score), start=1)
    return next((number for number, value in scores if value is not None and value >= target - _ROUNDING), None)


def bytes_until(record: RunRecord, rounds: int, direction: str = "up") -> int:
    """Payload bytes of the first rounds in one direction ("up", "down"), all clients together, without the set-up.

    ReportError where the record's ledger and its rounds disagree.
    """
    ledger_bytes(record, direction)
    return sum(getattr(entry, f"{direction}_bytes") for entry in record.rounds[:rounds])


def values_until(record: RunRecord, rounds: int, direction: str = "up") -> int:
    """Numbers sent in the first rounds, whatever a codec made of them; counted as `bytes_until` counts."""
    return sum(row.values for row in record.ledger if 1 <= row.round <= rounds and row.direction == direction)


def last_mean(records: Sequence[RunRecord], score: str) -> float | None:
    """The scale-free target: a score after the last round, mean over seeds; None where no seed has one."""
    values = [value for record in records if (value := round_scores(record, score)[-1]) is not None]
    return mean(values) if values else None


@dataclass(frozen=True)
class Attempt:
    """One run at a target: what it sent until there, or in all of its rounds where it is not reached."""

    seed: int
    is_reached: bool
    rounds: int
    values: int
    bytes: int


def attempt(record: RunRecord, score: str, target: float, direction: str = "up") -> Attempt:
    """The run's way to the target, in one direction and all clients together."""
    reached = round_reaching(record, score, target)
    rounds = len(record.rounds) if reached is None else reached
    return Attempt(
        record.cell.seed,
        reached is not None,
        rounds,
        values_until(record, rounds, direction),
        bytes_until(record, rounds, direction),
    )
