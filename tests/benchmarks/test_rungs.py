"""Which trials a rung gives up: all but the best quarter, and what ties with the last of them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.fedsplitbert import table3
from benchmarks.registry import columns_of, rows_of
from benchmarks.spec import Cell
from benchmarks.sweep import going_on
from benchmarks.trials import Trial, Tuning

(ROW,) = rows_of(table3.BENCHMARK, ["fedavg"])
(COLUMN,) = columns_of(table3.BENCHMARK, ["mrpc"])


@pytest.mark.parametrize(
    ("scores", "left"),
    [
        ((0.1, 0.5, 0.2, 0.4, 0.3, 0.0, 0.05, 0.15), [1, 3]),
        ((0.1, 0.5, 0.2, 0.5, 0.5, 0.0, 0.05, 0.15), [1, 3, 4]),
        ((0.1, 0.5, 0.2, 0.2, 0.0, 0.0, 0.0, 0.0), [1, 2, 3]),
        ((0.0,) * 8, list(range(8))),  # nothing learned yet: no rate is told from another
        ((0.3, None, 0.2), [0]),  # a trial without a score does not go on
        ((None, None), []),
    ],
)
def test_trials_that_tie_at_a_rung_go_on_together(
    cells_of: Callable[..., list[Cell]], scores: tuple[float | None, ...], left: list[int]
) -> None:
    trials, records = [], {}
    for number, score in enumerate(scores):
        (cell,) = cells_of(["fedavg"], f"training.learning_rate={number + 1}e-4")
        trials.append(Trial(number, {"training.learning_rate": cell.training.learning_rate}, ROW, (cell,)))
        found: Any = SimpleNamespace(cell_id=str(number), rounds=(), score=lambda *_, score=score: score)
        records[trials[-1].cells_at(1)[0].spec_id] = found
    tuning = Tuning(ROW, COLUMN, {}, "study", tuple(trials), rungs=(1,))
    assert sorted(trial.number for trial in going_on(tuning, records, 1)) == left
