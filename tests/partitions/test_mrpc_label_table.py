"""FedSplitBERT's Table I on the real MRPC."""

import numpy as np
import pytest

from partitions import LabelTable

TABLE_1 = (
    (0.05, 0.95),
    (0.25, 0.75),
    (0.75, 0.25),
)  # columns: label 0, label 1 (the paper prints label 1 first)


def test_table_1_is_obtained_within_one_example(data_dir, check_partition):
    files = [data_dir / "glue_data" / "MRPC" / name for name in ("train.tsv", "dev.tsv")]
    if not all(file.is_file() for file in files):
        pytest.skip(f"needs MRPC's train.tsv and dev.tsv in {files[0].parent}")
    rows = [row for file in files for row in file.read_text(encoding="utf-8-sig").split("\n")[1:] if row]
    labels = np.array([int(row.split("\t", 1)[0]) for row in rows])

    partition = LabelTable(TABLE_1)(labels, 3, np.random.default_rng(0))

    check_partition(partition, labels, 3)
    report = partition.report
    size = report.sizes[0]
    told = f"{size} examples a client, {report.unused_share:.1%} of {labels.size} unused"
    assert report.sizes == (size,) * 3, told
    assert (np.abs(np.array(report.obtained_counts) - size * np.array(TABLE_1)) < 1).all(), told
    # Label 0 is the scarce one: one more a client wants 1.05 more of it, and rounding moves at most 3.
    assert (size + 1) * 1.05 + 3 > (labels == 0).sum(), told
    assert 0 < report.unused_share < 0.3, told
