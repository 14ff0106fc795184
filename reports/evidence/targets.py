"""Bytes until a target: what runs sent until their score reached it, and the gain over another method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Generic, TypeVar

from benchmarks.experiment import Column, Row
from benchmarks.results import RunResult
from reports.evidence.published import MEGABYTE, PrintedCost, as_decimal
from reports.evidence.scores import round_reaching
from reports.evidence.traffic import Cost, bytes_until, values_until

Number = TypeVar("Number", int, Fraction)


@dataclass(frozen=True)
class Attempt(Generic[Number]):
    """What one run, or the mean of several, sent until a target, or in all rounds where it does not reach the target.

    values: numbers before the codec, in any unit that both sides of a ratio share, such as bytes of the same numbers in
    fp32. bytes: after the codec.
    """

    rounds: Number
    values: Number
    bytes: Number
    is_reached: bool = True

    @property
    def when(self) -> str:
        """In words; a run that does not reach the target is censored, not dropped."""
        return f"round {self.rounds}" if self.is_reached else f"not within {self.rounds} rounds"


def attempt(record: RunResult, score: str, target: float, directions: Sequence[str] = ("up",)) -> Attempt[int]:
    """What a run needed to reach the target (as recorded), in these directions and all clients together."""
    reached = round_reaching(record, score, target)
    rounds = len(record.rounds) if reached is None else reached
    sent = values_until(record, rounds, directions), bytes_until(record, rounds, directions)
    return Attempt(rounds, *sent, reached is not None)


def mean_attempt(attempts: Sequence[Attempt[int]]) -> Attempt[Fraction] | None:
    """The attempts' exact mean, which is reached where every one is; None without one."""
    if not attempts:
        return None
    sums = (sum(getattr(one, name) for one in attempts) for name in ("rounds", "values", "bytes"))
    rounds, values, size = (Fraction(total, len(attempts)) for total in sums)
    return Attempt(rounds, values, size, all(one.is_reached for one in attempts))


@dataclass(frozen=True)
class ByteGain:
    """How many times fewer bytes, by fewer values a round (layers), fewer rounds and fewer bytes a value."""

    layers: Fraction
    rounds: Fraction
    precision: Fraction

    @property
    def total(self) -> Fraction:
        return self.layers * self.rounds * self.precision


def gain_over(baseline: Attempt[Fraction], method: Attempt[Fraction]) -> ByteGain | None:
    """The method's gain, whose total is exactly the ratio of bytes; None where a side sends nothing."""
    if not (baseline.bytes and method.bytes):
        return None
    layers = (baseline.values / baseline.rounds) / (method.values / method.rounds)
    precision = (baseline.bytes / baseline.values) / (method.bytes / method.values)
    return ByteGain(layers, baseline.rounds / method.rounds, precision)


@dataclass(frozen=True)
class TargetResult:
    """One method on one task and target.

    target: the mean over seeds, in the metric's unit; None where the baseline that sets it was not run. cost: None
    where the method was not run. attempts: one a seed that has a target. gain: over the baseline; None where one of the
    two was not run, or the method is censored. relation: of the gain, "≥" where the baseline is censored.
    """

    row: Row
    column: Column
    kind: str
    target: float | None
    cost: Cost | None
    attempts: Sequence[Attempt[int]]
    gain: ByteGain | None
    relation: str

    @property
    def sent(self) -> Attempt[Fraction] | None:
        """Means over seeds; a seed that does not reach the target counts with all of its rounds."""
        return mean_attempt(self.attempts)

    @property
    def is_complete(self) -> bool:
        """Whether every seed reaches the target."""
        return self.sent is not None and self.sent.is_reached

    @property
    def megabytes(self) -> float:
        return 0.0 if self.sent is None else float(self.sent.bytes) / MEGABYTE

    def quantities(self) -> Iterator[tuple[str, str, float]]:
        """Relation ("=", ">" censored, "≥" its bound), name and value; the row was run."""
        if self.cost is not None:
            yield "=", "round_bytes", self.cost.round_bytes
            yield "=", "setup_bytes", self.cost.setup_bytes
        if self.sent is not None:
            relation = "=" if self.is_complete else ">"
            yield relation, "rounds", float(self.sent.rounds)
            yield relation, "bytes", float(self.sent.bytes)
        for name, value in factors(self.gain):
            yield self.relation if name in ("gain", "gain_rounds") else "=", name, value


@dataclass(frozen=True)
class DerivedTarget:
    """One method until a target: a round's bytes from shapes, rounds from the paper, and what follows from both.

    sent: all rounds. size_gb: of a round, rounded as in the paper; cost_gb: that times the rounds, as the paper
    computes; ratio: of such costs; gain: of exact bytes. published: None for a row that is not printed, whose rounds
    are the baseline's.
    """

    row: Row
    sent: Attempt[Fraction]
    size_gb: Decimal
    ratio: Decimal
    gain: ByteGain
    published: PrintedCost | None

    @property
    def cost_gb(self) -> Decimal:
        return self.size_gb * as_decimal(self.sent.rounds)

    def compared(self) -> Iterator[tuple[str, Decimal, Decimal | None]]:
        """Name, value and published value of what the paper prints."""
        known = self.published
        size, cost, gain = (known.size_gb, known.cost_gb, known.gain) if known else (None, None, None)
        yield "derived_size_gb", self.size_gb, size
        yield "derived_cost_gb", self.cost_gb, cost
        yield "gain_of_rounded_sizes", self.ratio, gain

    def quantities(self) -> Iterator[tuple[str, float | Decimal, Decimal | None]]:
        """The same, and a round's exact bytes, the rounds and the exact gain."""
        yield "derived_round_bytes", self.sent.bytes // self.sent.rounds, None
        yield "implied_rounds", float(self.sent.rounds), None
        yield from self.compared()
        yield from ((f"exact_{name}", value, None) for name, value in factors(self.gain))


def factors(gain: ByteGain | None) -> Iterator[tuple[str, float]]:
    """The whole gain and its factors, by their names in a frame; nothing without one."""
    if gain is not None:
        values = {"gain": gain.total} | {f"gain_{name}": value for name, value in vars(gain).items()}
        yield from ((name, float(value)) for name, value in values.items())
