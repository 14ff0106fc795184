"""A run ends in about ten lines that say which method is best on each task, what was sent, and no more."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from benchmarks.cli.ending import ending
from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.evidence.records import request_for
from reports.views import page

RecordOf = Callable[..., RunResult]
SCORES = {"fedavg": 0.5, "fedprox": 0.6, "fedadam": 0.4, "fedsplitbert": 0.75, "fedsplitbert-qat": 0.7}


@pytest.fixture(scope="module")
def whole(table3: Benchmark, record_of: RecordOf) -> list[RunResult]:
    """Every row on every task with two seeds; what no paper prints scores best of all."""
    return [
        record_of(
            row.id,
            column.task,
            dict.fromkeys(column.scores, SCORES.get(row.id, 0.9) + seed / 100),
            seed=seed,
            scale="demo",
            up=(1_500_000, 1_500_000) if row.id == "fedavg" else (500_000, 500_000),
        )
        for row, column, seed in itertools.product(table3.rows, table3.columns, (0, 1))
    ]


def lines(table3: Benchmark, records: list[RunResult], width: int = 110) -> list[str]:
    return ending(page(request_for(table3, table3.scale("demo"), records)), width)


def test_a_whole_table_ends_in_ten_lines(table3: Benchmark, whole: list[RunResult]) -> None:
    found = lines(table3, whole)
    assert len(found) <= 10
    assert found[0].endswith("63 of 63 cells run")
    text = "\n".join(found)
    assert text.count("FedSplitBERT  75.50/75.50 F1/Acc") == 3
    assert "STS-B  FedSplitBERT  75.50 Pearson" in text
    assert "Average: FedAvg 50.50; FedProx 60.50" in text
    assert "Local majority † 90.50" in text  # an average, though never the best of a task
    assert "FedProx 500.00 kB" in text
    assert "FedAvg 1.50 MB (all that was run: 81.00 MB uplink" in text


def test_nothing_run_says_so(table3: Benchmark) -> None:
    assert lines(table3, []) == ["FedSplitBERT, Table III · scale demo: generated data, tiny BERT: 0 of 63 cells run"]
