"""Score against communication: each method's score on one task, and its clients' uplink per round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from reports.evidence.inference import CONFIDENCE
from reports.evidence.paired import difference
from reports.evidence.records import Request, paired
from reports.evidence.scores import defined, scores_of
from reports.evidence.traffic import Cost, measured_cost
from reports.pages.plots import finish, method_mark, new_figure, tidy
from reports.pages.text import AT_ROUND, span

_TEXT = 0.052  # height of a label with its margin, as a share of the axes


@dataclass(frozen=True)
class Mark:
    """One method on one task.

    Args:
        scores: One per seed, in the metric's unit.
        cost: Of the whole run and its parent runs.
        cell_id: Of the first record.
    """

    row: Row
    scores: tuple[float, ...]
    cost: Cost
    cell_id: str


def marks_of(request: Request, column: Column, score: str) -> Iterator[Mark]:
    """A table's methods with runs on a task, without methods whose parent runs lack a record."""
    for row in request.rows:
        records = request.records_of(row, column)
        values = defined(scores_of(records, score).at())
        cost = measured_cost(request.benchmark, column, records, request.find)
        if values and cost is not None:
            yield Mark(row, values, cost, records[0].cell_id)


def spread_out(places: Sequence[float], room: float) -> list[float]:
    """Positions of labels, in order and with this distance, each as close as possible to its own position."""
    order, steps = np.argsort(places, kind="stable"), room * np.arange(len(places))
    positions = np.empty(len(places))
    positions[order] = isotonic_regression(np.take(places, order) - steps).x + steps
    return [float(place) for place in positions]


def front_picture(request: Request, column: Column, score: str, baseline: str, reference: str) -> Figure:
    """The gain over a row that sends nothing, against the uplink per round; one labelled mark per method.

    Args:
        request: The table.
        column: Its task.
        score: Such as "test/accuracy".
        baseline: The row with 100 % of the uplink.
        reference: The row that is zero: the per-client majority class.
    """
    zero, marks = request.benchmark.row(reference), list(marks_of(request, column, score))
    unit = next((mark.cost.round_up for mark in marks if mark.row.id == baseline), 0.0)
    gains = []
    for mark in marks if unit else ():
        pairs = paired(request.records_of(mark.row, column), request.records_of(zero, column))
        gain = difference(pairs, score, "last") if pairs and mark.row.id != reference else None
        if gain is not None and gain.value is not None and gain.interval is not None:
            gains.append((mark.row.name, round(100 * mark.cost.round_up / unit), gain.value, gain.interval, gain.n))
    figure = new_figure(9.2, 4.6)
    axes = figure.subplots()
    tidy(axes)
    axes.axhline(0, color="0.35", linestyle="--", linewidth=1.2)
    ends = [end for *_, interval, _ in gains for end in interval] or [0.0]
    low, high = min(*ends, 0.0) - 1, max(*ends, 0.0) + 1
    axes.set(ylim=(low, high), xlim=(-6, 175))
    axes.set_xticks(range(0, 101, 25))
    for share in dict.fromkeys(share for _, share, *_ in gains):
        here = [entry for entry in gains if entry[1] == share]
        labels = spread_out([value for _, _, value, *_ in here], _TEXT * (high - low))
        for step, ((name, _, value, interval, _), label) in enumerate(zip(here, labels, strict=True)):
            at, style = share + 2.0 * (step - (len(here) - 1) / 2), method_mark(name)
            errors = [[value - interval[0]], [interval[1] - value]]
            axes.errorbar([at], [value], yerr=errors, linestyle="none", markersize=8, capsize=2, **style)
            line: Any = {"arrowstyle": "-", "color": style["color"], "linewidth": 0.7}
            side = -1 if share > 30 and any(share < other <= share + 30 for _, other, *_ in gains) else 1
            place: Any = {"xytext": (share + side * (len(here) + 4), label), "va": "center", "arrowprops": line}
            place["ha"] = "left" if side > 0 else "right"
            axes.annotate(name, (at, value), color=style["color"], fontsize=9, **place)
    axes.text(174, -0.2, f"{zero.name}: sends nothing", fontsize=8.5, color="0.35", va="top", ha="right")
    axes.set_xlabel(f"uplink per round, % of {request.benchmark.row(baseline).name}'s")
    axes.set_ylabel(f"points of {metric(score).label} above\nthe per-client majority class", fontsize=9)
    better = sum(interval[0] > 0 for *_, interval, _ in gains)
    counted = f"{better} of {len(gains)} methods clearly beat" if better else "no method clearly beats"
    title = f"On {column.name}, {counted} the per-client majority class"
    seeds = span([n for *_, n in gains] or [0])
    caption = (
        f"{request.benchmark.paper.name}, {request.benchmark.place}; {request.label}; mean differences over {seeds} "
        f"seeds, {AT_ROUND['last']}, {CONFIDENCE} intervals. Methods with equal uplink are drawn side by side."
    )
    return finish(figure, title, [], caption)
