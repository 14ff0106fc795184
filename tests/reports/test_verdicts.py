"""Verdicts on single scores: the rule, and where it is not applied."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.evidence.inference import estimate
from reports.evidence.records import request_for
from reports.evidence.statistics import Component
from reports.views.comparison import ScoreResult, compare
from reports.views.reproduced import (
    NOT_COMPARABLE,
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    verdict,
)

F1, ACC = "test/f1", "test/accuracy"
RecordOf = Callable[..., RunResult]


def _result(table3: Benchmark, records: list[RunResult], scale: str = "paper") -> ScoreResult:
    chosen = request_for(table3, table3.scale(scale), records, table3.rows[:1], table3.columns[:1])
    return compare(chosen).cells[0].scores[1]


def _records(
    record_of: RecordOf, accuracies: list[float], scale: str = "paper", error: float = 0.01
) -> list[RunResult]:
    return [
        record_of("fedavg", "mrpc", {F1: 0.7, ACC: value}, seed=seed, scale=scale, errors={F1: 0.01, ACC: error})
        for seed, value in enumerate(accuracies)
    ]


@pytest.mark.parametrize(
    ("accuracies", "expected"),
    [
        ([0.8396], UNDECIDED),  # the very number, but of one seed
        ([0.80, 0.84, 0.88], UNDECIDED),  # around it, but wide: the former rule took that for a reproduction
        ([0.90, 0.9001, 0.9002], NOT_REPRODUCED),  # a narrow interval far away
        ([0.8298, 0.8296, 0.8294], UNDECIDED),  # one point off: the margin itself
        ([0.8397, 0.8396, 0.8395], REPRODUCED),
    ],
)
def test_the_whole_interval_decides(
    table3: Benchmark, record_of: RecordOf, accuracies: list[float], expected: str
) -> None:
    assert _result(table3, _records(record_of, accuracies)).verdict == expected


def test_exact_seeds_without_noise_give_the_printed_value_back(table3: Benchmark, record_of: RecordOf) -> None:
    """The printed number itself, three times, of test sets without a sampling error, and a number 1.5 points off."""
    assert _result(table3, _records(record_of, [0.8396] * 3, error=0.0)).verdict == REPRODUCED
    assert _result(table3, _records(record_of, [0.8246] * 3, error=0.0)).verdict == NOT_REPRODUCED
    # Seeds that agree by chance decide no more than their test sets do: 1.645 × 4 points × √((1/3 + r) / (1 + r)).
    assert _result(table3, _records(record_of, [0.8396] * 3, error=0.04)).verdict == UNDECIDED


def test_nothing_but_whole_data_as_defined_is_comparable(table3: Benchmark, record_of: RecordOf) -> None:
    records = _records(record_of, [0.83, 0.84, 0.85])
    partial = [
        dataclasses.replace(r, inputs={**r.inputs, "data": {**r.inputs["data"], "notes": ["partial"]}}) for r in records
    ]
    assert _result(table3, partial).verdict == NOT_COMPARABLE
    assert _result(table3, _records(record_of, [0.83, 0.84, 0.85], "lite"), "lite").verdict == NOT_COMPARABLE
    changed = dataclasses.replace(table3.scale("paper"), changes=("on another encoder",))
    assert compare(request_for(table3, changed, records)).cells[0].scores[1].verdict == NOT_COMPARABLE


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0.001, 10), st.integers(2, 9), st.floats(0, 1))
def test_a_nearer_mean_is_never_judged_worse(
    ours: float, published: float, error: float, seeds: int, share: float
) -> None:
    order = (REPRODUCED, UNDECIDED, NOT_REPRODUCED)

    def judged(value: float) -> int:
        found = verdict(estimate(value, [Component(error, seeds - 1)], seeds), published, comparable=True)
        assert found is not None
        return order.index(found)

    nearer = published + share * (ours - published)
    if math.isclose(nearer, ours):
        return
    assert judged(nearer) <= judged(ours)
