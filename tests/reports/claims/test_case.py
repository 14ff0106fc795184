"""When an interval decides, and how statements are put together."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.claims.cases import Asked, Case, State, every
from reports.evidence.statistics import Estimate, censored, exact, over_seeds, ratio_over_seeds, t_interval

NUMBERS = st.floats(-50, 50)
STATES = st.lists(st.sampled_from(State), max_size=6)


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
    assert asked.state(exact(value)) is (State.YES if meets else State.NO)


@given(NUMBERS, NUMBERS, st.floats(-10, 10), st.floats(0, 10))
def test_an_interval_decides_only_as_a_whole(first: float, second: float, least: float, width: float) -> None:
    low, high = sorted((first, second))
    for asked in (Asked(least), Asked(least, strict=True), Asked(least, least + width)):
        state = asked.state(Estimate((low + high) / 2, (low, high), 2))
        inside = [asked.meets(value) for value in (low, high)]
        if state is State.YES:
            assert all(inside)
        elif state is State.NO:
            assert not any(inside)
            assert not asked.meets((low + high) / 2)
        else:
            assert not all(inside)


def test_no_interval_decides_nothing() -> None:
    assert Asked(0).state(Estimate(99.0, None, 1)) is State.UNDECIDED
    assert Asked(0).state(None) is State.MISSING


@given(STATES)
def test_one_that_is_asserted_mirrors_all_that_are(states: list[State]) -> None:
    mirror = {State.YES: State.NO, State.NO: State.YES}
    assert every(states, State.YES) is mirror.get(found := every(mirror.get(s, s) for s in states), found)


@given(STATES)
def test_together(states: list[State]) -> None:
    found = every(states)
    assert (found is State.NO) == (State.NO in states)
    assert (found is State.YES) == (bool(states) and set(states) == {State.YES})
    assert (found is State.MISSING) == (set(states) <= {State.MISSING})


def test_the_wider_interval_counts() -> None:
    seeds = [1.0, 2.0, 3.0]
    by_seeds = t_interval(seeds)
    assert by_seeds is not None
    assert over_seeds(seeds, [0.1] * 3).interval == pytest.approx(by_seeds)
    assert over_seeds(seeds, [3.0, 4.0, math.sqrt(25 / 2)]).interval == pytest.approx(  # quadratic mean √12.5
        (2 - 1.96 * math.sqrt(12.5), 2 + 1.96 * math.sqrt(12.5))
    )
    assert over_seeds(seeds, [None, 1.0, 1.0]).interval is None
    assert over_seeds([None, 4.0], [1.0, 1.0]) == Estimate(4.0, None, 1)
    assert over_seeds([None]).value is None


def test_ratios_are_geometric() -> None:
    found = ratio_over_seeds([2.0, 8.0])
    logs = t_interval([math.log(2), math.log(8)])
    assert logs is not None
    assert found.value == pytest.approx(4)
    assert found.interval == pytest.approx((math.exp(logs[0]), math.exp(logs[1])))
    assert ratio_over_seeds([math.inf, 2.0]).value is None  # one of them sent nothing
    assert censored(found, below=False, above=True).interval == pytest.approx((math.exp(logs[0]), math.inf))
    assert censored(found, below=True, above=True).interval == (-math.inf, math.inf)


def test_texts() -> None:
    assert Case("", (), "A − B", Asked(0), exact(-1.5)).text == "A − B −1.50"
    assert (
        Case("", (), "A − B", Asked(0), Estimate(2.0, (1.0, math.inf), 3, "why")).text == "A − B +2.00 [+1.00, ∞] (why)"
    )
    assert Case("", (), "A / B", Asked(2, unit=" ×", is_signed=False), exact(3.0)).text == "A / B 3.00 ×"
    asked = (Asked(0, strict=True), Asked(2, unit=" ×"), Asked(-1, 1), Asked(0, 0), Asked(-math.inf, 1, unit=" %"))
    assert [each.text for each in asked] == ["> 0", "≥ 2 ×", "within ± 1", "0", "≤ 1 %"]
    assert Asked(0, 2, strict=True).text == "> 0, ≤ 2"
