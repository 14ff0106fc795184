"""When a number meets a criterion, by p-values that are computed here in another way."""

from __future__ import annotations

import math
from math import comb

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from reports.claims.criterion import Criterion, evidence, median_evidence, seeds_for_sign_test
from reports.evidence.inference import LEVEL, resampled
from reports.evidence.statistics import exact

VALUES = st.lists(st.floats(-50, 50), min_size=2, max_size=8)
ABOVE_0 = Criterion(0, strict=True)


@pytest.mark.parametrize(
    ("criterion", "value", "meets"),
    [
        (ABOVE_0, 0.0, False),
        (ABOVE_0, 0.01, True),
        (Criterion(1), 1.0, True),
        (Criterion(4, places=0), 3.5, True),  # half up
        (Criterion(4, places=0), 3.49, False),
        (Criterion(-1, 1), -1.0, True),
        (Criterion(-1, 1), 1.01, False),
        (Criterion(most=1), 1.0, True),
        (Criterion(most=1), 1.01, False),
    ],
)
def test_an_exact_value_meets_it_or_not(criterion: Criterion, value: float, meets: bool) -> None:
    found = evidence(exact(value))
    assert criterion.meets(value) is meets
    assert criterion.p_for(found) == (0.0 if meets else 1.0)
    assert (min(criterion.p_against(found)) == 0.0) is not meets


@given(VALUES, st.floats(-5, 5), st.floats(0, 0.5))
def test_p_values_are_those_of_the_corrected_t_test(values: list[float], least: float, ratio: float) -> None:
    found = evidence(resampled(values, ratio))
    assume(found.error is not None and found.error > 1e-4)
    t = (found.value - least) / found.error  # type: ignore[operator]
    assert Criterion(least).p_for(found) == pytest.approx(stats.t.sf(t, len(values) - 1), abs=1e-9)
    (against,) = Criterion(least).p_against(found)
    assert against == pytest.approx(stats.t.cdf(t, len(values) - 1), abs=1e-9)


@given(VALUES, st.floats(-5, 5), st.floats(0, 10))
def test_the_interval_and_the_p_values_agree(values: list[float], least: float, width: float) -> None:
    """Both ends of an interval are the bounds of two one-sided tests."""
    found = evidence(resampled(values, 0.25))
    assume(found.interval is not None and found.interval[1] - found.interval[0] > 1e-6)
    low, high = found.interval  # type: ignore[misc]
    assume(min(abs(end - bound) for end in (low, high) for bound in (least, least + width)) > 1e-9)
    below, above = Criterion(least, least + width).p_against(found)
    assert (Criterion(least, least + width).p_for(found) <= LEVEL) is (least < low and high < least + width)
    assert (below <= LEVEL, above <= LEVEL) == (high < least, low > least + width)


@given(st.lists(st.integers(-3, 3), min_size=5, max_size=9))
def test_whole_numbers_are_judged_by_a_sign_test(values: list[int]) -> None:
    found = median_evidence([(value, value) for value in values], 0.0)
    above, below, n = sum(value > 0 for value in values), sum(value < 0 for value in values), len(values)

    def chance(successes: int) -> float:
        return sum(comb(n, k) for k in range(successes, n + 1)) / 2**n

    assert ABOVE_0.p_for(found) == pytest.approx(chance(above))
    assert ABOVE_0.p_against(found) == pytest.approx((chance(below),))  # ties are neither


def test_a_censored_run_is_a_bound_on_one_side() -> None:
    found = median_evidence([(2.0, math.inf)] * 5, 0.0)
    assert found.interval == (2.0, math.inf)
    assert (Criterion(2.0).p_for(found), Criterion(3.0).p_for(found)) == (pytest.approx(1 / 32), pytest.approx(1.0))
    assert Criterion(3.0).p_against(found) == pytest.approx((1.0,))
    assert (seeds_for_sign_test(0.0), seeds_for_sign_test(0.25)) == (5, 7)  # overlapping splits agree more often
