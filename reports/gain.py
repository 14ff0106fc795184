"""A gain in bytes as the product of what it comes from, in exact arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Sent:
    """What one direction carried until a target: rounds, numbers before and bytes after their codec.

    values: in any unit that both sides of a ratio share, such as bytes of the same numbers in fp32.
    """

    rounds: Fraction
    values: Fraction
    bytes: Fraction


@dataclass(frozen=True)
class Gain:
    """How many times fewer bytes, by fewer values a round (layers), fewer rounds and fewer bytes a value."""

    layers: Fraction
    rounds: Fraction
    precision: Fraction

    @property
    def total(self) -> Fraction:
        """The baseline's bytes over the method's."""
        return self.layers * self.rounds * self.precision


def gain_over(baseline: Sent, method: Sent) -> Gain | None:
    """The method's gain, whose total is exactly the ratio of bytes; None where a side sends nothing."""
    if not (baseline.bytes and method.bytes):
        return None
    return Gain(
        layers=(baseline.values / baseline.rounds) / (method.values / method.rounds),
        rounds=baseline.rounds / method.rounds,
        precision=(baseline.bytes / baseline.values) / (method.bytes / method.values),
    )
