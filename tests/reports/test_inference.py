"""Rules of inference: against published quantiles, against each other, and on cases that must stay open."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.evidence.inference import (
    LEVEL,
    chance,
    estimate,
    holm,
    quantile,
    resampled,
    seeds_needed,
    similar,
    smallest_effect,
    smallest_margin,
    with_sampling,
)
from reports.evidence.statistics import Component, Estimate

ESTIMATES = st.builds(
    lambda value, error, n, shared: estimate(value, [Component(error, n - 1), Component(shared)], n),
    st.floats(-20, 20),
    st.floats(0.01, 10),
    st.integers(2, 10),
    st.sampled_from([0.0, 0.0, 0.3, 3.0, 10.0]),
)


def test_quantiles_are_those_of_printed_tables():
    assert quantile(1) == pytest.approx(6.3138, abs=1e-4)
    assert quantile(4) == pytest.approx(2.1318, abs=1e-4)
    assert quantile(math.inf) == pytest.approx(1.6449, abs=1e-4)


def test_overlapping_splits_widen_the_t_interval():
    # Mean 2, sd 1: √(1/3 + 1/4) = 0.7638, t(0.95; 2) = 2.9200.
    effect = resampled([1.0, 2.0, 3.0], 0.25)
    assert effect.error == pytest.approx(math.sqrt(1 / 3 + 1 / 4))
    assert effect.interval == (pytest.approx(2 - 2.92 * 0.7638, abs=1e-3), pytest.approx(2 + 2.92 * 0.7638, abs=1e-3))
    assert (effect.value, effect.n, effect.components[0].freedom) == (2.0, 3, 2)


def test_seeds_that_agree_decide_no_more_than_their_test_sets():
    same = [1.0, 1.0, 1.0]
    assert resampled(same, 0.25).interval is None  # an unknown error decides nothing
    floored = resampled(same, 0.25, floor=2.0)
    share = (1 / 3 + 1 / 4) / (1 + 1 / 4)  # three sets of 20 % that overlap
    assert floored.components == (Component(pytest.approx(2 * math.sqrt(share)), math.inf, 0.25),)
    assert resampled(same, 0.0, floor=2.0).error == 2.0  # one set for all seeds: more seeds do not shrink its error
    assert resampled(same, 0.25, floor=0.0).interval == (1.0, 1.0)  # exact numbers
    nearly = [0.1 + 0.2, 0.3, 0.3]  # equal but for a last bit
    assert resampled(nearly, 0.25).interval is None
    # Seeds that differ have their spread, and are not asked for another error.
    assert (
        resampled([1.0, 2.0], 0.25, floor=None) == resampled([1.0, 2.0], 0.25, floor=9.0) == resampled([1.0, 2.0], 0.25)
    )


def test_a_shared_test_set_adds_its_error():
    effect = with_sampling(estimate(1.0, [Component(0.3, 2)], 3), 0.4)
    assert effect.error == pytest.approx(0.5)
    assert effect.components == (Component(0.3, 2), Component(0.4, math.inf))
    half = math.hypot(0.3 * quantile(2), 0.4 * quantile(math.inf))  # Howe 1974
    assert effect.interval == (pytest.approx(1 - half), pytest.approx(1 + half))
    assert chance(half, effect) == pytest.approx(LEVEL)
    assert chance(-half, effect) == pytest.approx(1 - LEVEL)
    exactly = estimate(1.0, [Component(0.0, 2)], 3)
    assert with_sampling(exactly, 0.4).interval[0] == pytest.approx(1 - 0.4 * quantile(math.inf))
    assert with_sampling(effect, None).interval is None
    assert with_sampling(Estimate(1.0, None, 1), 0.4).interval is None


def test_holm_divides_the_level_by_the_hypotheses_that_remain():
    """0.05 / 4, 0.05 / 3, 0.05 / 2, 0.05: the third smallest misses its level, so the largest is not asked."""
    assert holm([0.026, 0.012, 0.04, 0.016]) == [False, True, False, True]


@given(ESTIMATES, st.floats(0, 5))
def test_similar_is_two_one_sided_tests(effect, margin):
    above, below = (chance(side * effect.value + margin, effect) for side in (1, -1))
    assert (similar(effect, margin) is True) == (max(above, below) < LEVEL)
    beyond = min(chance(side * effect.value - margin, effect) for side in (1, -1))
    assert (similar(effect, margin) is False) == (beyond < LEVEL / 2)


def test_the_smallest_effect_and_margin_have_their_power():
    """With a known error: an effect of z(0.95) + z(0.8), a margin of z(0.95) + z(0.9) errors."""
    effect = estimate(0.0, [Component(2.0)], 9)
    assert smallest_effect(effect) == pytest.approx(2 * (1.6449 + 0.8416), abs=1e-3)
    assert smallest_margin(effect) == pytest.approx(2 * (1.6449 + 1.2816), abs=1e-3)
    assert smallest_effect(Estimate(1.0)) is smallest_margin(Estimate(1.0)) is None
    assert similar(replace(effect, value=0.0), smallest_margin(effect) or 0.0) is True


def test_the_number_of_seeds_by_hand():
    """s = 4, splits of 20 %: with 15 seeds t(0.95; 14) = 1.7613 times √(1/15 + 1/4) · 4 = 2.2509 reaches 3.965.

    The error never falls below √¼ · 4 = 2, so an effect of 3 stays open; without overlap 1.9432 · 4/√7 reaches 2.938.
    """
    redrawn, central = (resampled([0.0, 4.0, 8.0], ratio) for ratio in (0.25, 0.0))
    assert [seeds_needed(redrawn, effect) for effect in (3.97, -3.97, 3.96, 3.0)] == [15, 15, 16, None]
    assert [seeds_needed(central, effect) for effect in (2.94, 2.93)] == [7, 8]
    assert seeds_needed(resampled([0.0, 4.0], 0.0), 9.0) is seeds_needed(Estimate(1.0), 9.0) is None
