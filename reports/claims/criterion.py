"""Criteria: the values that a comparison asks for, and the strength of the evidence for and against them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any, Literal

from reports.evidence.inference import LEVEL, chance, median_bounds, sign_tail
from reports.evidence.statistics import Estimate, printed
from reports.pages.text import number

Side = Literal["least", "most"]
_TINY = 0.01  # below it, values have powers of ten
_TURNED = str.maketrans("≤≥>", "≥≤<")


@dataclass(frozen=True)
class Evidence(Estimate):
    """A number with the facts that a verdict needs.

    Args:
        bounds: For a median, judged by a sign test: each seed's least and largest possible value. They differ if a run
            is censored.
        ratio: For a median: n_test / n_train of the splits that seeds redraw.
        is_derived: The number follows without noise from shapes or from a method's definition.
        reasons: Columns, each with the reason why the number is no evidence there.
        in_mean: Replaces it in a mean over tasks: accuracy in place of a correlation.
        is_settled: With reasons: more seeds would not remove them, so a claim may be judged without this number.
    """

    bounds: tuple[tuple[float, float], ...] = ()
    ratio: float = 0.0
    is_derived: bool = False
    reasons: tuple[tuple[str, str], ...] = ()
    is_settled: bool = False
    in_mean: Estimate | None = None

    @property
    def is_noisy(self) -> bool:
        """Whether the number varies over seeds. Published numbers and bytes do not."""
        return self.error is not None or bool(self.bounds) or self.interval is None


def evidence(given: Estimate | None, **changes: Any) -> Evidence:
    """An estimate as evidence, with other values for some of its fields."""
    return Evidence(**{**vars(given or Estimate(None)), **changes})


def exact(value: Decimal | float, note: str = "") -> Evidence:
    """A published number, without noise."""
    return Evidence(float(value), (float(value), float(value)), note=note)


def derived(value: float, n: int, note: str = "") -> Evidence:
    """A number without noise that follows from shapes; n: the runs next to it."""
    return Evidence(value, (value, value), n, note, is_derived=True)


def median_evidence(bounds: Sequence[tuple[float, float]], ratio: float, note: str = "") -> Evidence:
    """The median of one value per seed, between the order statistics of the sign test."""
    lows, highs = ([pair[side] for pair in bounds] for side in (0, 1))
    values = [high if math.isinf(low) else low for low, high in bounds]
    least, most = (median_bounds(ends, test_over_train=ratio).interval for ends in (lows, highs))
    interval = None if least is None or most is None else (least[0], most[1])
    return Evidence(median_bounds(values).value, interval, len(bounds), note, bounds=tuple(bounds), ratio=ratio)


def seeds_for_sign_test(ratio: float) -> int:
    """The number of seeds that decide if all of them agree."""
    return next(n for n in count(1) if sign_tail(0, n, ratio) <= LEVEL)


@dataclass(frozen=True)
class Criterion:
    """The values that a comparison asks for: from `least` to `most`, with `strict` only values above `least`.

    Args:
        places: Decimals to which a value is rounded first; None for no rounding.
        is_signed: Values are differences and shown with their sign.
        words: For relative differences, which are shown in words: the one for positive values, and for negative ones,
            such as ("lower", "higher").
        equal: Differences up to it count as equal; None if their unit has no such margin.
    """

    least: float = -math.inf
    most: float = math.inf
    strict: bool = False
    places: int | None = None
    unit: str = ""
    is_signed: bool = True
    words: tuple[str, str] | None = None
    equal: float | None = None

    @property
    def sides(self) -> list[Side]:
        """Its finite ends."""
        sides: tuple[Side, Side] = ("least", "most")
        return [side for side in sides if math.isfinite(getattr(self, side))]

    def _rounded(self, value: float) -> float:
        rounds = self.places is not None and math.isfinite(value)
        return float(printed(value, "round", self.places or 0)) if rounds else value

    def _is_inside(self, side: Side, value: float) -> bool:
        value = self._rounded(value)
        if side == "most":
            return value <= self.most
        return value > self.least if self.strict else value >= self.least

    def _is_beyond(self, side: Side, value: float) -> bool:
        """Whether a value lies beyond an end. A tie does not."""
        value = self._rounded(value)
        return value > self.most if side == "most" else value < self.least

    def margin(self, value: float) -> float:
        """The distance of a value to the nearer end; negative outside."""
        return min(self._rounded(value) - self.least, self.most - self._rounded(value))

    def p_for(self, given: Evidence) -> float:
        """The p-value of evidence that the criterion holds: the larger one of both sides (two one-sided tests)."""
        if given.interval is None or given.value is None:
            return 1.0
        return max((self._p(given, side, supports=True) for side in self.sides), default=0.0)

    def p_against(self, given: Evidence) -> tuple[float, ...]:
        """The p-values of evidence that it fails, one per side. A tie is no evidence."""
        if given.interval is None or given.value is None:
            return (1.0,)
        return tuple(self._p(given, side, supports=False) for side in self.sides)

    def _p(self, given: Evidence, side: Side, supports: bool) -> float:
        agrees, value = self._is_inside if supports else self._is_beyond, given.value or 0.0
        if given.bounds:  # for a censored run, the less informative end
            ends = [pair[0 if (side == "least") is supports else 1] for pair in given.bounds]
            return sign_tail(given.n - sum(agrees(side, end) for end in ends), given.n, given.ratio)
        if not given.error:
            is_exact_failure = not supports and not given.is_noisy
            return float(self._is_inside(side, value) if is_exact_failure else not agrees(side, value))
        distance = value - self.least if side == "least" else self.most - value
        return chance(distance if supports else -distance, given)

    @property
    def text(self) -> str:
        if self.places is None:
            return self._bounds
        digits = {0: "a whole number", 1: "one decimal"}.get(self.places, f"{self.places} decimals")
        return f"{self._bounds} (rounded to {digits})"

    @property
    def _bounds(self) -> str:
        if math.isinf(self.least):
            return self._end("≤", self.most)
        if self.most == -self.least:
            return "0" if self.most == 0 else f"within ± {self.most:g}{self.unit}"
        if self.most == self.least:
            return f"= {self.least:g}{self.unit}"
        least = self._end(">" if self.strict else "≥", self.least)
        return least if math.isinf(self.most) else f"{least}, {self._end('≤', self.most)}"

    def _end(self, sign: str, value: float) -> str:
        if self.words and value < 0:  # at most −2 % higher is at least 2 % lower
            return f"{sign.translate(_TURNED)} {-value:g}{self.unit} {self.words[1]}"
        minus = "−" if value < 0 else ""
        return f"{sign} {minus}{abs(value):g}{self.unit}" + (f" {self.words[0]}" if self.words else "")

    def shown(self, value: float, sign: str = "") -> str:
        """A value without its unit, with as many digits as a comparison with the criterion needs."""
        largest = max((abs(getattr(self, side)) for side in self.sides), default=0.0)
        return f"{value:{sign}.1e}" if 0 < largest < _TINY else number(value, sign)

    def told(self, value: float, interval: tuple[float, float] | None) -> str:
        """A value with its unit, and with its interval if it has one."""
        if self.words:
            return self._in_words(value, interval)
        text = f"{self._signed(value)}{self.unit}"
        return text if interval is None else f"{text} [{', '.join(map(self._signed, interval))}]"

    def _signed(self, value: float) -> str:
        if math.isfinite(value):
            return self.shown(value, "+" if self.is_signed else "")
        return "∞" if value > 0 else "−∞"

    def _in_words(self, value: float, interval: tuple[float, float] | None) -> str:
        def size(each: float) -> str:
            return f"{self.shown(abs(each))}{self.unit}"

        def told(each: float) -> str:
            return f"{size(each)} {(self.words or ('', ''))[each < 0]}"

        if interval is None:
            return told(value)
        low, high = interval if interval[0] < 0 < interval[1] else sorted(interval, key=abs)
        first = told(low) if low < 0 < high else self.shown(abs(low))
        return f"{told(value)} [{first} to {told(high)}]"
