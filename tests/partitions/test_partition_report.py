"""Reports as JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest

from partitions import LabelTable, Overlap, PartitionError, PartitionReport, SortedByScore

LABELS = np.repeat([0, 1], [30, 50])


@pytest.fixture
def written():
    return LabelTable(((0.25, 0.74), (0.5, 0.5)))(LABELS, 2, np.random.default_rng(0)).report.to_json()


def test_json_of_classes(written):
    """By hand: 25/99 + 1/2 of label 0 and 74/99 + 1/2 of label 1 allow min(40, 39.9, 40.08) = 39 each."""
    assert written == {
        "scheme": "label-table",
        "n_examples": 80,
        "n_clients": 2,
        "sizes": [39, 39],
        "unused": 2,
        "unused_share": 0.025,
        "label_ids": [0, 1],
        "requested_shares": [[0.25 / 0.99, 0.74 / 0.99], [0.5, 0.5]],
        "obtained_counts": [[10, 29], [20, 19]],  # 9.85 | 29.15 and 19.5 | 19.5, the tie goes to label 0
        "scores": None,
        "notes": ["client 0: shares [0.25, 0.74] sum to 0.99, normalised to 0.2525, 0.7475"],
    }


def test_json_of_scores():
    report = SortedByScore()(np.array([0.0, 2.0, 4.0, 5.0]), 2, np.random.default_rng(0)).report
    written = report.to_json()
    assert written["scores"] == [[0.0, 1.0, 2.0], [4.0, 4.5, 5.0]]
    assert written["label_ids"] is written["obtained_counts"] is written["requested_shares"] is None
    assert PartitionReport.from_json(json.loads(json.dumps(written))) == report


def test_overlap_is_written_where_there_is_some(written):
    report = PartitionReport.from_json(written)
    assert "overlap" not in written
    found = replace(report, overlap={"test": Overlap(40, 30, 24), "mismatched": Overlap(9, 1, None)}).to_json()
    assert found["overlap"] == {
        "test": {"examples": 40, "shared": 30, "opposite": 24},
        "mismatched": {"examples": 9, "shared": 1, "opposite": None},
    }
    assert PartitionReport.from_json(json.loads(json.dumps(found))).to_json() == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unused": 3}, "unused"),
        ({"n_clients": 3}, "n_clients"),
        ({"colour": "red"}, "colour"),
        ({"sizes": 39}, "TypeError"),
        ({"sizes": ["39", "39"]}, "TypeError"),
        ({"n_examples": 0}, "ZeroDivisionError"),
        ({"scores": [[1.0]]}, "TypeError"),
        ({"overlap": {"test": 3}}, "TypeError"),
        ({"overlap": 3}, "AttributeError"),
        ({"overlap": {"test": {"examples": 3, "shared": 1, "some": 2}}}, "some"),
    ],
)
def test_contradictory_json_is_refused(written, change, message):
    with pytest.raises(PartitionError, match=message):
        PartitionReport.from_json({**written, **change})


def test_incomplete_json_is_refused(written):
    for key in written:
        with pytest.raises(PartitionError, match=key):
            PartitionReport.from_json({k: v for k, v in written.items() if k != key})
