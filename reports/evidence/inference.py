"""Inference from paired differences over seeds; `docs/statistics.md` gives the reasons for each rule.

A verdict is a one-sided test at LEVEL, so an interval's ends are two one-sided bounds: a 90 % interval. For a true
statement only "contradicted" is wrong, for a false one only "supported"; each has probability LEVEL at most. If a
statement can be contradicted in several ways, these share the LEVEL.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from statistics import median

from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import brentq
from scipy.special import bdtr, ndtr, ndtri, stdtr, stdtrit  # not scipy.stats, which takes a second to import

from reports.evidence.statistics import FEWEST_SEEDS, Component, Estimate, mean, sample_sd

MOST_SEEDS = 100  # the largest number of seeds that is advised
LEVEL = 0.05  # largest share of wrong verdicts
MISSED = 0.2  # share of cases in which seeds miss the smallest effect: a power of 80 %
CONFIDENCE = f"{100 * (1 - 2 * LEVEL):g} %"  # of every interval shown: its ends are two one-sided bounds
_SAME = 1e-9  # equal scores may differ in last bits; one example counts for more in every test set


def quantile(freedom: float, level: float = LEVEL) -> float:
    """The value that Student's t exceeds with probability `level`."""
    return float(ndtri(1 - level) if math.isinf(freedom) else stdtrit(freedom, 1 - level))


def tail(t: float, freedom: float) -> float:
    """The probability that Student's t exceeds a value."""
    return float(ndtr(-t) if math.isinf(freedom) else stdtr(freedom, -t))


def reach(components: Iterable[Component], level: float = LEVEL) -> float:
    """The distance between a value and its one-sided bound.

    Each component has its own quantile, and their squares add up (Howe 1974). One t for all, with Satterthwaite's
    degrees of freedom, errs too often with two or three seeds.
    """
    return math.hypot(*(quantile(part.freedom, level) * part.error for part in components if part.error))


def chance(distance: float, statistic: Estimate) -> float:
    """The probability that a value lies this far above the truth, or further."""
    components = [part for part in statistic.components or () if part.error]
    if not components:
        return float(distance <= 0)
    if len(components) == 1:
        return tail(distance / components[0].error, components[0].freedom)
    if distance <= 0:
        return 1 - chance(-distance, statistic) if distance else 0.5
    least = 1e-12
    if reach(components, least) <= distance:
        return least
    return float(brentq(lambda p: reach(components, p) - distance, least, 0.5))


def estimate(value: float, components: Iterable[Component], n: int, note: str = "", level: float = LEVEL) -> Estimate:
    """A value with its standard error's components, and the interval between its one-sided bounds."""
    parts = tuple(components)
    half = reach(parts, level)
    return Estimate(value, (value - half, value + half), n, note, parts)


def at_level(statistic: Estimate, level: float) -> Estimate:
    """The same estimate between its bounds at another level; without a standard error it stays the same."""
    if statistic.value is None or statistic.components is None or statistic.interval is None:
        return statistic
    return estimate(statistic.value, statistic.components, statistic.n, statistic.note, level)


def moved(statistic: Estimate, by: float) -> Estimate:
    """The same estimate with the value shifted."""
    if statistic.value is None:
        return statistic
    interval = None if statistic.interval is None else (statistic.interval[0] + by, statistic.interval[1] + by)
    return replace(statistic, value=statistic.value + by, interval=interval)


def resampled(
    differences: Sequence[float | None], test_over_train: float, note: str = "", floor: float | None = None
) -> Estimate:
    """The mean of paired differences, one per seed: corrected resampled t (Nadeau and Bengio 2003, section 3).

    test_over_train: n_test / n_train of the splits that seeds redraw from one pool; the splits overlap, so the mean's
    variance is (1 / n + n_test / n_train) s^2, not s^2 / n. 0 if seeds do not redraw splits.
    floor: the sampling error of one seed's difference, used if all seeds agree to the last digit. That happens by
    chance, as scores move in steps of one example, so their spread is not informative. 0 for exact numbers; None if it
    is unknown, and then there is no interval. There is none below two seeds either. None among the differences is left
    out.
    """
    values = [value for value in differences if value is not None]
    if not values:
        return Estimate(None, None, 0, note)
    sd, n = sample_sd(values), len(values)
    if sd is None:
        return Estimate(values[0], None, 1, note)
    if sd > _SAME:
        whole = Component(math.sqrt(1 / n + test_over_train) * sd, n - 1, test_over_train)
    elif floor is None:
        return Estimate(mean(values), None, n, note)
    elif test_over_train:  # test sets of redrawn splits share n_test of n_test + n_train examples
        whole = Component(math.sqrt((1 / n + test_over_train) / (1 + test_over_train)) * floor, ratio=test_over_train)
    else:
        whole = Component(floor)  # a fixed one is shared completely
    return estimate(mean(values), [whole], n, note)


