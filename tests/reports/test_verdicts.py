"""Verdicts on single scores: the rule, and where it is not applied."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark
from reports.evidence.records import request_for
from reports.evidence.statistics import t_interval
from reports.views.comparison import (
    NOT_COMPARABLE,
    NOT_REPRODUCED,
    REPRODUCED,
    RULE,
    WITHIN,
    ScoreResult,
    compare,
    verdict,
)
from reports.views.scores import scores_grid

F1, ACC = "test/f1", "test/accuracy"
PRINTED = 83.96  # Table III, FedAvg, MRPC, accuracy
RecordOf = Callable[..., RunRecord]


def _result(table3: Benchmark, records: list[RunRecord], scale: str = "paper") -> ScoreResult:
    chosen = request_for(table3, table3.scale(scale), records, table3.rows[:1], table3.columns[:1])
    return compare(chosen).cells[0].scores[1]


def _records(
    record_of: RecordOf, accuracies: list[float], scale: str = "paper", error: float = 0.01
) -> list[RunRecord]:
    return [
        record_of("fedavg", "mrpc", {F1: 0.7, ACC: value}, seed=seed, scale=scale, errors={F1: 0.01, ACC: error})
        for seed, value in enumerate(accuracies)
    ]


def test_three_seeds_around_the_printed_value_reproduce_it(table3: Benchmark, record_of: RecordOf) -> None:
    result = _result(table3, _records(record_of, [0.83, 0.84, 0.85]))
    assert result.interval == pytest.approx(t_interval([83.0, 84.0, 85.0]))
    assert result.verdict == REPRODUCED


@pytest.mark.parametrize(
    ("accuracies", "expected"),
    [
        ([0.8396], WITHIN),  # the very number, but of one seed
        ([0.8296], WITHIN),  # one point off
        ([0.8296 - 0.02], NOT_REPRODUCED),  # 3 points; chance gives 1.96 * sqrt(2) * 1 = 2.77
        ([0.8296 - 0.017], WITHIN),  # 2.7 points
        ([0.90, 0.9001, 0.9002], NOT_REPRODUCED),  # three seeds, a narrow interval far away
    ],
)
def test_other_cases(table3: Benchmark, record_of: RecordOf, accuracies: list[float], expected: str) -> None:
    assert _result(table3, _records(record_of, accuracies)).verdict == expected


def test_nothing_but_whole_data_as_defined_is_comparable(table3: Benchmark, record_of: RecordOf) -> None:
    records = _records(record_of, [0.83, 0.84, 0.85])
    partial = [
        dataclasses.replace(r, inputs={**r.inputs, "data": {**r.inputs["data"], "notes": ["partial"]}}) for r in records
    ]
    assert _result(table3, partial).verdict == NOT_COMPARABLE
    assert _result(table3, _records(record_of, [0.83, 0.84, 0.85], "lite"), "lite").verdict == NOT_COMPARABLE
    changed = dataclasses.replace(table3.scale("paper"), changed=True)
    assert compare(request_for(table3, changed, records)).cells[0].scores[1].verdict == NOT_COMPARABLE


def test_the_table_shows_verdicts_and_their_rule_at_paper_scale_alone(table3: Benchmark, record_of: RecordOf) -> None:
    for scale, shown in (("paper", True), ("lite", False)):
        comparison = compare(request_for(table3, table3.scale(scale), _records(record_of, [0.83, 0.84, 0.85], scale)))
        labels = {line.label for group in scores_grid(comparison).groups for line in group.lines}
        assert ("verdict" in labels) == shown
        assert (RULE in comparison.notes) == shown


@given(st.floats(0, 100), st.floats(0, 100), st.integers(1, 9), st.floats(0, 10), st.floats(0, 5), st.floats(0, 1))
def test_a_nearer_mean_is_never_judged_worse(
    ours: float, published: float, seeds: int, half: float, error: float, share: float
) -> None:
    order = (REPRODUCED, WITHIN, NOT_REPRODUCED)

    def judged(value: float) -> int:
        found = verdict(value - published, seeds, (value - half, value + half), published, error, comparable=True)
        assert found is not None
        return order.index(found)

    nearer = published + share * (ours - published)
    if math.isclose(nearer, ours):
        return
    assert judged(nearer) <= judged(ours)
