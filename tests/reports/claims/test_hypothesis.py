"""How comparisons make a verdict: intersection-union, Holm, their mirror image, and what is not judged."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.claims.criterion import Criterion, Evidence, derived, evidence
from reports.claims.hypothesis import LEVEL, Assertion, Hypothesis, State, decide
from reports.evidence.inference import estimate, quantile
from reports.evidence.statistics import Component, exact

CHANCES = st.lists(st.sampled_from([0.001, 0.02, 0.2, 0.8, 0.98, 0.999]), min_size=1, max_size=6)


def comparison(found: Evidence | None, place: object = "") -> Assertion:
    return Assertion(str(place), (), "", Criterion(0.0, strict=True), found)


def noisy(p: float, place: object = "") -> Assertion:
    """A comparison with this p-value of evidence for it, and 1 − p of evidence against it."""
    return comparison(evidence(estimate(quantile(math.inf, p), [Component(1.0)], 5)), place)


def all_of(*comparisons: Assertion) -> State:
    return decide([Hypothesis((one,)) for one in comparisons]).state


def one_of(*comparisons: Assertion) -> State:
    return decide([Hypothesis(comparisons)]).state


@given(CHANCES)
def test_a_claim_of_several_is_supported_by_each_and_contradicted_after_holm(chances: list[float]) -> None:
    state = all_of(*(noisy(p, place) for place, p in enumerate(chances)))
    assert (state is State.YES) is all(p <= LEVEL for p in chances)
    assert (state is State.NO) is any(1 - p <= LEVEL / len(chances) + 1e-12 for p in chances)


@given(CHANCES)
def test_if_one_is_enough_the_two_rules_change_places(chances: list[float]) -> None:
    state = one_of(*(noisy(p) for p in chances))
    assert (state is State.YES) is any(p <= LEVEL / len(chances) + 1e-12 for p in chances)
    assert (state is State.NO) is all(1 - p <= LEVEL for p in chances)


def test_numbers_without_noise_decide_and_are_not_counted() -> None:
    for many in (1, 20):
        right = [comparison(evidence(exact(1.0)), place) for place in range(many)]
        assert all_of(*right) is State.YES
        assert all_of(*right, noisy(0.97)) is State.NO
        assert all_of(*right, comparison(evidence(exact(-1.0)))) is State.NO
    assert one_of(comparison(derived(-1.0, 0)), noisy(0.04)) is State.YES


def test_missing_and_untestable_comparisons_keep_a_claim_open() -> None:
    closed = comparison(evidence(exact(-5.0), reasons=(("RTE", "too weak"),)))
    missing = comparison(None)
    assert all_of(closed) is all_of(closed, missing) is State.NOT_JUDGED
    assert all_of(missing) is all_of() is State.MISSING
    for lacking in (closed, missing):
        assert all_of(noisy(0.001), lacking) is State.UNDECIDED  # never supported
        assert all_of(noisy(0.999), lacking) is State.NO  # still contradicted
        assert one_of(noisy(0.001), lacking) is State.YES  # one is enough
        assert one_of(noisy(0.999), lacking) is State.UNDECIDED  # the other may be that one


def test_both_sides_of_a_margin_count() -> None:
    """Outside of ± 1 on either side: two ways to fail."""

    def similar(value: float) -> State:
        found = evidence(estimate(value, [Component(0.25)], 5))
        return all_of(Assertion("", (), "", Criterion(-1.0, 1.0), found))

    assert [similar(value) for value in (0.0, 0.5)] == [State.YES] * 2
    assert [similar(value) for value in (0.8, 1.3)] == [State.UNDECIDED] * 2
    assert [similar(value) for value in (1.6, -1.6)] == [State.NO] * 2
    assert similar(1 + 0.25 * quantile(math.inf, 0.04)) is State.UNDECIDED  # 0.04 > 0.05 / 2


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_a_derived_number_is_exact(value: float) -> None:
    found = decide([Hypothesis((comparison(derived(value, 0)),))])
    assert (found.state, found.is_derived) == (State.YES if value > 0 else State.NO, True)
