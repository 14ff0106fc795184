"""Bytes to a target in long form: one line for each method, task, target and quantity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from benchmarks.spec import JSON, Column, Row
from reports.gain import Gain
from reports.layout import NOT_RUN
from reports.page import Request
from reports.views.targets.derived import Derived
from reports.views.targets.outcomes import KINDS, Outcome, Outcomes
from reports.views.targets.stated import stated_of

FIELDS = [
    *["benchmark", "place", "scale", "scale_label", "row", "method", "printed", "column", "task", "score", "encoder"],
    *["target", "target_percent", "quantity", "relation", "value", "published", "n_seeds", "n_reached"],
]
Quantity = tuple[str, str, float | None]  # name, relation ("=", ">" censored, "≥" its bound, "not run"), value


def _gain(gain: Gain, relation: str = "=") -> Iterator[Quantity]:
    """A gain and its factors; of these only the rounds can make it a bound."""
    yield "gain", relation, float(gain.total)
    yield "gain_layers", "=", float(gain.layers)
    yield "gain_rounds", relation, float(gain.rounds)
    yield "gain_precision", "=", float(gain.precision)


def _quantities(outcome: Outcome) -> Iterator[Quantity]:
    """What is known of one method, task and target."""
    if outcome.cost is None:
        yield "status", NOT_RUN, None
        return
    yield "round_bytes", "=", outcome.cost.round_bytes
    yield "setup_bytes", "=", outcome.cost.setup_bytes
    if outcome.sent is not None:
        relation = "=" if outcome.is_complete else ">"
        yield "rounds", relation, float(outcome.sent.rounds)
        yield "bytes", relation, float(outcome.sent.bytes)
    if outcome.gain is not None:
        yield from _gain(outcome.gain, "≥" if outcome.is_bound else "=")


def _common(request: Request, row: Row, column: Column) -> dict[str, JSON]:
    """What every line says."""
    return {
        "benchmark": request.benchmark.id,
        "place": request.benchmark.place,
        "scale": request.scale.id,
        "scale_label": request.scale.label,
        "row": row.id,
        "method": row.name,
        "printed": row.printed,
        "column": column.task,
        "task": column.name,
        "score": column.averaged,
    }


def _measured(found: Outcomes) -> Iterator[dict[str, JSON]]:
    """Lines of our records."""
    request = found.request
    for kind in KINDS:
        for column in request.columns:
            for outcome in found.of(kind, column):
                for quantity, relation, value in _quantities(outcome):
                    yield _common(request, outcome.row, column) | {
                        "encoder": request.scale.backbone,
                        "target": kind,
                        "target_percent": None if outcome.target is None else 100 * outcome.target,
                        "quantity": quantity,
                        "relation": relation,
                        "value": value,
                        "n_seeds": len(outcome.seeds),
                        "n_reached": outcome.reached if outcome.attempts else None,
                    }


def _derived_quantities(found: Derived) -> Iterator[tuple[str, float | None, float | None]]:
    """Name, value and printed value of what is known of one method."""
    size, cost, gain = (None, None, None)
    if found.published is not None:
        size, cost, gain = map(float, (found.published.size_gb, found.published.cost_gb, found.published.gain))
    yield "derived_round_bytes", found.size_bytes, None
    yield "derived_size_gb", float(found.size_gb), size
    yield "implied_rounds", float(found.rounds), None
    yield "derived_cost_gb", float(found.cost_gb), cost
    yield "gain_of_rounded_sizes", float(found.rounded_gain), gain
    for name, _, value in _gain(found.gain):
        yield f"exact_{name}", value, None


def _derived(request: Request, derived: Sequence[Derived]) -> Iterator[dict[str, JSON]]:
    """Lines of the paper's own encoder, with what is printed."""
    for found in derived:
        for quantity, value, published in _derived_quantities(found):
            yield _common(request, found.row, request.columns[0]) | {
                "encoder": request.benchmark.scale("paper").backbone,
                "quantity": quantity,
                "relation": "=",
                "value": value,
                "published": published,
            }


def _stated(request: Request) -> Iterator[dict[str, JSON]]:
    """Lines of what the text states; the sign stands where a measured value's relation does."""
    for fact in stated_of(request):
        yield _common(request, fact.row, fact.column) | {
            "encoder": request.benchmark.scale("paper").backbone,
            "target": "printed",
            "quantity": "stated_megabytes",
            "relation": fact.sign,
            "published": fact.megabytes,
        }


def frame(found: Outcomes, derived: Sequence[Derived]) -> pd.DataFrame:
    """All outcomes as a data frame of FIELDS: what was measured, derived and stated; bytes in one direction."""
    lines = [*_measured(found), *_derived(found.request, derived), *_stated(found.request)]
    table = pd.DataFrame(lines, columns=FIELDS)
    return table.astype({"n_seeds": "Int64", "n_reached": "Int64", "value": "Float64", "published": "Float64"})
