"""Score against bytes: what every method reaches on a task, and what it sends for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from benchmarks.costs import Traffic
from benchmarks.experiment import Column, Row
from benchmarks.measures import Metric, metric
from benchmarks.results import all_stages, stage_bytes
from reports.evidence.published import published_for
from reports.evidence.records import PAPER, Request
from reports.evidence.scores import known, score_label, scores_of
from reports.evidence.statistics import mean, sample_sd
from reports.evidence.traffic import measured_cost

VIEWS = ("scores", "crossed")  # tables whose numbers are scores of whole runs


@dataclass(frozen=True)
class Point:
    """One method's mark on one task: published, or ours at a scale.

    Args:
        value: In the metric's unit.
        sd: Over seeds; None for one seed or a published value.
        total_bytes: Of the whole run and of the run that it begins from, all clients together, without the set-up.
        up_bytes: Of these, sent up.
        round_bytes: Sent up in a round.
        is_best: No other mark of its kind reaches as much with fewer bytes of the whole run.
        cells: Ids of the records behind it.
    """

    paper: str
    place: str
    scale: str
    task: str
    score: str
    metric: Metric
    method: str
    value: float
    sd: float | None
    n: int
    total_bytes: float
    up_bytes: float
    round_bytes: float
    is_reported: bool = False
    is_best: bool = False
    cells: tuple[str, ...] = ()

    @property
    def kind(self) -> tuple[object, ...]:
        """Marks of one kind may be compared: the same task, score, scale and origin."""
        return self.task, self.score, self.scale, self.is_reported


def points_of(request: Request) -> Iterator[Point]:
    """The marks of a table of scores: published ones with bytes by the paper's shapes, ours with those of the ledger.

    No marks for other views, or for a method whose bytes are not known before it runs.
    """
    if request.benchmark.view.name not in VIEWS:
        return
    published, benchmark = published_for(request), request.benchmark
    for row, column in product(request.rows, request.columns):
        score, paper = column.averaged, benchmark.paper.name
        task = column.name, score_label(column, score), metric(score), row.name
        entry = published.get((row.id, column.task, score))
        sent = None if entry is None else _derived(request, row, column)
        if entry is not None and sent is not None:
            rounds = benchmark.cell(row, column, request.paper_scale, 0).training.rounds
            sizes = sent.up_bytes + sent.down_bytes, sent.up_bytes, sent.up_bytes / rounds
            yield Point(paper, benchmark.place, PAPER, *task, entry.value, None, 0, *sizes, is_reported=True)
        records = request.records_of(row, column)
        values = known(scores_of(records, score).at()) if records else ()
        measured = _measured(request, row, column)
        if values and measured is not None:
            of = paper, benchmark.place, request.scale.id, *task, mean(values), sample_sd(values), len(values)
            yield Point(*of, *measured, cells=tuple(record.cell_id for record in records))


def _measured(request: Request, row: Row, column: Column) -> tuple[float, float, float] | None:
    """A row's bytes in all, those sent up, and those sent up in a round of the stage that sends most; None if unknown.

    They include the bytes of the earlier runs from which its runs start.
    """
    records = request.records_of(row, column)
    cost = measured_cost(request.benchmark, column, records, request.find)
    if cost is None:
        return None
    rounds = [
        max(stage_bytes(stage).up / max(len(stage.rounds), 1) for stage in all_stages(record, request.find) or [record])
        for record in records
    ]
    return cost.total_bytes, cost.up_bytes, mean(rounds)


def _derived(request: Request, row: Row, column: Column) -> Traffic | None:
    """What a whole run of the paper's own encoder sends; None if shapes alone do not give it."""
    scale = request.paper_scale
    if request.derive is None or PAPER not in row.scales or PAPER not in column.scales:
        return None
    plan = request.derive(row, column, scale)
    return None if plan is None else plan.total


def with_front(points: Iterable[Point]) -> list[Point]:
    """Each mark once, at the first of the tables in which its records stand, and whether it is one of the best."""
    kept: dict[tuple[object, ...], Point] = {}
    for point in points:
        own = (point.paper, point.place, point.task, point.score, point.method, point.is_reported)
        kept.setdefault((point.task, point.score, point.cells) if point.cells else own, point)
    every = list(kept.values())
    return [replace(point, is_best=not any(_beats(other, point) for other in every)) for point in every]


def _beats(other: Point, point: Point) -> bool:
    """Whether a mark of the same kind reaches as much with fewer bytes, or more with as many."""
    is_as_good = other.kind == point.kind and point.metric.gain(other.value, point.value) >= 0
    is_other = (other.value, other.total_bytes) != (point.value, point.total_bytes)
    return is_as_good and other.total_bytes <= point.total_bytes and is_other
