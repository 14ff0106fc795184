"""A comparison in long form: one line for each method, task and score, and one for each average."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from benchmarks.spec import JSON, Row
from reports.comparison import AverageResult, CellResult, Comparison, ScoreResult
from reports.published import AVERAGE

_WHOLE = ["n_seeds", "n_test", "rounds"]
FIELDS = [
    *["benchmark", "place", "scale", "scale_label", "score_at", "row", "method", "printed"],
    *[
        "column",
        "task",
        "score",
        "status",
        "ours",
        "n_seeds",
        "seeds",
        "sd",
        "interval_low",
        "interval_high",
        "sampling_error",
    ],
    *[
        "published",
        "derivation",
        "difference",
        "verdict",
        "n_test",
        "rounds",
        "round_bytes",
        "up_bytes",
        "down_bytes",
        "setup_bytes",
    ],
    "train_seconds",
]


def _cell(cell: CellResult, result: ScoreResult) -> dict[str, JSON]:
    """What is known of one score."""
    low, high = result.interval or (None, None)
    known: dict[str, JSON] = {
        "column": cell.column.task,
        "task": cell.column.name,
        "score": result.score,
        "status": "run" if cell.is_run else "not run",
        "ours": result.ours,
        "n_seeds": result.seeds,
        "seeds": " ".join(map(str, cell.seeds)),
        "sd": result.sd,
        "interval_low": low,
        "interval_high": high,
        "sampling_error": result.sampling_error,
        "published": result.published,
        "derivation": result.derivation,
        "difference": result.difference,
        "verdict": result.verdict,
    }
    if cell.cost is not None:
        cost = cell.cost
        known |= {
            "n_test": round(cost.test_examples),
            "rounds": round(cost.rounds),
            "round_bytes": cost.round_bytes,
            "up_bytes": cost.up_bytes,
            "down_bytes": cost.down_bytes,
            "setup_bytes": cost.setup_bytes,
            "train_seconds": cost.train_seconds,
        }
    return known


def _average(result: AverageResult) -> dict[str, JSON]:
    """What is known of a row's average."""
    low, high = result.interval or (None, None)
    return {
        "column": AVERAGE,
        "task": "Average",
        "score": "",
        "status": "not run" if result.ours is None else "run",
        "ours": result.ours,
        "interval_low": low,
        "interval_high": high,
        "published": result.published,
        "difference": result.difference,
    }


def _lines(comparison: Comparison) -> Iterator[dict[str, JSON]]:
    """Every line of the file."""

    def common(row: Row) -> dict[str, JSON]:
        return {
            "benchmark": comparison.benchmark_id,
            "place": comparison.place,
            "scale": comparison.scale.id,
            "scale_label": comparison.scale.label,
            "score_at": comparison.score_at,
            "row": row.id,
            "method": row.name,
            "printed": row.printed,
        }

    for cell in comparison.cells:
        for result in cell.scores:
            yield common(cell.row) | _cell(cell, result)
    for average in comparison.averages:
        yield common(average.row) | _average(average)


def frame(comparison: Comparison) -> pd.DataFrame:
    """The comparison as a data frame of FIELDS: scores in percent, bytes and seconds as means over seeds."""
    table = pd.DataFrame(list(_lines(comparison)), columns=FIELDS)
    return table.astype(dict.fromkeys(_WHOLE, "Int64"))
