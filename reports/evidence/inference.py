"""What may be concluded from paired differences over seeds. `docs/statistics.md` says why each rule is the one it is.

A verdict is a one-sided test at LEVEL, so an interval's two ends are the two one-sided bounds: a 90 % interval. Of a
true statement only "contradicted" is wrong, of a false one only "supported", and each is as rare as LEVEL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from reports.evidence.statistics import Estimate, mean, sample_sd

LEVEL = 0.05  # of wrong verdicts, at most


def quantile(freedom: float, level: float = LEVEL) -> float:
    """Student's t that is exceeded with probability `level`."""
    from scipy.special import ndtri, stdtrit  # the quantiles alone: scipy.stats takes a second to import

    return float(ndtri(1 - level) if math.isinf(freedom) else stdtrit(freedom, 1 - level))


def tail(t: float, freedom: float) -> float:
    """The probability that Student's t exceeds a value."""
    from scipy.special import ndtr, stdtr

    return float(ndtr(-t) if math.isinf(freedom) else stdtr(freedom, -t))


def estimate(value: float, error: float, freedom: float, n: int, note: str = "", level: float = LEVEL) -> Estimate:
    """A value with its standard error, and the interval between its one-sided bounds."""
    half = quantile(freedom, level) * error
    return Estimate(value, (value - half, value + half), n, note, error, freedom)


def resampled(
    differences: Sequence[float | None], test_over_train: float, note: str = "", level: float = LEVEL
) -> Estimate:
    """The mean of paired differences, one a seed: corrected resampled t (Nadeau and Bengio 2003, section 3).

    test_over_train: n_test / n_train of the splits that seeds redraw from one pool; the splits overlap, so the mean's
    variance is (1 / n + n_test / n_train) s^2, and not s^2 / n. 0 where seeds do not redraw them. No interval below
    two seeds; None is left out.
    """
    known = [value for value in differences if value is not None]
    if not known:
        return Estimate(None, None, 0, note)
    sd = sample_sd(known)
    if sd is None:
        return Estimate(known[0], None, 1, note)
    error = math.sqrt(1 / len(known) + test_over_train) * sd
    return estimate(mean(known), error, len(known) - 1, len(known), note, level)


def median_bounds(values: Sequence[float], note: str = "", level: float = LEVEL) -> Estimate:
    """The median, between the order statistics that a sign test allows (Conover 1999, section 3.2).

    For whole numbers such as rounds, where seeds that agree prove less than a t test takes them for. No interval where
    there are too few values for any: below five at a level of 0.05.
    """
    from statistics import median

    from scipy.special import bdtr

    ordered, n = sorted(values), len(values)
    if not n:
        return Estimate(None, None, 0, note)
    cut = -1  # how many values may lie outside on each side
    while cut + 1 <= (n - 1) // 2 and float(bdtr(cut + 1, n, 0.5)) <= level:
        cut += 1
    interval = None if cut < 0 else (ordered[cut], ordered[n - 1 - cut])
    return Estimate(median(ordered), interval, n, note)


def holm(p_values: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Which hypotheses are rejected when any of them may be (Holm 1979)."""
    rejected = [False] * len(p_values)
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda each: p_values[each])):
        if p_values[index] > level / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected


def smallest_effect(found: Estimate, power: float = 0.8, level: float = LEVEL) -> float | None:
    """The distance from a bound at which this many seeds with this spread decide with the given power."""
    if found.error is None:
        return None
    return (quantile(found.freedom, level) + quantile(found.freedom, 1 - power)) * found.error
