"""A client's training and test part."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions import PartitionError, split_train_test

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
        message = f"{labels.size} examples .* {labels.size - n_test} for training and {n_test} for testing"
        with pytest.raises(PartitionError, match=message):
            split_train_test(labels, share, np.random.default_rng(seed), stratify)
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


def test_paper_split_of_a_client():
    """A Table I client of 1260 MRPC examples, 63 of label 0: 252 for testing, 12.6 and 239.4 by label."""
    labels = np.repeat([0, 1], [63, 1197])
    _, test = split_train_test(labels, 0.2, np.random.default_rng(0), stratify=True)
    assert np.bincount(labels[test]).tolist() == [13, 239]


@pytest.mark.parametrize(
    ("labels", "share", "stratify", "message"),
    [
        (np.array([0, 1]), 0.0, True, "test_share must be between 0 and 1"),
        (np.array([0, 1]), 1.0, True, "test_share must be between 0 and 1"),
        (np.array([0, 1]), float("nan"), True, "test_share must be a finite number"),
        (np.array([0.5, 1.5]), 0.5, True, "stratified split needs integer labels"),
        (np.array([0.5, np.nan]), 0.5, False, "scores must be finite"),
        (np.array([[0, 1]]), 0.5, False, "must be a vector"),
        (np.array([], int), 0.5, True, "0 examples .* 0 for training and 0 for testing"),
    ],
)
def test_bad_arguments(labels, share, stratify, message):
    with pytest.raises(PartitionError, match=message):
        split_train_test(labels, share, np.random.default_rng(0), stratify)
