"""Dirichlet label skew: never an empty client, never NaN, every example used."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions import Dirichlet, PartitionError


@given(pools=st.lists(st.integers(6, 60), min_size=1, max_size=4), n_clients=st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_large_alpha_shares_every_label_equally(pools, n_clients):
    """At alpha = 1e12 a proportion is 1 / K give or take 1e-6, so rounding alone is left: one example."""
    labels = np.repeat(np.arange(len(pools)), pools)
    report = Dirichlet(1e12)(labels, n_clients, np.random.default_rng(0)).report
    assert (np.abs(np.array(report.obtained_counts) - np.array(pools) / n_clients) < 1 + 1e-3).all()
    assert report.notes == ()


def test_redraws_are_counted():
    """The note's number is the smallest max_redraws with which the same seed succeeds."""
    labels, rng = np.repeat([0, 1, 2], 20), np.random.default_rng
    note = Dirichlet(0.1)(labels, 4, rng(5)).report.notes[0]
    redraws = int(note.split(":")[1].split(",")[0])
    assert redraws > 0
    assert Dirichlet(0.1, max_redraws=redraws)(labels, 4, rng(5)).report.notes == (note,)
    with pytest.raises(PartitionError, match=f"in {redraws} draws"):
        Dirichlet(0.1, max_redraws=redraws - 1)(labels, 4, rng(5))


@given(
    labels=st.lists(st.integers(-2, 3), min_size=1, max_size=120).map(np.array),
    n_clients=st.integers(1, 6),
    log_alpha=st.floats(-300, 300),
    min_size=st.integers(1, 10),
    seed=st.integers(0, 2**32 - 1),
    capped=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_every_example_is_used_or_the_request_is_refused(
    check_partition, labels, n_clients, log_alpha, min_size, seed, capped
):
    """Capped as in FedNLP: a client with N / K examples gets no more, so none has more than that before its last."""
    partitioner = Dirichlet(10.0**log_alpha, min_size=min_size, max_redraws=20, capped=capped)
    try:
        partition = partitioner(labels, n_clients, np.random.default_rng(seed))
    except PartitionError:
        return
    check_partition(partition, labels, n_clients)
    assert partition.report.unused == 0
    assert min(partition.report.sizes) >= min_size
    for counts in partition.report.obtained_counts if capped else ():
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


def test_capped_gives_up_after_a_bounded_number_of_redraws():
    """One label goes to one of five clients whole, whatever is redrawn."""
    with pytest.raises(PartitionError, match=r"capped, 5 clients: in 4 draws the smallest client had at most 0 exam"):
        Dirichlet(1e-9, min_size=10, max_redraws=3, capped=True)(np.zeros(99, int), 5, np.random.default_rng(0))


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
