"""How comparisons make a verdict: intersection-union, Holm, their mirror image, and what is not judged."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.claims.asked import Asked, derivation, unjudged
from reports.claims.cases import Case
from reports.claims.decide import LEVEL, Part, State, _rejected, _together
from reports.evidence.inference import estimate, quantile
from reports.evidence.statistics import Component, Estimate, exact

STATES = st.lists(st.sampled_from([0.001, 0.02, 0.2, 0.8, 0.98, 0.999]), min_size=1, max_size=6)


def case(found: Estimate | None, name: str = "") -> Case:
    return Case("", (), name, Asked(0.0, strict=True), found)


def noisy(p: float, name: str = "") -> Case:
    """A comparison whose p-value of evidence for it is that one, so 1 − p of evidence against it."""
    return case(estimate(quantile(math.inf, p), [Component(1.0)], 5), name)


def state(parts: Sequence[Part]) -> State:
    return _together(parts, bool(_rejected(parts)))


def each(*cases: Case) -> list[Part]:
    return [Part((case,)) for case in cases]


@given(STATES)
def test_all_hold_where_each_does_and_one_fails_after_holm(chances: list[float]) -> None:
    """A claim of m comparisons: supported at 5 % each, contradicted at 5 % / m."""
    found = state(each(*(noisy(p, str(place)) for place, p in enumerate(chances))))
    holds = all(p <= LEVEL for p in chances)
    fails = any(1 - p <= LEVEL / len(chances) + 1e-12 for p in chances)
    assert (found is State.YES, found is State.NO) == (holds, fails)


@given(STATES)
def test_where_one_is_enough_the_two_change_places(chances: list[float]) -> None:
    found = state([Part(tuple(noisy(p) for p in chances))])
    holds = any(p <= LEVEL / len(chances) + 1e-12 for p in chances)
    fails = all(1 - p <= LEVEL for p in chances)
    assert (found is State.YES, found is State.NO) == (holds, fails)


def test_one_of_two_is_no_contradiction_that_one_alone_is() -> None:
    assert state(each(noisy(0.97))) is State.NO
    assert state(each(noisy(0.97), noisy(0.5))) is State.UNDECIDED  # 0.03 > 0.05 / 2
    assert state(each(noisy(0.98), noisy(0.5))) is State.NO


def test_numbers_without_noise_decide_and_are_not_counted() -> None:
    for many in (1, 20):
        right = [case(exact(1.0), str(place)) for place in range(many)]
        assert state(each(*right)) is State.YES
        assert state(each(*right, noisy(0.97))) is State.NO
        assert state(each(*right, case(exact(-1.0)))) is State.NO
    assert state([Part((case(exact(-1.0)), noisy(0.04)))]) is State.YES


def test_what_lacks_or_is_not_judged_keeps_a_claim_open() -> None:
    closed = case(unjudged(exact(-5.0), [("RTE", "too weak")]))
    missing = case(None)
    assert state(each(closed)) is state(each(closed, missing)) is State.NOT_JUDGED
    assert state(each(missing)) is state([]) is State.MISSING
    for lacking in (closed, missing):
        assert state(each(noisy(0.001), lacking)) is State.UNDECIDED  # never supported
        assert state(each(noisy(0.999), lacking)) is State.NO  # still contradicted
        assert state([Part((noisy(0.001), lacking))]) is State.YES  # one is enough
        assert state([Part((noisy(0.999), lacking))]) is State.UNDECIDED  # the other may be that one


def test_both_sides_of_a_margin_count() -> None:
    """Outside of ± 1 on either side: two ways to fail."""
    asked = Asked(-1.0, 1.0)

    def similar(value: float, error: float = 0.25) -> State:
        return state([Part((Case("", (), "", asked, estimate(value, [Component(error)], 5)),))])

    assert [similar(value) for value in (0.0, 0.5, 0.8, 1.3, 1.6)] == [
        *(State.YES, State.YES, State.UNDECIDED, State.UNDECIDED, State.NO)
    ]
    assert similar(1 + 0.25 * quantile(math.inf, 0.04)) is State.UNDECIDED  # 0.04 > 0.05 / 2
    assert similar(-1.6) is State.NO
    assert similar(0.0, 3.0) is State.UNDECIDED


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_a_derivation_is_exact(value: float) -> None:
    assert state(each(case(derivation(value, 0)))) is (State.YES if value > 0 else State.NO)
