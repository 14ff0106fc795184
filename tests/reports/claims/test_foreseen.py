"""How many seeds would decide: by what more seeds leave of an error, and never more than that says."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.claims.asked import Asked, counted, derivation, unjudged
from reports.claims.cases import Case
from reports.claims.decide import Part, State, decision
from reports.claims.foreseen import STEPS, Foreseen, foreseen
from reports.evidence.inference import average_of, resampled, with_sampling
from reports.evidence.statistics import Estimate, mean, sample_sd

ABOVE = Asked(0.0, strict=True)


def part(*found: Estimate | None, task: str = "mrpc") -> Part:
    return Part(tuple(Case("", (task,), str(place), ABOVE, each) for place, each in enumerate(found)))


def spread(centre: float, sd: float, n: int) -> list[float]:
    """So many values with that mean and that standard deviation."""
    values = [float(place) for place in range(n)]
    return [centre + sd * (value - mean(values)) / (sample_sd(values) or 1.0) for value in values]


def seeds(*parts: Part) -> tuple[State, int, bool] | None:
    found = foreseen(list(parts))
    return None if found is None else (found.state, found.seeds, found.if_rest)


NONE = (State.UNDECIDED, STEPS[-1], False)


@given(st.floats(-8, 8), st.floats(0.2, 6), st.integers(3, 6), st.sampled_from([0.0, 0.04, 0.25]))
def test_it_is_what_so_many_seeds_with_that_spread_decide(centre: float, sd: float, n: int, ratio: float) -> None:
    found, now = seeds(part(resampled(spread(centre, sd, n), ratio))), part(resampled(spread(centre, sd, n), ratio))
    by_steps = [decision([part(resampled(spread(centre, sd, more), ratio))]).state for more in STEPS]
    if decision([now]).state is not State.UNDECIDED:
        assert found is None
    elif set(by_steps) == {State.UNDECIDED}:
        assert found == NONE
    else:
        first = next(place for place, state in enumerate(by_steps) if state is not State.UNDECIDED)
        assert found == (by_steps[first], STEPS[first], False)


def test_overlapping_splits_leave_an_error_that_no_number_of_seeds_shrinks() -> None:
    """s = 4, splits of 20 %: the error never falls below √¼ · 4 = 2, so what lies 3 from the bound stays open.

    With 15 seeds t(0.95; 14) = 1.7613 and √(1/15 + 1/4) · 4 = 2.2509: 3.96 is decided.
    """
    assert seeds(part(resampled(spread(3.0, 4.0, 5), 0.25))) == NONE
    assert seeds(part(resampled(spread(4.0, 4.0, 5), 0.25))) == (State.YES, 15, False)
    assert seeds(part(resampled(spread(3.0, 4.0, 5), 0.0))) == (State.YES, 7, False)


def test_one_test_set_for_all_seeds_keeps_its_error() -> None:
    seeds_alone = resampled(spread(2.0, 2.0, 3), 0.0)
    assert seeds(part(seeds_alone)) == (State.YES, 5, False)
    assert seeds(part(with_sampling(seeds_alone, 1.5))) == NONE


def test_an_average_is_foreseen_by_all_of_its_tasks() -> None:
    tasks = [resampled(spread(1.0, 2.0, 3), 0.0), resampled(spread(3.0, 4.0, 3), 0.0), derivation(2.0, 3)]
    now = average_of(tasks)
    more = [part.with_seeds(7, 3) for part in now.components or ()]
    assert math.hypot(*(part.error for part in more)) == pytest.approx((now.error or 0.0) * math.sqrt(3 / 7))
    assert min(part.freedom for part in more) == 6
    assert seeds(part(now)) == (State.YES, 5, False)


def test_what_blocks_a_claim_of_all_is_one_comparison() -> None:
    good, bad = resampled(spread(3.0, 1.5, 3), 0.25), resampled(spread(-1.0, 4.0, 5), 0.25)
    assert seeds(part(good), part(resampled(spread(1.0, 1.0, 3), 0.25))) == (State.YES, 15, False)
    assert seeds(part(good), part(bad)) == seeds(part(bad)) == NONE
    assert seeds(part(good), part(resampled(spread(-3.0, 2.0, 3), 0.25))) == (State.NO, 10, False)


def test_holms_correction_counts_the_others() -> None:
    against = part(resampled(spread(-3.0, 2.0, 3), 0.25))
    others = [part(resampled(spread(0.1, 4.0, 3), 0.25)) for _ in range(20)]
    alone, among = foreseen([against]), foreseen([against, *others])
    assert alone is not None
    assert among is not None
    assert alone.seeds < among.seeds


def test_what_is_not_known_may_agree_and_is_said() -> None:
    """Not run, run once, or run twice: how such a number varies nobody knows."""
    good = part(resampled(spread(1.0, 1.0, 3), 0.25))
    one, two = resampled([-5.0], 0.25), resampled(spread(-1.0, 1.0, 2), 0.25)
    for unknown in (None, one, two, unjudged(derivation(1.0, 3), [("MRPC", "not tuned")])):
        assert seeds(good, part(unknown)) == (State.YES, 15, True)
    settled = unjudged(None, [("RTE", "too weak")], is_settled=True)
    assert seeds(good, part(settled, task="rte")) == NONE  # half of what the claim speaks of cannot be judged


def test_where_one_is_enough_what_is_not_known_stays_so() -> None:
    assert seeds(part(resampled(spread(-2.0, 2.0, 3), 0.25), None)) == NONE
    assert seeds(part(resampled(spread(2.0, 2.0, 3), 0.25), None)) == (State.YES, 15, False)


def test_whole_rounds_fall_as_they_did() -> None:
    def rounds(values: Sequence[float]) -> Part:
        return part(counted([(value, value) for value in values], 0.25))

    assert seeds(rounds([2, 3, 1])) == (State.YES, 7, False)
    assert seeds(rounds([2, 3, -1])) == NONE


def test_what_it_is_near_to_has_to_lead_then_too() -> None:
    near = resampled(spread(0.0, 0.5, 3), 0.25)
    for lead, wanted in ((8.0, (State.YES, 5, False)), (1.0, NONE)):
        ahead = Case("", (), "lead", Asked(2.0, strict=True), resampled(spread(lead, 3.0, 3), 0.25))
        assert seeds(Part((Case("", (), "near", Asked(-2.0, 2.0), near, (ahead,)),))) == wanted


def test_nothing_is_foreseen_of_what_is_decided_or_was_never_run() -> None:
    assert foreseen([part(resampled(spread(9.0, 0.5, 5), 0.25))]) is None
    assert foreseen([part(None)]) is foreseen([]) is None
    assert foreseen([part(derivation(1.0, 0))]) is None


def test_words() -> None:
    assert Foreseen(State.YES, 7).text == "at these effects 7 seeds would decide for it"
    assert Foreseen(State.NO, 10, True).text.endswith("10 seeds would decide against it, if what is not known agrees")
    assert Foreseen(State.UNDECIDED).text == "by what was run, not even 100 seeds would decide it"
    shown = [Foreseen(State.YES, 7).short, Foreseen(State.YES, 7, True).short, Foreseen(State.UNDECIDED).short]
    assert shown == ["7 for", "7 for ?", "none"]
