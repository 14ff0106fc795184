"""Label tables: the size, the counts within one example, and what cannot be had."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from partitions import LabelTable, PartitionError

# Columns are labels 0 and 1; the paper prints label 1 first.
MRPC_TABLE_1 = ((5, 95), (25, 75), (75, 25))
MRPC_TABLE_2 = (
    (8, 92), (14, 86), (29, 71), (34, 66), (50, 50), (56, 44), (65, 35), (72, 28), (88, 12), (48, 51),
)  # fmt: skip


def labels_of(pools, seed=0):
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(pools)), pools))


def exact_counts(weights, size):
    """Largest remainder in rational arithmetic, for one client."""
    quotas = [Fraction(size * weight, sum(weights)) for weight in weights]
    counts = [math.floor(quota) for quota in quotas]
    by_remainder = sorted(range(len(quotas)), key=lambda label: counts[label] - quotas[label])
    for label in by_remainder[: size - sum(counts)]:
        counts[label] += 1
    return counts


def over_draws(table, pools, size):
    wanted = np.sum([exact_counts(weights, size) for weights in table], axis=0)
    return bool((wanted > pools).any())


@st.composite
def tables_and_pools(draw):
    n_labels = draw(st.integers(1, 4))
    weights = st.lists(st.integers(0, 20), min_size=n_labels, max_size=n_labels).filter(any)
    table = draw(st.lists(weights, min_size=1, max_size=6))
    pools = draw(st.lists(st.integers(0, 150), min_size=n_labels, max_size=n_labels))
    assume(sum(pools) >= len(table))
    return table, np.array(pools)


def shares_of(table):
    return tuple(tuple(weight / sum(weights) for weight in weights) for weights in table)


@given(case=tables_and_pools(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_largest_size_and_counts_within_one(check_partition, case, seed):
    table, pools = case
    n_clients, labels = len(table), labels_of(pools)
    every_label = range(len(pools))
    demand = [sum(Fraction(weights[label], sum(weights)) for weights in table) for label in every_label]
    wanted = [label for label in every_label if demand[label] > 0]
    equal_shares = Fraction(int(pools.sum()), n_clients)
    bound = min([equal_shares, *(int(pools[label]) / demand[label] for label in wanted)])
    feasible = [n for n in range(1, max(1, math.floor(bound)) + 1) if not over_draws(table, pools, n)]
    partitioner = LabelTable(shares_of(table))
    if not feasible or any(pools[label] == 0 for label in wanted):
        with pytest.raises(PartitionError, match=r"label \d"):
            partitioner(labels, n_clients, np.random.default_rng(seed))
        return

    partition = partitioner(labels, n_clients, np.random.default_rng(seed))
    check_partition(partition, labels, n_clients)
    counts = np.array(partition.report.obtained_counts)
    size = int(counts[0].sum())
    assert size == max(feasible)
    assert (counts.sum(axis=1) == size).all()
    assert (counts.sum(axis=0) <= pools).all()
    assert (np.abs(counts - size * np.array(shares_of(table))) < 1).all()
    assert (counts[np.array(table) == 0] == 0).all()
    # Every count is less than n p_kl + 1, so label l is over-drawn only where n S_l + K_l > N_l, with K_l the
    # clients that want it: no size up to min(|D| / K, (N_l - K_l) / S_l) can be refused.
    takers = (np.array(table) > 0).sum(axis=0).tolist()
    surely = [(int(pools[label]) - takers[label]) / demand[label] for label in wanted]
    assert size >= math.floor(min([equal_shares, *surely]))


@given(case=tables_and_pools(), size=st.integers(1, 60), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_given_size_is_met_or_refused(check_partition, case, size, seed):
    table, pools = case
    labels = labels_of(pools)
    assume(not ((pools == 0) & np.any(table, axis=0)).any())
    partitioner = LabelTable(shares_of(table), size=size)
    if over_draws(table, pools, size):
        with pytest.raises(PartitionError, match=r"label \d \(\d+ wanted, \d+ available\)"):
            partitioner(labels, len(table), np.random.default_rng(seed))
        return
    partition = partitioner(labels, len(table), np.random.default_rng(seed))
    check_partition(partition, labels, len(table))
    assert partition.report.sizes == (size,) * len(table)
    assert [list(row) for row in partition.report.obtained_counts] == [exact_counts(w, size) for w in table]


def test_mrpc_by_hand():
    """Label 0 allows 1323 / (0.05 + 0.25 + 0.75) = 1260 exactly, which uses up its pool."""
    labels = labels_of([1323, 2753])
    report = LabelTable(MRPC_TABLE_1)(labels, 3, np.random.default_rng(0)).report
    assert report.sizes == (1260, 1260, 1260)
    assert report.obtained_counts == ((63, 1197), (315, 945), (945, 315))
    assert report.unused == 2753 - 1197 - 945 - 315  # all of label 1


def test_whole_bound_is_reached_though_floating_point_misses_it():
    """3 / (0.05 + 0.05 + 0.05) = 20, computed as 19.999999999999996."""
    report = LabelTable(((5, 95),) * 3)(labels_of([3, 57]), 3, np.random.default_rng(0)).report
    assert report.obtained_counts == ((1, 19),) * 3


def test_row_that_is_off_by_rounding_is_normalised_and_noted():
    report = LabelTable(MRPC_TABLE_2)(labels_of([1323, 2753]), 10, np.random.default_rng(0)).report
    (note,) = report.notes
    assert "client 9" in note
    assert "99" in note
    assert report.requested_shares[9] == (48 / 99, 51 / 99)
    assert report.requested_shares[0] == (0.08, 0.92)


def test_label_without_any_share_stays_unused():
    labels = labels_of([30, 30, 30])
    report = LabelTable(((0.5, 0.5, 0.0), (0.5, 0.5, 0)))(labels, 2, np.random.default_rng(0)).report
    assert report.obtained_counts == ((15, 15, 0), (15, 15, 0))
    assert report.unused == 30


@pytest.mark.parametrize(
    ("table", "pools", "n_clients", "message"),
    [
        # 2 clients of 20 want 2 * 18 = 36 of label 1; the pool of 27 allows 27 / 1.8 = 15 each.
        (
            LabelTable(((0.1, 0.9), (0.1, 0.9)), size=20),
            [90, 27],
            2,
            r"label 1 \(36 wanted, 27 .* at most 15",
        ),
        # 3 * 10 examples are fewer than 2 * 20, both labels run short.
        (LabelTable(((0.5, 0.5),) * 2, size=20), [15, 15], 2, r"label 0 \(20 w.*15.*label 1 \(20 wanted, 15"),
        (LabelTable(((0.7, 0.3, 0), (0.4, 0.4, 0.2))), [9, 9, 0], 2, r"label 2: .*0\.2.* 0 examples"),
        # With 1 example each, all three clients take label 1.
        (LabelTable(((0.1, 0.9),) * 3), [9, 2], 3, r"no size .* label 1 \(3 wanted, 2 available\)"),
        (LabelTable(((0.5, 0.5),)), [5, 5, 4], 1, r"labels 0 to 1, the data also label 2 \(4 examples\)"),
        (LabelTable(((0.5, 0.5),) * 3), [9, 9], 2, "table is for 3 clients, but 2"),
    ],
)
def test_infeasible_requests_name_label_and_numbers(table, pools, n_clients, message):
    with pytest.raises(PartitionError, match=message):
        table(labels_of(pools), n_clients, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (((0.5, 0.4),), r"client 0: .* sum to 0\.9"),
        (((0.5, 0.5), (60, 45)), "client 1: .* sum to 105"),
        (((1.2, -0.2),), "client 0: shares must be >= 0"),
        (((float("nan"), 1.0),), r"shares\[0\]\[0\] must be a finite number, found nan"),
        (((0.5, 0.5), (1.0,)), r"found \[2, 1\] shares"),
        ((), "every client"),
        (((),), "client 0"),
        ((0.5, 0.5), "table"),
        (((True, 0.0),), "finite number, found True"),
        ((("50%", "50%"),), "finite number, found '50%'"),
    ],
)
def test_ill_defined_tables(shares, message):
    with pytest.raises(PartitionError, match=message):
        LabelTable(shares)
