"""Profiles, probabilities of improvement, and labels that keep apart, on numbers that are easy to count."""

import numpy as np
import pytest

from reports.front.picture import spread_out
from reports.site.profiles import improvement, profile_shares

RUNS = {
    "A": {"x": np.array([80.0, 82.0]), "y": np.array([60.0, 60.0])},
    "B": {"x": np.array([81.0, 79.0]), "y": np.array([60.0, 50.0])},
}


def test_improvement_counts_pairs_of_seeds_and_halves_ties():
    probability, interval = improvement("A", "B", RUNS)
    assert probability == pytest.approx((3 / 4 + (0.5 + 1 + 0.5 + 1) / 4) / 2)
    assert probability + improvement("B", "A", RUNS)[0] == pytest.approx(1)
    assert interval is not None
    assert interval[0] < probability < interval[1]


def test_profiles_are_shares_within_a_distance_of_the_best_mean():
    _, shares = profile_shares(RUNS)  # best means: 81 on x, 60 on y
    assert (shares["A"][0], shares["B"][0]) == (pytest.approx((1 / 2 + 1) / 2), pytest.approx((1 / 2 + 1 / 2) / 2))
    assert shares["B"][-1] == 1.0
    assert list(shares["B"]) == sorted(shares["B"])


def test_labels_keep_their_order_and_a_distance():
    assert spread_out([5.0, 0.0, 5.2], 1.0) == pytest.approx([4.6, 0.0, 5.6])
    assert spread_out([0.0, 0.0, 0.0], 2.0) == pytest.approx([-2.0, 0.0, 2.0])
