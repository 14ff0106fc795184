"""Means and estimates over seeds, and the papers' decimal arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from statistics import fmean

from scipy.special import stdtr

# Papers compute with decimal digits; binary floats would truncate 77.94 to 77.93.
FEWEST_SEEDS = 3  # two seeds show little of the spread
RULES = {"truncate": ROUND_DOWN, "round": ROUND_HALF_UP}
mean = fmean  # of an exact sum; ValueError without values


def sample_sd(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n - 1); None below two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def welch_test(difference: float, sds: Sequence[float], runs: Sequence[float]) -> tuple[float, float, float]:
    """Welch's t test of two means from their standard deviations: t, degrees of freedom and the two-sided p."""
    variances = [sd**2 / n for sd, n in zip(sds, runs, strict=True)]
    t = difference / math.sqrt(math.fsum(variances))
    parts = math.fsum(variance**2 / (n - 1) for variance, n in zip(variances, runs, strict=True))
    freedom = math.fsum(variances) ** 2 / parts
    return t, freedom, 2 * float(stdtr(freedom, -abs(t)))


def root_mean_square(values: Sequence[float]) -> float | None:
    """The quadratic mean; None without values. For sampling errors over seeds that share a pool of test examples."""
    return math.sqrt(math.fsum(value**2 for value in values) / len(values)) if values else None


def printed(value: float | Decimal, rule: str = "round", places: int = 2) -> Decimal:
    """The number as a paper prints it; rule: "round" (half up) or "truncate" (towards zero)."""
    exact = value if isinstance(value, Decimal) else Decimal(str(value))
    return exact.quantize(Decimal(1).scaleb(-places), rounding=RULES[rule]) + 0  # + 0: no paper prints -0.00


def average(values: Sequence[Decimal | None], rule: str = "truncate") -> Decimal | None:
    """A row's average by the paper's rule, over printed numbers, one per task; None if one is missing."""
    present = [value for value in values if value is not None]
    if not present or len(present) < len(values):
        return None
    return printed(sum(present, Decimal(0)) / len(present), rule)


@dataclass(frozen=True)
class Component:
    """An independent part of a standard error, with its degrees of freedom: infinite for a large test set.

    ratio: n_test / n_train of the splits that seeds redraw (0: none), for a part that shrinks with more seeds.
    """

    error: float
    freedom: float = math.inf
    ratio: float | None = None

    def with_seeds(self, seeds: int, n: int) -> Component:
        """The component for another number of seeds with the same variation as these n."""
        if self.ratio is None:
            return self
        share = (1 / seeds + self.ratio) / (1 / n + self.ratio)
        return replace(self, error=math.sqrt(share) * self.error, freedom=self.freedom * (seeds - 1) / (n - 1))


@dataclass(frozen=True)
class Estimate:
    """A number over n seeds.

    Args:
        value: None if undefined.
        interval: None if undefined, as for one seed.
        components: The parts of the value's standard error; None for exact numbers and medians, which have none.
    """

    value: float | None
    interval: tuple[float, float] | None = None
    n: int = 0
    note: str = ""
    components: tuple[Component, ...] | None = None

    @property
    def error(self) -> float | None:
        """The value's standard error."""
        return None if self.components is None else math.hypot(*(part.error for part in self.components))

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval; None below three seeds, as its width is not informative."""
        return self.interval if self.n >= FEWEST_SEEDS else None
