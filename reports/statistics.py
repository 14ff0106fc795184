"""Numbers over seeds, and the papers' decimal arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from reports.errors import ReportError

if TYPE_CHECKING:
    import numpy as np

RESAMPLES = 10_000

# A paper computes with the digits that it prints: decimal, where binary floats would cut 77.94 to 77.93.
RULES = {"truncate": ROUND_DOWN, "round": ROUND_HALF_UP}


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; ValueError where there are no values."""
    if not values:
        raise ValueError("the mean of no values")
    return math.fsum(values) / len(values)


def sample_sd(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n - 1); None below two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def t_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """Student's t interval of the mean over seeds; None below two values."""
    sd = sample_sd(values)
    if sd is None:
        return None
    from scipy.special import stdtrit  # the t quantile alone: scipy.stats takes a second to import

    half = float(stdtrit(len(values) - 1, (1 + confidence) / 2)) * sd / math.sqrt(len(values))
    return mean(values) - half, mean(values) + half


def welch_test(difference: float, sds: Sequence[float], runs: Sequence[float]) -> tuple[float, float, float]:
    """Welch's t test of two means from their standard deviations: t, degrees of freedom and the two-sided p."""
    from scipy.special import stdtr

    variances = [sd**2 / n for sd, n in zip(sds, runs, strict=True)]
    t = difference / math.sqrt(math.fsum(variances))
    freedom = math.fsum(variances) ** 2 / math.fsum(
        variance**2 / (n - 1) for variance, n in zip(variances, runs, strict=True)
    )
    return t, freedom, 2 * float(stdtr(freedom, -abs(t)))


def stratified_bootstrap(
    strata: Sequence[Sequence[float]],
    statistic: Callable[[np.ndarray], np.ndarray],
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Percentile interval of a statistic of means, each resampled within its stratum; None below two values in one.

    strata: for each method and task, its scores over seeds. statistic: means of shape (strata, resamples) to
    (resamples,). The same seed draws the same resamples.
    """
    if not strata or any(len(values) < 2 for values in strata):
        return None
    import numpy as np

    generator = np.random.default_rng(seed)
    means = np.stack([generator.choice(values, (resamples, len(values))).mean(axis=1) for values in strata])
    low, high = np.quantile(statistic(means), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def root_mean_square(values: Sequence[float]) -> float | None:
    """Quadratic mean; None without values.

    Combines sampling errors over seeds: the seeds' test sets are drawn from one pool, so their errors do not
    shrink with the number of seeds.
    """
    return math.sqrt(math.fsum(value**2 for value in values) / len(values)) if values else None


def printed(value: float | Decimal, rule: str = "round", places: int = 2) -> Decimal:
    """The number as a paper prints it; rule: "round" (half up) or "truncate" (towards zero)."""
    if rule not in RULES:
        raise ReportError(f"unknown rule {rule!r} for decimals: expected one of {', '.join(RULES)}")
    exact = value if isinstance(value, Decimal) else Decimal(str(value))
    return exact.quantize(Decimal(1).scaleb(-places), rounding=RULES[rule]) + 0  # + 0: no paper prints -0.00


def truncate(value: float | Decimal, places: int = 2) -> Decimal:
    """The number cut towards zero, as the averages of FedSplitBERT's Tables III and IV are."""
    return printed(value, "truncate", places)


def average(values: Sequence[Decimal | None], rule: str = "truncate") -> Decimal | None:
    """A row's average by the paper's rule: of the printed numbers, one a task; None where one is missing."""
    present = [value for value in values if value is not None]
    if not present or len(present) < len(values):
        return None
    return printed(sum(present, Decimal(0)) / len(present), rule)
