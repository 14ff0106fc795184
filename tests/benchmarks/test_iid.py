"""Even labels: the same examples of each label as in Table III, and clients of the same size."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.registry import benchmark
from benchmarks.spec import Cell
from partitions import from_description

STUDY, TABLE = benchmark("fedsplitbert-iid"), benchmark("fedsplitbert-table3")
TASKS = [column.task for column in STUDY.columns]


def cells(task: str) -> dict[str, Cell]:
    column = next(column for column in STUDY.columns if column.task == task)
    return {row.id: STUDY.cell(row, column, STUDY.scale("lite"), 0) for row in STUDY.rows}


@pytest.mark.parametrize("task", TASKS)
def test_both_rows_use_as_many_examples_of_each_label(task: str) -> None:
    rng = np.random.default_rng(0)
    found = cells(task)
    n_labels = len(found["fedavg"].partition["shares"][0])
    labels = rng.choice(n_labels, 12000, p=np.arange(2, n_labels + 2) / sum(range(2, n_labels + 2)))
    skewed, even = (
        from_description(found[row].partition)(labels, 3, np.random.default_rng(1)) for row in ("fedavg", "fedavg-iid")
    )
    for label in range(n_labels):
        counts = [[int((labels[part] == label).sum()) for part in split.indices] for split in (skewed, even)]
        assert abs(sum(counts[0]) - sum(counts[1])) <= 3  # rounding, of three clients
        assert max(counts[1]) - min(counts[1]) <= 1
    assert abs(len(skewed.indices[0]) - len(even.indices[0])) <= 1


def test_the_skewed_row_is_table_3s_and_accuracy_alone_is_compared() -> None:
    rows = {row.id: row for row in TABLE.rows}
    for column in STUDY.columns:
        table3 = next(other for other in TABLE.columns if other.task == column.task)
        own = cells(column.task)
        assert own["fedavg"].spec_id == TABLE.cell(rows["fedavg"], table3, TABLE.scale("lite"), 0).spec_id
        assert own["fedavg-iid"].spec_id != own["fedavg"].spec_id
        assert column.scores == ("test/accuracy",)
    assert not any(row.printed for row in STUDY.rows)
    assert STUDY.gate is TABLE
