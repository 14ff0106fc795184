"""Partitioners and reports as plain data, and rejected requests."""

from dataclasses import replace

import numpy as np
import pytest

from partitions import (
    Dirichlet,
    DrawnShares,
    Equal,
    LabelTable,
    PartitionError,
    Sizes,
    SortedByScore,
    from_description,
)

PARTITIONERS = [
    Dirichlet(0.5, min_size=10, max_redraws=7, capped=True),
    DrawnShares(1.0, (0.5, 0.5), balance=0.4, size=12),
    Equal(share=0.75),
    LabelTable(((0.5, 0.5), (0.1, 0.9)), size=12),
    Sizes((0.25, 0.75), share=0.8),
    SortedByScore(),
]
CLASSES, THREE = np.repeat([0, 1], [30, 50]), np.zeros(9, int)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"scheme": "pathological"}, "'pathological': expected one of dirichlet, drawn-shares, equal, in-order,"),
        ({"scheme": "dirichlet", "beta": 1}, "fields among alpha, min_size, max_redraws, capped, found beta"),
        ({"scheme": "dirichlet", "alpha": 0.0}, "alpha: expected a number above 0, found 0"),
        ({"scheme": "dirichlet", "alpha": "much"}, 'alpha: expected a finite number, found "much"'),
        ({"scheme": "drawn-shares", "concentration": 1.0, "of": [0.5]}, "one per label, found 0.5"),
        ({"scheme": "drawn-shares", "concentration": 1.0, "of": [0.5, 0.4]}, r"that sum to 1, found 0\.5, 0\.4"),
        ({"scheme": "drawn-shares", "concentration": 0, "of": [0.5, 0.5]}, "concentration: .* above 0, found 0"),
        ({"scheme": "equal", "share": 0}, "share: expected a number above 0 and at most 1, found 0"),
        ({"scheme": "sizes", "sizes": [0.5, 0.6]}, r"found 0\.5, 0\.6, which sum to 1\.1"),
        ({"scheme": "sizes", "sizes": [5, 1]}, "integers above 1"),
        ({"scheme": "sizes", "sizes": 12}, "one number per client, found 12"),
        ({"scheme": "label-table", "size": 3}, "expected a value for shares, found none"),
        ({"scheme": "label-table", "shares": [[0.5, 0.4]]}, r"client 0: .* sum to 0\.9"),
        ({"scheme": "label-table", "shares": [[1.2, -0.2]]}, "client 0: expected numbers of at least 0"),
        ({"scheme": "label-table", "shares": [[0.5, 0.5], [1.0]]}, "client 1: expected 2, .* found 1;"),
    ],
)
def test_wrong_descriptions(description, message):
    with pytest.raises(PartitionError, match=message):
        from_description(description)


@pytest.mark.parametrize("partitioner", PARTITIONERS, ids=repr)
@pytest.mark.parametrize(
    ("labels", "n_clients", "message"),
    [
        (np.array([0, 1]), 0, "n_clients: expected an integer of at least 1, found 0"),
        (np.array([0]), 2, "2 clients: expected at least one example for each, found 1 example;"),
        (np.array([[0, 1]]), 1, r"found shape \(1, 2\)"),
        (np.array([0.5, np.nan]), 1, "found nan at position 1;"),
        (np.array(["yes", "no"]), 1, "labels: expected integers"),
    ],
)
def test_bad_arguments_are_refused_by_all(partitioner, labels, n_clients, message):
    with pytest.raises(PartitionError, match=message):
        partitioner(labels, n_clients, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("partitioner", "labels", "n_clients", "message"),
    [
        (Dirichlet(1.0, min_size=4), THREE, 3, "expected at least 12 examples, found 9;"),
        (Dirichlet(1e308), THREE, 3, "alpha: expected a finite sum over 3 clients"),
        (Dirichlet(1e-9, 2, 3, True), THREE, 4, r"capped, 4 clients: .* at least 2 .* most 0 in 4 draws;"),
        (Sizes((6, 5)), THREE, 2, r"at most 9 examples in all, found 6, 5, which sum to 11;"),
        (Sizes((5, 4), share=0.5), THREE, 2, r"at most 4 examples in all, found 5, 4, which sum to 9;"),
        (Sizes((2, 2, 2)), THREE, 2, "sizes: expected one for each of 2 clients, found 3;"),
        # Two clients of 30 want 2 * 27 = 54 of label 1; its 50 allow 50 / 1.8 = 27 each.
        (LabelTable(((0.1, 0.9),) * 2, size=30), CLASSES, 2, r"50 of 54 with label 1; .* at most 27"),
        (LabelTable(((0.7, 0.3, 0), (0.4, 0.4, 0.2))), CLASSES, 2, r"label 2: .* client 1 is 0\.2, found none"),
        # With one example each, all three clients take label 1.
        (LabelTable(((0.1, 0.9),) * 3), np.array([0, 0, 1, 1]), 3, r"for one per client, found 2 of 3 with label 1;"),
        (LabelTable(((1.0,),)), CLASSES, 1, r"found 1 column, and none for label 1 \(50 examples\);"),
    ],
)
def test_impossible_requests_name_the_numbers(partitioner, labels, n_clients, message):
    with pytest.raises(PartitionError, match=message):
        partitioner(labels, n_clients, np.random.default_rng(0))


def test_cut_texts_are_written_where_there_are_some():
    report = LabelTable(((0.5, 0.5),) * 2)(CLASSES, 2, np.random.default_rng(0)).report
    assert "cut" not in report.to_json()
    written = replace(report, cut={"train": (3, 1)}).to_json()
    assert written["cut"] == {"train": [3, 1]}
