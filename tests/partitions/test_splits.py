"""Training and test parts, by example and by whole groups; overlap counted."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions import Overlap, PartitionError, measure_overlap, split_by_group, split_train_test

# (group, label, client); client 3 is none: nobody holds these examples
EXAMPLES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2), st.integers(0, 3)), min_size=3, max_size=120)


def held(clients: np.ndarray) -> list[np.ndarray]:
    return [np.flatnonzero(clients == client) for client in range(3)]


@given(examples=EXAMPLES, percent=st.integers(5, 95), stratify=st.booleans(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_no_group_is_on_both_sides_and_nothing_is_lost(examples, percent, stratify, seed):
    groups, labels, clients = np.array(examples).T
    parts = held(clients)

    def split():
        return split_by_group(parts, groups, labels, percent / 100, np.random.default_rng(seed), stratify)

    try:
        train, test = split()
    except PartitionError:
        return  # a side would be empty
    assert not {*groups[np.concatenate(train)]} & {*groups[np.concatenate(test)]}
    for part, rest, scored in zip(parts, train, test, strict=True):
        assert rest.size
        assert scored.size
        assert sorted([*rest, *scored]) == part.tolist()
        assert (np.diff(rest) > 0).all()
        assert (np.diff(scored) > 0).all()
    for one, other in zip([*train, *test], [*split()[0], *split()[1]], strict=True):
        assert np.array_equal(one, other)


@given(
    train=st.lists(st.tuples(st.integers(0, 6), st.integers(-1, 2)), max_size=40),
    scored=st.lists(st.tuples(st.integers(0, 9), st.integers(-1, 2)), max_size=20),
)
def test_overlap_is_what_one_counts_by_hand(train, scored):
    shared = [(group, label) for group, label in scored if any(other == group for other, _ in train)]
    votes = Counter(train)
    of_group = Counter(group for group, _ in train)
    opposite = sum(2 * votes[group, label] < of_group[group] for group, label in shared)
    arrays = [np.array(examples, dtype=np.int64).reshape(-1, 2).T for examples in (train, scored)]
    assert measure_overlap(*arrays[0], *arrays[1]) == Overlap(len(scored), len(shared), opposite)


def test_scores_have_no_opposite():
    overlap = measure_overlap(np.array([3, 3]), np.array([0.5, 4.0]), np.array([3, 4]), np.array([0.5, 0.5]))
    assert overlap == Overlap(examples=2, shared=1, opposite=None)


CLASSES = st.lists(st.integers(-1, 3), min_size=1, max_size=80).map(np.array)
SCORES = st.lists(st.floats(0, 5), min_size=1, max_size=80).map(np.array)


@given(
    case=st.one_of(
        st.tuples(CLASSES, st.just(True)),
        st.tuples(CLASSES, st.just(False)),
        st.tuples(SCORES, st.just(False)),
    ),
    percent=st.integers(1, 99),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=150, deadline=None)
def test_split_is_complete_and_within_one_of_each_share(case, percent, seed):
    labels, stratify = case
    share = percent / 100
    n_test = round(share * labels.size)
    if n_test in (0, labels.size):
        least = next(n for n in range(2, 100) if round(share * n) not in (0, n))
        message = f"client 3, test_share {share:g}: expected at least {least} examples, .* found {labels.size};"
        with pytest.raises(PartitionError, match=message):
            split_train_test(labels, share, np.random.default_rng(seed), stratify, client=3)
        return
    train, test = split_train_test(labels, share, np.random.default_rng(seed), stratify)
    assert test.size == n_test
    assert train.dtype == test.dtype == np.int64
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()
    assert sorted([*train, *test]) == list(range(labels.size))
    if stratify:
        for label in np.unique(labels):
            wanted = Fraction(percent, 100) * int((labels == label).sum())
            assert abs(int((labels[test] == label).sum()) - wanted) < 1
    again = split_train_test(labels, share, np.random.default_rng(seed), stratify)
    assert np.array_equal(again[0], train)
    assert np.array_equal(again[1], test)
