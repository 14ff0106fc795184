"""One comparison that a claim asserts, and whether it is met."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from reports.claims.estimate import Estimate
from reports.layout import number
from reports.statistics import printed


class State(Enum):
    """What is known of a statement."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"
    MISSING = "missing"  # neither run nor printed


def every(states: Iterable[State]) -> State:
    """Of statements that are asserted together: one that is wrong decides."""
    known = set(states)
    if State.NO in known:
        return State.NO
    if known in ({State.YES}, {State.MISSING}):
        return known.pop()
    return State.UNDECIDED if known else State.MISSING


def some(states: Iterable[State]) -> State:
    """Of statements of which one is asserted."""
    known = set(states)
    if State.YES in known:
        return State.YES
    if known in ({State.NO}, {State.MISSING}):
        return known.pop()
    return State.UNDECIDED if known else State.MISSING


@dataclass(frozen=True)
class Asked:
    """Which values meet a comparison: from least to most; strict: more than the least."""

    least: float
    most: float = math.inf
    strict: bool = False
    places: int | None = None  # decimals to which a value is rounded first
    unit: str = ""
    is_signed: bool = True  # shown with its sign, as differences are

    def _seen(self, value: float) -> float:
        rounds = self.places is not None and math.isfinite(value)
        return float(printed(value, "round", self.places or 0)) if rounds else value

    def _is_above(self, value: float) -> bool:
        return self._seen(value) > self.least if self.strict else self._seen(value) >= self.least

    def meets(self, value: float) -> bool:
        """Whether a value is one of them."""
        return self._is_above(value) and self._seen(value) <= self.most

    def state(self, estimate: Estimate | None) -> State:
        """Yes where the whole interval meets it, no where none of it does."""
        if estimate is None:
            return State.MISSING
        if estimate.interval is None:
            return State.UNDECIDED
        low, high = estimate.interval
        if self.meets(low) and self.meets(high):
            return State.YES
        return State.NO if not self._is_above(high) or self._seen(low) > self.most else State.UNDECIDED

    def margin(self, value: float) -> float:
        """By how much a value lies inside; negative outside."""
        return min(self._seen(value) - self.least, self.most - self._seen(value))

    @property
    def text(self) -> str:
        """What is asked, in signs."""
        if math.isinf(self.least):
            return f"≤ {self.most:g}{self.unit}"
        if self.most == -self.least:
            return "0" if self.most == 0 else f"within ± {self.most:g}"
        least = f"{'>' if self.strict else '≥'} {self.least:g}{self.unit}"
        return least if math.isinf(self.most) else f"{least}, ≤ {self.most:g}{self.unit}"


def two_sided(within: float) -> Asked:
    """From -within to +within."""
    return Asked(-within, within)


@dataclass(frozen=True)
class Case:
    """One comparison: where, of what, what is asked and what is known."""

    place: str  # "Table III"
    tasks: tuple[str, ...]
    name: str
    asked: Asked
    estimate: Estimate | None  # None where it is neither run nor printed

    @property
    def state(self) -> State:
        """Whether it is met."""
        return self.asked.state(self.estimate)

    @property
    def margin(self) -> float:
        """By how much the estimate meets it; infinite where there is none."""
        value = None if self.estimate is None else self.estimate.value
        return math.inf if value is None else self.asked.margin(value)

    @property
    def text(self) -> str:
        """The comparison with its numbers."""
        if self.estimate is None or self.estimate.value is None:
            return f"{self.name}: undefined"
        sign = "+" if self.asked.is_signed else ""
        shown = f"{_signed(self.estimate.value, sign)}{self.asked.unit}"
        if self.estimate.interval is not None and self.estimate.interval[0] < self.estimate.interval[1]:
            low, high = (_signed(end, sign) for end in self.estimate.interval)
            shown += f" [{low}, {high}]"
        return f"{self.name} {shown}" + (f" ({self.estimate.note})" if self.estimate.note else "")


def _signed(value: float, sign: str) -> str:
    """A number with two decimals, or an infinite one."""
    if math.isfinite(value):
        return number(value, sign)
    return "∞" if value > 0 else "−∞"
