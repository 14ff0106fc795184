"""When a number meets a criterion, by independently computed p-values, and how comparisons form a verdict."""

import math
from math import comb

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from reports.claims.criterion import Criterion, Evidence, derived, evidence, exact, median_evidence, seeds_for_sign_test
from reports.claims.hypothesis import LEVEL, Assertion, Hypothesis, State, decide
from reports.evidence.inference import confidence, estimate, quantile, resampled
from reports.evidence.statistics import Component

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
def test_an_exact_value_meets_it_or_not(criterion, value, meets):
    effect = exact(value)
    assert criterion.p_for(effect) == (0.0 if meets else 1.0)
    assert (min(criterion.p_against(effect)) == 0.0) is not meets


@given(VALUES, st.floats(-5, 5), st.floats(0, 0.5))
def test_p_values_are_those_of_the_corrected_t_test(values, least, ratio):
    effect = evidence(resampled(values, ratio))
    assume(effect.error is not None and effect.error > 1e-4)
    t = (effect.value - least) / effect.error  # type: ignore[operator]
    assert Criterion(least).p_for(effect) == pytest.approx(stats.t.sf(t, len(values) - 1), abs=1e-9)
    (against,) = Criterion(least).p_against(effect)
    assert against == pytest.approx(stats.t.cdf(t, len(values) - 1), abs=1e-9)


@given(VALUES, st.floats(-5, 5), st.floats(0, 10))
def test_the_interval_and_the_p_values_agree(values, least, width):
    """Both ends of an interval are the bounds of two one-sided tests."""
    effect = evidence(resampled(values, 0.25))
    assume(effect.interval is not None and effect.interval[1] - effect.interval[0] > 1e-6)
    low, high = effect.interval  # type: ignore[misc]
    assume(min(abs(end - bound) for end in (low, high) for bound in (least, least + width)) > 1e-9)
    below, above = Criterion(least, least + width).p_against(effect)
    assert (Criterion(least, least + width).p_for(effect) <= LEVEL) is (least < low and high < least + width)
    assert (below <= LEVEL, above <= LEVEL) == (high < least, low > least + width)


@given(st.lists(st.integers(-3, 3), min_size=5, max_size=9))
def test_whole_numbers_are_judged_by_a_sign_test(values):
    effect = median_evidence([(value, value) for value in values], 0.0)
    above, below, n = sum(value > 0 for value in values), sum(value < 0 for value in values), len(values)

    def chance(successes: int) -> float:
        return sum(comb(n, k) for k in range(successes, n + 1)) / 2**n

    assert ABOVE_0.p_for(effect) == pytest.approx(chance(above))
    assert ABOVE_0.p_against(effect) == pytest.approx((chance(below),))  # ties are neither


def test_a_censored_run_is_a_bound_on_one_side():
    effect = median_evidence([(2.0, math.inf)] * 5, 0.0)
    assert effect.interval == (2.0, math.inf)
    assert (Criterion(2.0).p_for(effect), Criterion(3.0).p_for(effect)) == (pytest.approx(1 / 32), pytest.approx(1.0))
    assert Criterion(3.0).p_against(effect) == pytest.approx((1.0,))
    assert (seeds_for_sign_test(0.0), seeds_for_sign_test(0.25)) == (5, 7)  # overlapping splits agree more often


def test_an_interval_stays_within_what_a_score_can_be():
    near = [resampled([99.0, 99.5, 98.0], 0.25), resampled([0.5, 1.0, 0.2], 0.25)]
    assert [confidence([one], [(0, 100)])[end] for one, end in zip(near, (1, 0), strict=True)] == [100, 0]  # type: ignore[index]
    both = confidence(near, [(0, 100), (0, 100)])
    assert both is not None
    assert 0 < both[0] < both[1] < 100
    assert confidence([resampled([99.0, 98.0], 0.25)], [(0, 100)]) is None  # below three seeds
    (high,) = near[:1]
    assert confidence([high], [(-math.inf, math.inf)]) == high.interval  # one level for scores and verdicts


CHANCES = st.lists(st.sampled_from([0.001, 0.02, 0.2, 0.8, 0.98, 0.999]), min_size=1, max_size=6)


def comparison(effect: Evidence | None, place: object = "") -> Assertion:
    return Assertion(str(place), (), "", Criterion(0.0, strict=True), effect)


def noisy(p: float, place: object = "") -> Assertion:
    """A comparison with this p-value of evidence for it, and 1 − p of evidence against it."""
    return comparison(evidence(estimate(quantile(math.inf, p), [Component(1.0)], 5)), place)


def all_of(*comparisons: Assertion) -> State:
    return decide([Hypothesis((one,)) for one in comparisons]).state


def one_of(*comparisons: Assertion) -> State:
    return decide([Hypothesis(comparisons)]).state


@given(CHANCES)
def test_a_claim_of_several_is_supported_by_each_and_contradicted_after_holm(chances):
    state = all_of(*(noisy(p, place) for place, p in enumerate(chances)))
    assert (state is State.YES) is all(p <= LEVEL for p in chances)
    assert (state is State.NO) is any(1 - p <= LEVEL / len(chances) + 1e-12 for p in chances)


@given(CHANCES)
def test_if_one_is_enough_the_two_rules_change_places(chances):
    state = one_of(*(noisy(p) for p in chances))
    assert (state is State.YES) is any(p <= LEVEL / len(chances) + 1e-12 for p in chances)
    assert (state is State.NO) is all(1 - p <= LEVEL for p in chances)


def test_numbers_without_noise_decide_and_are_not_counted():
    for many in (1, 20):
        right = [comparison(exact(1.0), place) for place in range(many)]
        assert all_of(*right) is State.YES
        assert all_of(*right, noisy(0.97)) is State.NO
        assert all_of(*right, comparison(exact(-1.0))) is State.NO
    assert one_of(comparison(derived(-1.0, 0)), noisy(0.04)) is State.YES


def test_missing_and_untestable_comparisons_keep_a_claim_open():
    closed = comparison(evidence(exact(-5.0), reasons=(("RTE", "too weak"),)))
    missing = comparison(None)
    assert all_of(closed) is all_of(closed, missing) is State.NOT_JUDGED
    assert all_of(missing) is all_of() is State.MISSING
    for lacking in (closed, missing):
        assert all_of(noisy(0.001), lacking) is State.UNDECIDED  # never supported
        assert all_of(noisy(0.999), lacking) is State.NO  # still contradicted
        assert one_of(noisy(0.001), lacking) is State.YES  # one is enough
        assert one_of(noisy(0.999), lacking) is State.UNDECIDED  # the other may be that one


def test_both_sides_of_a_margin_count():
    """Beyond ± 1 on either side: two ways to fail."""

    def similar(value: float) -> State:
        effect = evidence(estimate(value, [Component(0.25)], 5))
        return all_of(Assertion("", (), "", Criterion(-1.0, 1.0), effect))

    assert [similar(value) for value in (0.0, 0.5)] == [State.YES] * 2
    assert [similar(value) for value in (0.8, 1.3)] == [State.UNDECIDED] * 2
    assert [similar(value) for value in (1.6, -1.6)] == [State.NO] * 2
    assert similar(1 + 0.25 * quantile(math.inf, 0.04)) is State.UNDECIDED  # 0.04 > 0.05 / 2
