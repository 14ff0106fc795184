"""What a comparison asks of a number, and how probable the number would be if the opposite were true."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from itertools import count

from reports.evidence.inference import LEVEL, chance, median_bounds, sign_tail
from reports.evidence.statistics import Estimate, printed


@dataclass(frozen=True)
class Counted(Estimate):
    """A median of whole numbers, or of what counts in whole rounds, judged by a sign test.

    bounds: one pair a seed, the least and the largest value that it may have; they differ where a run is censored.
    ratio: n_test / n_train of the splits that seeds redraw.
    """

    bounds: tuple[tuple[float, float], ...] = ()
    ratio: float = 0.0

    @property
    def needed(self) -> int:
        """How many seeds that agree would decide."""
        return next(n for n in count(1) if sign_tail(0, n, self.ratio) <= LEVEL)


@dataclass(frozen=True)
class Derivation(Estimate):
    """A number without noise that follows from shapes, or from what a method is: no evidence decides it."""


@dataclass(frozen=True)
class Unjudged(Estimate):
    """Something of which nothing may be concluded, whether there is a number or none.

    why: a column's name and the reason, each. is_settled: whether a claim about all columns is judged without this one.
    """

    why: tuple[tuple[str, str], ...] = ()
    is_settled: bool = False


def derivation(value: float, n: int, note: str = "") -> Derivation:
    """A number that follows, beside n runs."""
    return Derivation(value, (value, value), n, note)


def unjudged(found: Estimate | None, why: Sequence[tuple[str, str]], *, is_settled: bool = False) -> Unjudged:
    """The number, if there is one, with the reasons for which nothing may be concluded from it."""
    known = {each.name: getattr(found, each.name) for each in fields(Estimate)} if found else {"value": None}
    return Unjudged(**known, why=tuple(why), is_settled=is_settled)


def are_most(some: Collection[object], every: Collection[object]) -> bool:
    """Whether what can be judged is enough to speak of all: more than half of it."""
    return 2 * len(some) > len(every)


def counted(bounds: Sequence[tuple[float, float]], ratio: float, note: str = "") -> Counted:
    """The median of one value a seed, and the order statistics that the sign test allows, if there are enough."""
    lows, highs = ([pair[side] for pair in bounds] for side in (0, 1))
    shown = [high if math.isinf(low) else low for low, high in bounds]
    least, most = (median_bounds(ends, test_over_train=ratio).interval for ends in (lows, highs))
    interval = None if least is None or most is None else (least[0], most[1])
    return Counted(median_bounds(shown).value, interval, len(bounds), note, bounds=tuple(bounds), ratio=ratio)


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

    def is_above(self, value: float) -> bool:
        """Whether a value is no less than asked."""
        return self._seen(value) > self.least if self.strict else self._seen(value) >= self.least

    def is_within(self, value: float) -> bool:
        """Whether a value is no more than asked."""
        return self._seen(value) <= self.most

    def meets(self, value: float) -> bool:
        return self.is_above(value) and self.is_within(value)

    @property
    def example(self) -> float:
        """A value that meets it."""
        if math.isinf(self.least):
            return self.most
        return self.least + 1 if math.isinf(self.most) else (self.least + self.most) / 2

    def margin(self, value: float) -> float:
        return min(self._seen(value) - self.least, self.most - self._seen(value))

    def holds(self, found: Estimate) -> float:
        """The p-value of evidence for it: one-sided, of both sides the larger (two one-sided tests)."""
        if found.interval is None or found.value is None:
            return 1.0
        sides = [side for side, end in (("least", self.least), ("most", self.most)) if math.isfinite(end)]
        return max((self._for(found, side) for side in sides), default=0.0)

    def fails(self, found: Estimate) -> tuple[float, ...]:
        """The p-values of evidence against it, one for each side on which it may fail. A tie is none."""
        if found.interval is None or found.value is None:
            return (1.0,)
        ends = (("least", self.least), ("most", self.most))
        return tuple(self._against(found, side) for side, end in ends if math.isfinite(end))

    def _for(self, found: Estimate, side: str) -> float:
        meets = self.is_above if side == "least" else self.is_within
        if isinstance(found, Counted):
            ends = [low if side == "least" else high for low, high in found.bounds]
            return sign_tail(found.n - sum(map(meets, ends)), found.n, found.ratio)
        if not found.error:
            return 0.0 if meets(found.value or 0.0) else 1.0
        return chance(self._distance(found, side), found)

    def _against(self, found: Estimate, side: str) -> float:
        if isinstance(found, Counted):
            ends = [high if side == "least" else low for low, high in found.bounds]
            beyond = sum(self._is_beyond(end, side) for end in ends)
            return sign_tail(found.n - beyond, found.n, found.ratio)
        if not found.error:
            value = found.value or 0.0
            meets = self.is_above if side == "least" else self.is_within
            is_beyond = self._is_beyond(value, side) if is_noisy(found) else not meets(value)
            return 0.0 if is_beyond else 1.0
        return chance(-self._distance(found, side), found)

    def _distance(self, found: Estimate, side: str) -> float:
        value = found.value or 0.0
        return value - self.least if side == "least" else self.most - value

    def _is_beyond(self, value: float, side: str) -> bool:
        """Whether a value lies wholly beyond an end: a tie does not."""
        return self._seen(value) < self.least if side == "least" else self._seen(value) > self.most

    @property
    def text(self) -> str:
        if math.isinf(self.least):
            return f"≤ {self.most:g}{self.unit}"
        if self.most == -self.least:
            return "0" if self.most == 0 else f"within ± {self.most:g}{self.unit}"
        least = f"{'>' if self.strict else '≥'} {self.least:g}{self.unit}"
        return least if math.isinf(self.most) else f"{least}, ≤ {self.most:g}{self.unit}"


def is_noisy(found: Estimate) -> bool:
    """Whether a number varies over seeds; what is printed, and bytes, do not."""
    return found.error is not None or isinstance(found, Counted) or found.interval is None
