"""Random parts: of equal size, and of given sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions import Equal, PartitionError, Sizes

LABELS = st.one_of(
    st.lists(st.integers(-2, 3), min_size=1, max_size=60),
    st.lists(st.floats(-5, 5), min_size=1, max_size=60),
).map(np.array)
SEEDS = st.integers(0, 2**32 - 1)


def indices(partitioner, labels, n_clients, seed):
    return partitioner(labels, n_clients, np.random.default_rng(seed)).indices


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@given(labels=LABELS, data=st.data(), seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_equal_uses_everything_in_sizes_within_one(check_partition, labels, data, seed):
    n_clients = data.draw(st.integers(1, labels.size))
    partition = Equal()(labels, n_clients, np.random.default_rng(seed))
    check_partition(partition, labels, n_clients)
    assert max(partition.report.sizes) - min(partition.report.sizes) <= 1
    assert partition.report.unused == 0
    assert same(partition.indices, indices(Equal(), labels, n_clients, seed))


@given(labels=LABELS, sizes=st.lists(st.integers(2, 20), min_size=1, max_size=5), seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_absolute_sizes_are_met_or_refused(check_partition, labels, sizes, seed):
    partitioner = Sizes(tuple(sizes))
    if sum(sizes) > labels.size:
        with pytest.raises(PartitionError, match=rf"{sum(sizes)} examples, {labels.size} are|cannot share"):
            partitioner(labels, len(sizes), np.random.default_rng(seed))
        return
    partition = partitioner(labels, len(sizes), np.random.default_rng(seed))
    check_partition(partition, labels, len(sizes))
    assert partition.report.sizes == tuple(sizes)
    assert same(partition.indices, indices(partitioner, labels, len(sizes), seed))


@given(labels=LABELS, weights=st.lists(st.integers(1, 9), min_size=1, max_size=5), seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_shares_use_everything_and_are_met_within_one(check_partition, labels, weights, seed):
    shares = np.array(weights) / sum(weights)
    partitioner = Sizes(tuple(shares))
    try:
        partition = partitioner(labels, len(weights), np.random.default_rng(seed))
    except PartitionError:
        assert labels.size * shares.min() < 1  # only a share below one example can leave a client without any
        return
    check_partition(partition, labels, len(weights))
    assert (np.abs(np.array(partition.report.sizes) - labels.size * shares) < 1).all()
    assert partition.report.unused == 0


@given(labels=LABELS, share=st.floats(0.01, 1), data=st.data(), seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_a_share_is_drawn_and_the_rest_stays_unused(check_partition, labels, share, data, seed):
    n_clients = data.draw(st.integers(1, 4))
    for partitioner in (Equal(share=share), Sizes((1 / n_clients,) * n_clients, share=share)):
        drawn = round(labels.size * share)
        if drawn < n_clients:
            of = f", drawn from {labels.size}" if drawn < labels.size else ""
            with pytest.raises(PartitionError, match=f"{n_clients} clients cannot share {drawn} examples{of}:"):
                partitioner(labels, n_clients, np.random.default_rng(seed))
            continue
        partition = partitioner(labels, n_clients, np.random.default_rng(seed))
        check_partition(partition, labels, n_clients)  # disjoint, and reported as it is
        assert sum(partition.report.sizes) == drawn
        assert max(partition.report.sizes) - min(partition.report.sizes) <= 1
        assert partition.report.unused == labels.size - drawn
        assert same(partition.indices, indices(partitioner, labels, n_clients, seed))


def test_numbers_of_examples_are_taken_from_the_share():
    labels = np.zeros(40, int)
    assert Sizes((5, 4), share=0.25)(labels, 2, np.random.default_rng(0)).report.unused == 31
    with pytest.raises(PartitionError, match=r"\[5, 6\] want 11 examples, 10 are available"):
        Sizes((5, 6), share=0.25)(labels, 2, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0.5, 0.6), r"found \[0\.5, 0\.6\], which sum to 1\.1"),
        ((1.5, -0.5), "shares > 0"),
        ((5, 1), "integers > 1"),
        ((5, 0.5), "which sum to 5.5"),
        ((float("nan"), 1.0), r"sizes\[0\] must be a finite number, found nan"),
        ((True, 3), r"sizes\[0\] must be a finite number, found True"),
        ((), "one number a client"),
        (12, "one number a client"),
    ],
)
def test_ill_defined_sizes(sizes, message):
    with pytest.raises(PartitionError, match=message):
        Sizes(sizes)


@pytest.mark.parametrize(
    ("sizes", "n_clients", "message"),
    [
        ((6, 5), 2, r"\[6, 5\] want 11 examples, 10 are available"),
        ((0.99, 0.01), 2, "share 0.01 of 10 examples leaves client 1 without any"),
        ((2, 2, 2), 2, "given for 3 clients, but 2"),
    ],
)
def test_infeasible_sizes(sizes, n_clients, message):
    with pytest.raises(PartitionError, match=message):
        Sizes(sizes)(np.zeros(10, int), n_clients, np.random.default_rng(0))
