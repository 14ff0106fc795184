"""Partitioners as plain data, and what all of them refuse."""

import json

import numpy as np
import pytest

from partitions import (
    Dirichlet,
    Equal,
    LabelTable,
    PartitionError,
    Sizes,
    SortedByScore,
    describe,
    from_description,
)

PARTITIONERS = [
    Dirichlet(0.5, min_size=2, max_redraws=7),
    Dirichlet(0.5, min_size=10, capped=True),
    Equal(),
    Equal(share=0.75),
    LabelTable(((5, 95), (25, 75))),
    LabelTable(((0.5, 0.5), (0.1, 0.9)), size=12),
    Sizes((3, 4)),
    Sizes((0.25, 0.75)),
    Sizes((0.25, 0.75), share=0.8),
    SortedByScore(),
]


@pytest.mark.parametrize("partitioner", PARTITIONERS, ids=repr)
def test_round_trip_through_json(partitioner):
    description = describe(partitioner)
    restored = from_description(json.loads(json.dumps(description)))
    assert restored == partitioner
    assert hash(restored) == hash(partitioner)
    assert json.dumps(describe(restored)) == json.dumps(description)


def test_a_share_is_described_where_it_is_no_whole():
    """So the descriptions, and ids, of cells that came before the field stay what they were."""
    assert describe(Equal(share=1)) == {"scheme": "equal"}
    assert describe(Sizes((3, 4), share=1.0)) == {"scheme": "sizes", "sizes": [3, 4]}
    assert describe(Equal(share=0.02)) == {"scheme": "equal", "share": 0.02}
    assert describe(Sizes((3, 4), share=0.5)) == {"scheme": "sizes", "sizes": [3, 4], "share": 0.5}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (LabelTable(((5, 95),)), LabelTable(((5.0, 95.0),))),
        (Dirichlet(1), Dirichlet(1.0)),
        (Sizes((np.int64(3), 4)), Sizes((3, 4))),
        (LabelTable(((1,),), size=np.int64(3)), LabelTable(((1,),), size=3)),
    ],
)
def test_equal_partitioners_have_one_description(one, other):
    assert json.dumps(describe(one)) == json.dumps(describe(other))


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (
            {"scheme": "pathological"},
            "'pathological', known are dirichlet, equal, label-table, sizes, sorted",
        ),
        ({}, "unknown partition scheme None"),
        ({"scheme": "dirichlet", "beta": 1}, "no field beta, known are alpha, min_size, max_redraws, capped"),
        ({"scheme": "equal", "n": 1}, "no field n, known are share"),
        ({"scheme": "equal", "share": 0}, "share must be above 0 and at most 1, found 0"),
        ({"scheme": "sizes", "sizes": [3, 4], "share": 1.5}, "share must be above 0 and at most 1, found 1.5"),
        ({"scheme": "equal", "share": "half"}, "share must be a finite number, found 'half'"),
        ({"scheme": "label-table", "size": 3}, "also needs shares"),
        ({"scheme": "label-table", "shares": 3}, "must be a table"),
        ({"scheme": "dirichlet", "alpha": "much"}, "alpha must be a finite number"),
    ],
)
def test_wrong_descriptions(description, message):
    with pytest.raises(PartitionError, match=message):
        from_description(description)


@pytest.mark.parametrize("partitioner", PARTITIONERS, ids=repr)
@pytest.mark.parametrize(
    ("labels", "n_clients", "message"),
    [
        (np.array([0, 1]), 0, "n_clients must be an integer of at least 1, found 0"),
        (np.array([0, 1]), 1.5, "n_clients must be an integer"),
        (np.array([0]), 2, "2 clients cannot share 1 examples"),
        (np.array([], int), 1, "1 clients cannot share 0 examples"),
        (np.array([[0, 1]]), 1, r"found shape \(1, 2\)"),
        (np.array([0.5, np.nan]), 1, r"found 1 that are not, the first \(nan\) at position 1"),
        (np.array([np.inf, 1.0]), 1, r"the first \(inf\) at position 0"),
        (np.array(["yes", "no"]), 1, "labels must be integers"),
        (np.array([True, False]), 1, "labels must be integers"),
    ],
)
def test_bad_arguments_are_refused_by_all(partitioner, labels, n_clients, message):
    with pytest.raises(PartitionError, match=message):
        partitioner(labels, n_clients, np.random.default_rng(0))
