"""Each scheme against its definition: sizes and counts to within one example, disjoint, reported, reproducible."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from partitions import (
    Dirichlet,
    DrawnShares,
    Equal,
    LabelTable,
    Partition,
    PartitionError,
    PartitionReport,
    Sizes,
    SortedByScore,
)

MRPC_TABLE_1 = ((5, 95), (25, 75), (75, 25))  # the columns are labels 0 and 1; the paper prints label 1 first
LABELS = st.one_of(
    st.lists(st.integers(-2, 3), min_size=1, max_size=60),
    st.lists(st.floats(-5, 5), min_size=1, max_size=60),
).map(np.array)
SEEDS = st.integers(0, 2**32 - 1)


def check_partition(partition: Partition, labels: np.ndarray, n_clients: int) -> None:
    """Indices are int64, ascending, in range and disjoint; the report equals one recomputed from them."""
    indices, report = partition.indices, partition.report
    assert len(indices) == n_clients == report.n_clients
    for part in indices:
        assert part.dtype == np.int64
        assert part.size >= 1
        assert (np.diff(part) > 0).all()  # ascending, so also without repetition
        assert part[0] >= 0
        assert part[-1] < labels.size
    held = np.concatenate(indices)
    assert np.unique(held).size == held.size  # disjoint

    assert report.n_examples == labels.size
    assert report.sizes == tuple(part.size for part in indices)
    assert report.unused == labels.size - held.size
    assert 0 <= report.unused_share == report.unused / labels.size <= 1
    if report.scores is None:
        assert report.label_ids is not None
        assert report.obtained_counts == tuple(
            tuple(int((labels[part] == label).sum()) for label in report.label_ids) for part in indices
        )
        assert [sum(row) for row in report.obtained_counts] == list(report.sizes)
    else:
        assert report.label_ids is report.obtained_counts is report.requested_shares is None
        for part, score in zip(indices, report.scores, strict=True):
            assert (score.minimum, score.maximum) == (labels[part].min(), labels[part].max())
            assert score.mean == pytest.approx(labels[part].mean())

    assert json.loads(json.dumps(report.to_json()))["sizes"] == list(report.sizes)  # plain values


def checked(partitioner, labels, n_clients, seed) -> PartitionReport:
    """The report of a partition, after checking it and its reproducibility."""
    one, other = (partitioner(labels, n_clients, np.random.default_rng(seed)) for _ in range(2))
    check_partition(one, labels, n_clients)
    assert all(np.array_equal(a, b) for a, b in zip(one.indices, other.indices, strict=True))
    return one.report


@given(labels=LABELS, share=st.floats(0.01, 1), data=st.data(), seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_equal_parts_of_a_share_differ_by_one_example(labels, share, data, seed):
    n_clients = data.draw(st.integers(1, labels.size))
    for partitioner in (Equal(share=share), Sizes((1 / n_clients,) * n_clients, share=share)):
        drawn = round(labels.size * share)
        if drawn < n_clients:
            of = f", drawn from {labels.size}" if drawn < labels.size else ""
            found = f"found {drawn} example{'s' if drawn != 1 else ''}{of};"
            with pytest.raises(PartitionError, match=f"{n_clients} clients: expected at least one .* {found}"):
                partitioner(labels, n_clients, np.random.default_rng(seed))
            continue
        report = checked(partitioner, labels, n_clients, seed)
        assert sum(report.sizes) == drawn
        assert max(report.sizes) - min(report.sizes) <= 1


@given(labels=LABELS, weights=st.lists(st.integers(1, 9), min_size=1, max_size=5), seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_relative_sizes_are_met_within_one_example(labels, weights, seed):
    shares = np.array(weights) / sum(weights)
    try:
        report = checked(Sizes(tuple(shares)), labels, len(weights), seed)
    except PartitionError:
        assert labels.size * shares.min() < 1  # only a share below one example can leave a client without any
        return
    assert (np.abs(np.array(report.sizes) - labels.size * shares) < 1).all()
    assert report.unused == 0


@given(scores=st.lists(st.integers(0, 10), min_size=4, max_size=60).map(np.array), data=st.data())
@settings(max_examples=60, deadline=None)
def test_sorted_parts_follow_score_then_position(scores, data):
    n_clients = data.draw(st.integers(1, 4))
    size = data.draw(st.none() | st.integers(1, scores.size // n_clients))
    partitioner = SortedByScore(size)
    report = checked(partitioner, scores, n_clients, 1)
    assert sum(report.sizes) == (scores.size if size is None else size * n_clients)
    assert max(report.sizes) - min(report.sizes) <= 1
    parts = partitioner(scores, n_clients, np.random.default_rng(1)).indices
    ordered = [pair for part in parts for pair in sorted((scores[i], i) for i in part)]
    assert ordered == sorted(ordered)


@given(
    labels=st.lists(st.integers(-2, 3), min_size=1, max_size=120).map(np.array),
    n_clients=st.integers(1, 6),
    log_alpha=st.floats(-300, 300),
    min_size=st.integers(1, 10),
    seed=SEEDS,
    capped=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_dirichlet_uses_every_example_or_refuses(labels, n_clients, log_alpha, min_size, seed, capped):
    """Capped as in FedNLP: a client with N / K examples gets no more."""
    partitioner = Dirichlet(10.0**log_alpha, min_size=min_size, max_redraws=20, capped=capped)
    try:
        report = checked(partitioner, labels, n_clients, seed)
    except PartitionError:
        return
    assert report.unused == 0
    assert min(report.sizes) >= min_size
    for counts in report.obtained_counts if capped else ():
        last = max(label for label, count in enumerate(counts) if count)
        assert sum(counts[:last]) * n_clients < labels.size  # before it got its last label


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
def test_largest_size_and_counts_within_one(case, seed):
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

    counts = np.array(checked(partitioner, labels, n_clients, seed).obtained_counts)
    size = int(counts[0].sum())
    assert size == max(feasible)
    assert (counts.sum(axis=1) == size).all()
    assert (counts.sum(axis=0) <= pools).all()
    assert (np.abs(counts - size * np.array(shares_of(table))) < 1).all()
    assert (counts[np.array(table) == 0] == 0).all()


@pytest.mark.parametrize(("concentration", "of"), [(1.0, (0.5, 0.5)), (0.1, (0.326, 0.674))])
def test_drawn_shares_have_the_moments_of_their_distribution(concentration, of):
    """A beta distribution has the variance m (1 − m) / (s + 1); all clients together stay within the balance."""
    labels = labels_of([40_000, 40_000])

    def second(n_clients, seed, **fields):
        partition = DrawnShares(concentration, of, size=200, **fields)(labels, n_clients, np.random.default_rng(seed))
        assert partition.report.scheme == "drawn-shares"
        assert partition.report.sizes == (200,) * n_clients
        return np.array(partition.report.requested_shares)[:, 1]

    shares = np.concatenate([second(100, seed) for seed in range(20)])
    assert shares.mean() == pytest.approx(of[1], abs=0.02)
    assert shares.var() == pytest.approx(of[0] * of[1] / (concentration + 1), rel=0.1)
    together = [second(3, seed, balance=0.2).mean() for seed in range(50)]
    assert max(abs(mean - of[1]) for mean in together) <= 0.2
    assert len({round(mean, 6) for mean in together}) > 40  # seeds draw different shares
    with pytest.raises(PartitionError, match="raise balance or concentration"):
        second(1, 0, balance=1e-9)


def test_mrpc_by_hand():
    """Label 0 allows exactly 1323 / (0.05 + 0.25 + 0.75) = 1260, which exhausts its pool."""
    labels = labels_of([1323, 2753])
    report = LabelTable(MRPC_TABLE_1)(labels, 3, np.random.default_rng(0)).report
    assert report.sizes == (1260, 1260, 1260)
    assert report.obtained_counts == ((63, 1197), (315, 945), (945, 315))
    assert report.unused == 2753 - 1197 - 945 - 315  # all of label 1
