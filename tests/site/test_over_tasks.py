"""Profiles, probabilities of improvement and the front, on numbers that are easy to count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.measures import metric
from reports.site.points import Point, with_front
from reports.site.profiles import improvement, profile_shares

RUNS = {
    "A": {"x": np.array([80.0, 82.0]), "y": np.array([60.0, 60.0])},
    "B": {"x": np.array([81.0, 79.0]), "y": np.array([60.0, 50.0])},
}


def test_improvement_counts_pairs_of_seeds_and_halves_ties() -> None:
    found = improvement("A", "B", RUNS)
    assert found.probability == pytest.approx((3 / 4 + (0.5 + 1 + 0.5 + 1) / 4) / 2)
    back = improvement("B", "A", RUNS)
    assert found.probability + back.probability == pytest.approx(1)
    assert found.interval is not None
    assert found.interval[0] < found.probability < found.interval[1]


def test_profiles_are_shares_within_a_distance_of_the_best_mean() -> None:
    _, shares = profile_shares(RUNS)  # best means: 81 on x, 60 on y
    assert (shares["A"][0], shares["B"][0]) == (pytest.approx((1 / 2 + 1) / 2), pytest.approx((1 / 2 + 1 / 2) / 2))
    assert shares["B"][-1] == 1.0
    assert list(shares["B"]) == sorted(shares["B"])


def point(value: float, size: float, **fields: object) -> Point:
    of = "P", "Table 1", "lite", "T", "Acc", metric("accuracy"), "M"
    own = Point(*of, value, None, 1, size, size, size)
    return replace(own, **{"method": f"{value} {size} {fields}", **fields})  # type: ignore[arg-type]


def test_the_front_is_what_nothing_of_its_kind_beats() -> None:
    ours = [point(80, 100), point(70, 10), point(75, 200), point(60, 10)]
    points = [*ours, point(99, 1, is_reported=True, scale="paper")]
    assert [each.is_best for each in with_front(points)] == [True, True, False, False, True]


def test_lower_is_better_where_the_metric_says_so() -> None:
    points = [point(20, 100, metric=metric("perplexity")), point(10, 100, metric=metric("perplexity"))]
    assert [each.is_best for each in with_front(points)] == [False, True]
