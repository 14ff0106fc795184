"""Score against bytes: what every method of a table reaches on one task, in print and here, and what it sends."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.experiment import Column, Row, Scale
from benchmarks.measures import metric
from reports.evidence.published import published_for
from reports.evidence.records import Request
from reports.evidence.scores import known, scores_of
from reports.evidence.statistics import mean, sample_sd
from reports.pages.plots import DIAMOND, finish, method_mark, new_figure, tidy
from reports.pages.text import NOT_RUN

_HOLLOW: Any = {"markerfacecolor": "white", "linestyle": "none", "markersize": 9, "markeredgewidth": 1.6}
_FULL: Any = {"linestyle": "none", "markersize": 9, "capsize": 3}


def front_picture(request: Request, column: Column, score: str, baseline: str, reference: str) -> Figure:
    """A mark for each method of a request's table on one of its tasks; reported ones hollow, ours with ± sd over seeds.

    x: bytes that clients send in a round, over the baseline row's. reference: a row that sends nothing, as a line.
    """
    figure = new_figure(8, 4.6)
    axes = figure.subplots()
    tidy(axes)
    handles: list[Any] = []
    counts: set[int] = set()
    published = published_for(request)
    for row in request.rows:
        style = method_mark(row.name)
        entry = published.get((row.id, column.task, score))
        ours = [value for value in known(scores_of(request.records_of(row, column), score).at()) if row.id != reference]
        sent = [_sent(request, row, column, scale, baseline) for scale in (request.paper_scale, request.scale)]
        if entry is not None and sent[0] is not None:
            axes.plot([sent[0]], [entry.value], **style, **_HOLLOW)
        if ours and sent[1] is not None:
            counts.add(len(ours))
            axes.errorbar([sent[1]], [mean(ours)], yerr=[sample_sd(ours) or 0.0], **style, **_FULL)
        if (entry is not None and sent[0] is not None) or (ours and sent[1] is not None):
            handles.append(Line2D([], [], **style, linestyle="none", label=row.name))
    floor = known(scores_of(_records(request, reference, column), score).at())
    if floor:
        axes.axhline(mean(floor), color="0.35", linestyle="--", linewidth=1.2)
        handles.append(Line2D([], [], color="0.35", linestyle="--", label=request.benchmark.row(reference).name))
    label = metric(score).label
    axes.set_xlabel(f"uplink per round, of what {request.benchmark.row(baseline).name} sends", fontsize=9)
    axes.set_ylabel(f"{column.name}, {label} (%)", fontsize=9)
    ran = f"n = {' to '.join(map(str, sorted({min(counts), max(counts)})))} seeds, ± sd" if counts else NOT_RUN
    handles.append(Line2D([], [], **DIAMOND, label="hollow: reported"))
    caption = (
        f"Full marks: reproduced, scale {request.scale.id} ({request.label}), {ran}; levels are not comparable "
        "with reported ones."
    )
    return finish(figure, f"{request.benchmark.paper.name}, {request.benchmark.place}", handles, caption)


def _records(request: Request, row_id: str, column: Column) -> Any:
    return request.records_of(request.benchmark.row(row_id), column)


def _sent(request: Request, row: Row, column: Column, scale: Scale, baseline: str) -> float | None:
    """Uplink of a row's round over the baseline's, by shapes; None where it is not known before.

    Of a row that begins from another one's outcome, the round of the two that sends more.
    """
    if request.derive is None:
        return None
    rows = (request.benchmark.row(baseline), *request.benchmark.lineage(row))
    sizes = [None if (found := request.derive(one, column, scale)) is None else found.up_bytes for one in rows]
    return None if None in sizes or not sizes[0] else max(size or 0 for size in sizes[1:]) / sizes[0]
