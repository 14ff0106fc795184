"""Contiguous parts in order of score."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions import ScoreSummary, SortedByScore


@given(
    scores=st.lists(st.integers(0, 10), min_size=1, max_size=60).map(lambda tenths: np.array(tenths) / 10),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_parts_follow_score_then_position(check_partition, scores, data):
    n_clients = data.draw(st.integers(1, scores.size))
    partition = SortedByScore()(scores, n_clients, np.random.default_rng(0))
    check_partition(partition, scores, n_clients)
    assert partition.report.unused == 0
    assert max(partition.report.sizes) - min(partition.report.sizes) <= 1
    ordered = [pair for part in partition.indices for pair in sorted((scores[i], i) for i in part)]
    assert ordered == sorted((score, i) for i, score in enumerate(scores))


def test_by_hand():
    partition = SortedByScore()(np.array([5.0, 1.0, 3.0, 1.0, 0.5]), 2, np.random.default_rng(0))
    assert [part.tolist() for part in partition.indices] == [[1, 3, 4], [0, 2]]
    assert partition.report.scores == (ScoreSummary(0.5, pytest.approx(2.5 / 3), 1.0), ScoreSummary(3, 4, 5))


def test_integer_scores_are_scores():
    report = SortedByScore()(np.array([3, 1, 2, 0]), 2, np.random.default_rng(0)).report
    assert report.scores == (ScoreSummary(0.0, 0.5, 1.0), ScoreSummary(2.0, 2.5, 3.0))
    assert report.label_ids is None


@given(scores=st.lists(st.integers(0, 10), min_size=4, max_size=60).map(np.array), data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_size_takes_a_random_part_in_the_same_order(check_partition, scores, data):
    n_clients = data.draw(st.integers(1, 4))
    size = data.draw(st.integers(1, scores.size // n_clients))
    partition = SortedByScore(size)(scores, n_clients, np.random.default_rng(1))
    check_partition(partition, scores, n_clients)
    assert partition.report.sizes == (size,) * n_clients
    ordered = [pair for part in partition.indices for pair in sorted((scores[i], i) for i in part)]
    assert ordered == sorted(ordered)
    again = SortedByScore(size)(scores, n_clients, np.random.default_rng(1))
    assert all((one == other).all() for one, other in zip(partition.indices, again.indices, strict=True))
