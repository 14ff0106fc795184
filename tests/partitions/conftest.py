"""What holds for every partition, whatever the scheme."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from partitions import Partition, PartitionReport

CheckPartition = Callable[[Partition, np.ndarray, int], None]


def _check(partition: Partition, labels: np.ndarray, n_clients: int) -> None:
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

    written = json.dumps(report.to_json())
    assert PartitionReport.from_json(json.loads(written)) == report
    assert json.dumps(PartitionReport.from_json(json.loads(written)).to_json()) == written


@pytest.fixture(scope="session")
def check_partition() -> CheckPartition:
    """Indices are int64, ascending, in range and disjoint; the report is what one recomputes from them."""
    return _check
