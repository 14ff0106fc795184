"""Bytes until a target: what a run sent until its score reached it, and the gain over another method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.results import RunResult
from reports.evidence.scores import round_reaching
from reports.evidence.traffic import bytes_until, values_until


@dataclass(frozen=True)
class Attempt:
    """One run at a target: what it sent until then, or in all of its rounds where it does not reach the target."""

    is_reached: bool
    rounds: int
    values: int
    bytes: int

    @property
    def when(self) -> str:
        """In words; a run that does not reach the target is censored, not dropped."""
        return f"round {self.rounds}" if self.is_reached else f"not within {self.rounds} rounds"


def attempt(record: RunResult, score: str, target: float, directions: Sequence[str] = ("up",)) -> Attempt:
    """What a run needed to reach the target (as recorded), in these directions and all clients together."""
    reached = round_reaching(record, score, target)
    rounds = len(record.rounds) if reached is None else reached
    sent = values_until(record, rounds, directions), bytes_until(record, rounds, directions)
    return Attempt(reached is not None, rounds, *sent)


@dataclass(frozen=True)
class Sent:
    """What was sent until a target: rounds, numbers before and bytes after their codec.

    values: in any unit that both sides of a ratio share, such as bytes of the same numbers in fp32.
    """

    rounds: Fraction
    values: Fraction
    bytes: Fraction


def mean_sent(attempts: Sequence[Attempt]) -> Sent | None:
    """What the attempts sent, on average and exactly; None without one."""
    sums = (sum(getattr(found, name) for found in attempts) for name in ("rounds", "values", "bytes"))
    return Sent(*(Fraction(total, len(attempts)) for total in sums)) if attempts else None


@dataclass(frozen=True)
class Gain:
    """How many times fewer bytes, by fewer values a round (layers), fewer rounds and fewer bytes a value."""

    layers: Fraction
    rounds: Fraction
    precision: Fraction

    @property
    def total(self) -> Fraction:
        return self.layers * self.rounds * self.precision


def gain_over(baseline: Sent, method: Sent) -> Gain | None:
    """The method's gain, whose total is exactly the ratio of bytes; None where a side sends nothing."""
    if not (baseline.bytes and method.bytes):
        return None
    layers = (baseline.values / baseline.rounds) / (method.values / method.rounds)
    precision = (baseline.bytes / baseline.values) / (method.bytes / method.values)
    return Gain(layers, baseline.rounds / method.rounds, precision)
