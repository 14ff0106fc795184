"""Bytes until a target: the bytes sent until the score reached it, and the gain over another method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from benchmarks.results import RunResult
from reports.evidence.scores import round_reaching
from reports.evidence.traffic import sent_by_round, values_until

Number = TypeVar("Number", int, Fraction)


@dataclass(frozen=True)
class Attempt(Generic[Number]):
    """The traffic of one run, or the mean of several, until a target, or in all rounds if it is not reached.

    values: numbers before the codec, in any unit that both sides of a ratio share, such as bytes of the same numbers in
    fp32. bytes: after the codec.
    """

    rounds: Number
    values: Number
    bytes: Number
    is_reached: bool = True

    @property
    def when(self) -> str:
        """The round as text; a run that does not reach the target is censored, not dropped."""
        return f"round {self.rounds}" if self.is_reached else f"not within {self.rounds} rounds"


def attempt(record: RunResult, score: str, target: float, directions: Sequence[str] = ("up",)) -> Attempt[int]:
    """A run's traffic until the target (as recorded), in these directions, for all clients together."""
    reached = round_reaching(record, score, target)
    rounds = len(record.rounds) if reached is None else reached
    sent = values_until(record, rounds, directions), sent_by_round(record, directions)[rounds]
    return Attempt(rounds, *sent, reached is not None)


def mean_attempt(attempts: Sequence[Attempt[int]]) -> Attempt[Fraction] | None:
    """The exact mean of the attempts, reached if all are; None without attempts."""
    if not attempts:
        return None
    sums = (sum(getattr(one, name) for one in attempts) for name in ("rounds", "values", "bytes"))
    rounds, values, size = (Fraction(total, len(attempts)) for total in sums)
    return Attempt(rounds, values, size, all(one.is_reached for one in attempts))


@dataclass(frozen=True)
class ByteGain:
    """The factor of saved bytes: fewer values per round (layers), fewer rounds, fewer bytes per value."""

    layers: Fraction
    rounds: Fraction
    precision: Fraction

    @property
    def total(self) -> Fraction:
        return self.layers * self.rounds * self.precision


def gain_over(baseline: Attempt[Fraction], method: Attempt[Fraction]) -> ByteGain | None:
    """The method's gain; its total is exactly the ratio of bytes. None if a side sends nothing."""
    if not (baseline.bytes and method.bytes):
        return None
    layers = (baseline.values / baseline.rounds) / (method.values / method.rounds)
    precision = (baseline.bytes / baseline.values) / (method.bytes / method.values)
    return ByteGain(layers, baseline.rounds / method.rounds, precision)


def factors(gain: ByteGain | None) -> Iterator[tuple[str, float]]:
    """The total gain and its factors, by their names in a frame; {} without a gain."""
    if gain is not None:
        values = {"gain": gain.total} | {f"gain_{name}": value for name, value in vars(gain).items()}
        yield from ((name, float(value)) for name, value in values.items())
