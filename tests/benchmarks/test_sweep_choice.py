"""What a sweep chooses: the best score on validation data, and of equals the definition's own or the smaller one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.samplers import GridSampler

from benchmarks.measures import METRICS
from benchmarks.sweeps.results import choose, importances
from benchmarks.sweeps.study import in_order

LAYER, RATE = "options.critical_layer", "training.learning_rate"


def test_grids_are_tried_in_the_order_of_optunas_grid_sampler() -> None:
    space = {RATE: (1e-3, 2e-3, 4e-3), LAYER: (0, 6, 12), "a": ("x", "y")}
    expected = GridSampler(space, seed=0)
    names = expected._param_names
    assert [tuple(point[name] for name in names) for point in in_order(space)] == expected._all_grids


def made(number: int, score: float | None, sent: int) -> dict[str, Any]:
    return {"number": number, "settings": {"x": number}, "mean": score, "uplink_bytes": sent}


@given(st.lists(st.tuples(st.sampled_from([None, 0.5, 0.7]), st.integers(0, 3)), max_size=8), st.integers(0, 8))
def test_a_tie_is_won_by_the_definitions_own_value_or_else_by_the_fewest_bytes(
    trials: list[tuple[float | None, int]], default: int
) -> None:
    best, equals, why = choose([made(n, *one) for n, one in enumerate(trials)], METRICS["f1"], {"x": default})
    scores = [score for score, _ in trials if score is not None]
    if not scores:
        assert (best, equals) == (None, [])
        return
    ties = [n for n, (score, _) in enumerate(trials) if score == max(scores)]
    assert [one["number"] for one in equals] == ties
    exchanging = [n for n in ties if trials[n][1]]
    if len(ties) == 1:
        expected, reason = ties[0], ""
    elif default in ties:
        expected, reason = default, "own setting"
    elif exchanging:
        expected, reason = min(exchanging, key=lambda n: trials[n][1]), "fewest uplink bytes"
    else:
        expected, reason = ties[0], "none exchanges"
    assert best is not None
    assert best["number"] == expected
    assert reason in why
    assert bool(why) == (len(ties) > 1)


def test_pruned_trials_are_not_chosen_and_none_beats_the_front_in_score_and_bytes() -> None:
    points = ((0.5, 10), (0.7, 30), (0.7, 20), (0.6, 20), (None, 1), (0.4, 10), (0.5, 10))
    tried = [made(n, *point) for n, point in enumerate(points)]
    pruned = made(7, 0.9, 0) | {"given_up_after": 1}
    assert [one["number"] for one in front([*tried, pruned], METRICS["f1"])] == [0, 2, 6]
    assert choose([pruned], METRICS["f1"], {}) == (None, [], "")


def test_importances_say_what_a_score_depends_on() -> None:
    points = [({"c": c, "rate": rate}, c + rate) for c in (0, 4, 8, 12) for rate in (1e-3, 2e-3, 4e-3)]
    found = importances(points)
    assert found["c"] > 0.95
    assert sum(found.values()) == pytest.approx(1)
    assert importances([({"c": c, "rate": 1}, 0.5) for c in range(9)]) == {}