def is_flat(statistic: Estimate) -> bool:
    """Whether seeds agree to the last digit, so the error of the test sets is needed, which is slow to compute."""
    return statistic.interval is None and statistic.n > 1


def with_sampling(statistic: Estimate, error: float | None) -> Estimate:
    """An estimate over seeds that share one test set, with the sampling error of that set added.

    No interval if the error is unknown.
    """
    if statistic.value is None or statistic.components is None or error is None:
        return replace(statistic, interval=None, components=None)
    return estimate(statistic.value, (*statistic.components, Component(error)), statistic.n, statistic.note)


def on_test_sets(
    values: Sequence[float | None], test_over_train: float, error: float | None, note: str = ""
) -> Estimate:
    """The mean of one value per seed, on test sets that seeds redraw, or on one that they share.

    error: the sampling error of one seed's value; None if it is unknown.
    """
    if test_over_train:
        return resampled(values, test_over_train, note, floor=error)
    return with_sampling(resampled(values, 0.0, note, floor=0.0), error)


def average_of(estimates: Sequence[Estimate], note: str = "") -> Estimate:
    """The mean of estimates on independent data, such as tasks: variances add.

    Exact numbers have no error. No interval if one estimate has none, or has no standard error (a median).
    """
    values = [part.value for part in estimates if part.value is not None]
    n = min((part.n for part in estimates), default=0)
    if not estimates or len(values) < len(estimates):
        return Estimate(None, None, n, note)
    each = [_components(part) for part in estimates]
    if None in each:
        return Estimate(mean(values), None, n, note)
    parts = [part for components in each for part in components or ()]
    return estimate(mean(values), scaled(_sum(parts), 1 / len(estimates)), n, note)


def average_together(estimates: Sequence[Estimate], note: str = "") -> Estimate:
    """The mean of estimates on shared data: errors add as if they were fully correlated, which is wider."""
    whole = average_of(estimates, note)
    errors = [(part.error, part.components) for part in estimates if part.components and part.error]
    if whole.value is None or whole.interval is None or not errors:
        return whole
    total = math.fsum(error for error, _ in errors) / len(estimates)
    error, widest = max(errors, key=lambda part: reach(part[1]) / part[0])
    return estimate(whole.value, scaled(widest, total / error), whole.n, note)


def another(estimates: Sequence[Estimate]) -> tuple[float, float] | None:
    """The prediction interval for one further estimate's true value, at LEVEL on each side.

    True values vary over tasks; this variance is estimated by moments and separated from each estimate's error
    (Higgins, Thompson and Spiegelhalter 2009). None below three estimates with an error.
    """
    values = [part.value for part in estimates if part.value is not None]
    errors = [part.error for part in estimates if part.error is not None]
    sd, n = sample_sd(values), len(values)
    if sd is None or n < 3 or len(errors) < n:
        return None
    within = mean([error**2 for error in errors])
    between = max(0.0, sd**2 - within)
    half = quantile(n - 2) * math.sqrt(between + (between + within) / n)
    return mean(values) - half, mean(values) + half


def _sum(components: Sequence[Component]) -> list[Component]:
    """At most three components with the same sum: the largest one from seeds stays separate.

    Merging all by Satterthwaite errs too often if few seeds estimate one large variance among small ones.
    """
    shared = [part for part in components if math.isinf(part.freedom)]
    seeds = sorted((part for part in components if not math.isinf(part.freedom)), key=lambda part: part.error)
    return [part for part in (*seeds[-1:], _merged(seeds[:-1]), _merged(shared)) if part.error]


def _merged(components: Sequence[Component]) -> Component:
    """One component with the same sum and Satterthwaite's degrees of freedom."""
    error = math.hypot(*(part.error for part in components))
    parts = math.fsum(part.error**4 / part.freedom for part in components)
    weighted_ratios = [part.error**2 * part.ratio for part in components if part.ratio is not None]
    ratio = math.fsum(weighted_ratios) / error**2 if error and len(weighted_ratios) == len(components) else None
    return Component(error, error**4 / parts if parts else math.inf, ratio)


