"""Dirichlet label skew: never an empty client, never NaN, every example used."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions import Dirichlet, PartitionError


@given(
    labels=st.lists(st.integers(-2, 3), min_size=1, max_size=80).map(np.array),
    n_clients=st.integers(1, 6),
    log_alpha=st.floats(-300, 300),
    min_size=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=150, deadline=None)
def test_uses_every_example_or_raises(check_partition, labels, n_clients, log_alpha, min_size, seed):
    partitioner = Dirichlet(10.0**log_alpha, min_size=min_size, max_redraws=20)
    try:
        partition = partitioner(labels, n_clients, np.random.default_rng(seed))
    except PartitionError:
        return  # that this happens only where it must is tested below
    check_partition(partition, labels, n_clients)
    assert min(partition.report.sizes) >= min_size
    assert partition.report.unused == 0
    again = partitioner(labels, n_clients, np.random.default_rng(seed))
    assert all((a == b).all() for a, b in zip(partition.indices, again.indices, strict=True))


@given(pools=st.lists(st.integers(6, 60), min_size=1, max_size=4), n_clients=st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_large_alpha_shares_every_label_equally(pools, n_clients):
    """At alpha = 1e12 a proportion is 1 / K give or take 1e-6, so rounding alone is left: one example."""
    labels = np.repeat(np.arange(len(pools)), pools)
    report = Dirichlet(1e12)(labels, n_clients, np.random.default_rng(0)).report
    assert (np.abs(np.array(report.obtained_counts) - np.array(pools) / n_clients) < 1 + 1e-3).all()
    assert report.notes == ()


def test_small_alpha_is_skewed():
    """At alpha = 1e-3 one client gets nearly all of a label: about one client a label holds anything."""
    labels = np.repeat(np.arange(8), 100)
    report = Dirichlet(1e-3)(labels, 2, np.random.default_rng(0)).report
    assert np.mean(np.max(report.obtained_counts, axis=0)) > 95


def test_redraws_are_counted():
    """The note's number is the smallest max_redraws with which the same seed succeeds."""
    labels, rng = np.repeat([0, 1, 2], 20), np.random.default_rng
    note = Dirichlet(0.1)(labels, 4, rng(5)).report.notes[0]
    redraws = int(note.split(":")[1].split(",")[0])
    assert redraws > 0
    assert Dirichlet(0.1, max_redraws=redraws)(labels, 4, rng(5)).report.notes == (note,)
    with pytest.raises(PartitionError, match=f"in {redraws} draws"):
        Dirichlet(0.1, max_redraws=redraws - 1)(labels, 4, rng(5))


def test_gives_up_where_no_draw_can_succeed():
    """So small an alpha gives each of 2 labels to one client whole: 3 of 5 clients stay empty."""
    with pytest.raises(PartitionError, match=r"in 11 draws the smallest client had at most 0 examples, at least 1"):
        Dirichlet(1e-9, max_redraws=10)(np.repeat([0, 1], 50), 5, np.random.default_rng(0))


@given(
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=120).map(np.array),
    n_clients=st.integers(1, 6),
    log_alpha=st.floats(-3, 3),
    min_size=st.integers(1, 10),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=150, deadline=None)
def test_capped_as_in_fednlp(check_partition, labels, n_clients, log_alpha, min_size, seed):
    """Who holds N / K examples gets no more, so that nobody is above it by more than its share of one label."""
    partitioner = Dirichlet(10.0**log_alpha, min_size=min_size, max_redraws=20, capped=True)
    try:
        partition = partitioner(labels, n_clients, np.random.default_rng(seed))
    except PartitionError:
        return
    check_partition(partition, labels, n_clients)
    assert partition.report.unused == 0
    assert min(partition.report.sizes) >= min_size
    for counts in partition.report.obtained_counts:
        last = max(label for label, count in enumerate(counts) if count)
        assert sum(counts[:last]) * n_clients < labels.size  # before it got its last label
    again = partitioner(labels, n_clients, np.random.default_rng(seed))
    assert all((a == b).all() for a, b in zip(partition.indices, again.indices, strict=True))


def test_capped_shares_out_what_others_got_alone_before():
    """At so small an alpha each label goes to one client whole: uncapped often to one that has a label already."""
    labels = np.repeat([0, 1, 2], 30)
    for seed in range(20):
        report = Dirichlet(1e-6, capped=True)(labels, 3, np.random.default_rng(seed)).report
        assert report.sizes == (30, 30, 30)
        assert report.notes == ()


def test_a_cap_that_nobody_meets_changes_nothing():
    """One label: nobody holds anything before it, so the draw is the same."""
    labels = np.zeros(50, int)
    capped, plain = (Dirichlet(1.0, capped=c)(labels, 4, np.random.default_rng(7)) for c in (True, False))
    assert capped.report == plain.report
    assert all((a == b).all() for a, b in zip(capped.indices, plain.indices, strict=True))


def test_capped_gives_up_after_a_bounded_number_of_redraws():
    """One label goes to one of five clients whole, whatever is redrawn."""
    with pytest.raises(PartitionError, match=r"capped, 5 clients: in 4 draws the smallest client had at most 0 exam"):
        Dirichlet(1e-9, min_size=10, max_redraws=3, capped=True)(np.zeros(99, int), 5, np.random.default_rng(0))


def test_the_draw_is_what_it_was_before_there_was_a_cap():
    """Records name these partitions: 3 labels, 3 clients, from a seed."""
    report = Dirichlet(1.0)(np.repeat([0, 1, 2], 20), 3, np.random.default_rng(0)).report
    proportions = np.random.default_rng(0).dirichlet(np.ones(3), size=3)
    assert (np.abs(np.array(report.obtained_counts).T - 20 * proportions) < 1).all()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"alpha": 0.0}, "alpha must be > 0, found 0"),
        ({"alpha": -1.0}, "alpha must be > 0, found -1"),
        ({"alpha": float("nan")}, "alpha must be a finite number"),
        ({"alpha": float("inf")}, "alpha must be a finite number"),
        ({"alpha": "1"}, "alpha must be a finite number"),
        ({"alpha": 1.0, "min_size": 0}, "min_size must be an integer of at least 1"),
        ({"alpha": 1.0, "max_redraws": -1}, "max_redraws must be an integer of at least 0"),
        ({"alpha": 1.0, "capped": 1}, "capped must be true or false, found 1"),
    ],
)
def test_ill_defined(fields, message):
    with pytest.raises(PartitionError, match=message):
        Dirichlet(**fields)


@pytest.mark.parametrize(
    ("partitioner", "labels", "message"),
    [
        (Dirichlet(1.0, min_size=4), np.zeros(11, int), "12 in all; 11 are available"),
        (Dirichlet(1e308), np.zeros(11, int), "overflows with 3 clients"),
        (Dirichlet(1.0), np.zeros(11), "needs integer labels"),
    ],
)
def test_impossible(partitioner, labels, message):
    with pytest.raises(PartitionError, match=message):
        partitioner(labels, 3, np.random.default_rng(0))
