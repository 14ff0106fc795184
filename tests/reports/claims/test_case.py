"""When a number decides what is asked of it, by p-values that are computed here in another way, and texts."""

from __future__ import annotations

import math
from math import comb

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from reports.claims.asked import Asked, Counted, counted
from reports.evidence.inference import LEVEL, resampled
from reports.evidence.statistics import exact

VALUES = st.lists(st.floats(-50, 50), min_size=2, max_size=8)


@pytest.mark.parametrize(
    ("asked", "value", "meets"),
    [
        (Asked(0, strict=True), 0.0, False),
        (Asked(0, strict=True), 0.01, True),
        (Asked(1), 1.0, True),
        (Asked(1), 0.99, False),
        (Asked(4, places=0), 3.5, True),  # half up
        (Asked(4, places=0), 3.49, False),
        (Asked(11.9, places=1), 11.88, True),
        (Asked(-1, 1), -1.0, True),
        (Asked(-1, 1), 1.01, False),
        (Asked(0, 0), 0.0, True),
        (Asked(-math.inf, 1), 1.0, True),
        (Asked(-math.inf, 1), 1.01, False),
    ],
)
def test_an_exact_value_meets_it_or_not(asked: Asked, value: float, meets: bool) -> None:
    assert asked.meets(value) is meets
    assert asked.holds(exact(value)) == (0.0 if meets else 1.0)
    assert (min(asked.fails(exact(value))) == 0.0) is not meets


@given(VALUES, st.floats(-5, 5), st.floats(0, 0.5))
def test_p_values_are_those_of_the_corrected_t_test(values: list[float], least: float, ratio: float) -> None:
    found = resampled(values, ratio)
    assume(found.error is not None and found.error > 1e-4)
    t = (found.value - least) / found.error  # type: ignore[operator]
    assert Asked(least).holds(found) == pytest.approx(stats.t.sf(t, len(values) - 1), abs=1e-9)
    (against,) = Asked(least).fails(found)
    assert against == pytest.approx(stats.t.cdf(t, len(values) - 1), abs=1e-9)


@given(VALUES, st.floats(-5, 5), st.floats(0, 10))
def test_the_interval_and_the_p_values_say_the_same(values: list[float], least: float, width: float) -> None:
    """Both ends of an interval are the bounds of two one-sided tests."""
    found = resampled(values, 0.25)
    assume(found.interval is not None and found.interval[1] - found.interval[0] > 1e-6)
    asked = Asked(least, least + width)
    low, high = found.interval  # type: ignore[misc]
    assume(min(abs(end - bound) for end in (low, high) for bound in (least, least + width)) > 1e-9)
    assert (asked.holds(found) <= LEVEL) is (least < low and high < least + width)
    below, above = asked.fails(found)
    assert (below <= LEVEL) is (high < least)
    assert (above <= LEVEL) is (low > least + width)


def test_values_that_agree_decide_and_a_tie_does_not() -> None:
    """Seeds that agree, of numbers that have no sampling error either."""
    agreeing, tied = resampled([2.0, 2.0], 0.25, floor=0.0), resampled([0.0, 0.0], 0.25, floor=0.0)
    assert (Asked(0, strict=True).holds(agreeing), Asked(0, strict=True).fails(agreeing)) == (0.0, (1.0,))
    assert (Asked(3).holds(agreeing), Asked(3).fails(agreeing)) == (1.0, (0.0,))
    assert (Asked(0, strict=True).holds(tied), Asked(0, strict=True).fails(tied)) == (1.0, (1.0,))
    assert Asked(2).holds(agreeing) == 0.0  # the bound meets what is asked


@given(st.lists(st.integers(-3, 3), min_size=5, max_size=9))
def test_whole_numbers_are_judged_by_a_sign_test(values: list[int]) -> None:
    found = counted([(value, value) for value in values], 0.0)
    above, below, n = sum(value > 0 for value in values), sum(value < 0 for value in values), len(values)

    def chance(successes: int) -> float:
        return sum(comb(n, k) for k in range(successes, n + 1)) / 2**n

    asked = Asked(0, strict=True)
    assert asked.holds(found) == pytest.approx(chance(above))
    assert asked.fails(found) == pytest.approx((chance(below),))  # ties are neither


def test_a_censored_run_is_a_bound_on_one_side() -> None:
    found = counted([(2.0, math.inf)] * 5, 0.0)
    assert found.interval == (2.0, math.inf)
    assert Asked(2.0).holds(found) == pytest.approx(1 / 32)
    assert Asked(3.0).holds(found) == pytest.approx(1.0)
    assert Asked(3.0).fails(found) == pytest.approx((1.0,))
    late = counted([(-math.inf, -1.0)] * 5, 0.0)
    assert (late.value, Asked(0, strict=True).fails(late)) == (-1.0, pytest.approx((1 / 32,)))
    assert isinstance(found, Counted)
    assert (found.needed, counted([], 0.25).needed) == (5, 7)  # splits that overlap agree more often by chance