def scaled(components: Iterable[Component], by: float) -> tuple[Component, ...]:
    """The components of a multiple of the value."""
    return tuple(replace(part, error=by * part.error) for part in components)


def confidence(estimates: Sequence[Estimate], limits: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """The interval of the mean of estimates, cut to their ranges; None if one has none, or below three seeds."""
    bounds = average_of(estimates).ends
    if bounds is None:
        return None
    least, most = (mean(ends) for ends in zip(*limits, strict=True))
    return max(bounds[0], least), min(bounds[1], most)


def _components(statistic: Estimate) -> tuple[Component, ...] | None:
    """The parts of a value's error: () for an exact number; None without an interval, or for a median."""
    if statistic.interval is None:
        return None
    is_exact = statistic.components is None and statistic.interval[0] == statistic.interval[1]
    return () if is_exact else statistic.components


def similar(statistic: Estimate, margin: float) -> bool | None:
    """Whether a value lies within ± margin: two one-sided tests (Schuirmann 1987); None if that is undecided.

    Within: both bounds lie inside, not on the margin. Outside: one bound lies beyond the margin, at
    half the level, as there are two sides.
    """
    if statistic.interval is None:
        return None
    low, high = statistic.interval
    if -margin < low and high < margin:
        return True
    low, high = at_level(statistic, LEVEL / 2).interval or statistic.interval
    return False if low > margin or high < -margin else None


def median_bounds(values: Sequence[float], test_over_train: float = 0.0) -> Estimate:
    """The median, between the order statistics that a sign test allows (Conover 1999, section 3.2).

    For whole numbers such as rounds, for which a t test overrates seeds that agree, and for ratios of them, as the
    median's bounds are the same on logarithms. test_over_train: as in `resampled`; the more the splits overlap, the
    more often seeds fall on the same side. No interval with too few values: below five at a level of 0.05, below seven
    if 20 % are redrawn for the test.
    """
    ordered, n = sorted(values), len(values)
    if not n:
        return Estimate(None)
    cut = -1  # the number of values outside on each side
    while cut + 1 <= (n - 1) // 2 and sign_tail(cut + 1, n, test_over_train) <= LEVEL:
        cut += 1
    interval = None if cut < 0 else (ordered[cut], ordered[n - 1 - cut])
    return Estimate(median(ordered), interval, n)


@cache
def sign_tail(outside: int, n: int, test_over_train: float = 0.0) -> float:
    """The probability that at most this many of n values lie below their median, if splits overlap.

    Model: normal values with a shared part of the variance; given this part, they are independent.
    """
    nodes, weights = hermegauss(80)  # the correlation is r / (1 + r), so its odds are r itself
    return float(weights @ bdtr(outside, n, ndtr(math.sqrt(test_over_train) * nodes)) / weights.sum())


def holm(p_values: Sequence[float]) -> list[bool]:
    """The hypotheses that Holm's procedure (1979) rejects."""
    rejected = [False] * len(p_values)
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda each: p_values[each])):
        if p_values[index] > LEVEL / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected


def smallest_effect(statistic: Estimate, missed: float = MISSED) -> float | None:
    """The minimum detectable effect of this many seeds with this spread, at 80 % power: a distance from a bound."""
    return None if statistic.components is None else reach(statistic.components) + reach(statistic.components, missed)


def smallest_margin(statistic: Estimate) -> float | None:
    """The smallest margin within which this many seeds show a true value of 0, at the same power."""
    return smallest_effect(statistic, MISSED / 2)


def seeds_needed(statistic: Estimate, effect: float) -> int | None:
    """The smallest number of seeds with a one-sided bound that reaches an effect, at this estimate's spread.

    With n seeds the bound lies t(1 - LEVEL; n - 1) sqrt(1/n + n_test/n_train) s from the value. None if no number
    up to MOST_SEEDS is enough, as redrawn splits overlap, or if fewer than FEWEST_SEEDS show the spread.
    """
    if not statistic.components or statistic.n < FEWEST_SEEDS:
        return None
    for n in range(2, MOST_SEEDS + 1):
        if reach([part.with_seeds(n, statistic.n) for part in statistic.components]) <= abs(effect):
            return n
    return None
