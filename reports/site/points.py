"""The score–bytes front: what every method reaches on a task, and what crosses the wire for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from benchmarks.costs import Sent
from benchmarks.experiment import Column, Row
from benchmarks.measures import Metric, metric
from benchmarks.results import RunResult
from reports.evidence.published import published_for
from reports.evidence.records import PAPER, Request
from reports.evidence.scores import known, score_label, scores_of
from reports.evidence.statistics import mean, sample_sd
from reports.evidence.traffic import Cost, measured_cost

VIEWS = ("scores", "crossed")  # of tables whose numbers are scores of whole runs


@dataclass(frozen=True)
class Point:
    """One method's mark on one task: reported, or ours at a scale.

    value, sd: in the metric's unit; sd over seeds, None for one seed or in print. total_bytes, up_bytes: of the whole
    run and of that from which it begins, all clients together, without the set-up; round_bytes: sent up in a round.
    is_best: whether no other mark of its kind reaches as much with fewer bytes of the whole run. cells: ids of the
    records behind it.
    """

    paper: str
    place: str
    benchmark: str
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
    def panel(self) -> tuple[str, str]:
        """Marks of one panel may be compared: the same task and score."""
        return self.task, self.score


def points_of(request: Request) -> Iterator[Point]:
    """The marks of a table of scores: reported ones with bytes by the paper's shapes, ours with those of the ledger.

    None of other views, nor of a method whose bytes are not known before it runs.
    """
    if request.benchmark.view.name not in VIEWS:
        return
    published = published_for(request)
    for row, column in product(request.rows, request.columns):
        score = column.averaged
        entry = published.get((row.id, column.task, score))
        sent = None if entry is None else _derived(request, row, column)
        if entry is not None and sent is not None:
            rounds = request.benchmark.cell(row, column, request.paper_scale, 0).training.rounds
            sizes = sent.up_bytes + sent.down_bytes, sent.up_bytes, sent.up_bytes / rounds
            yield Point(*_of(request, row, column, PAPER), entry.value, None, 0, *sizes, is_reported=True)
        records = request.records_of(row, column)
        values = known(scores_of(records, score).at()) if records else ()
        measured = _measured(request, row, column)
        if values and measured is not None:
            of = _of(request, row, column, request.scale.id)
            yield Point(*of, mean(values), sample_sd(values), len(values), *measured, cells=_ids(records))


def _measured(request: Request, row: Row, column: Column) -> tuple[float, float, float] | None:
    """Bytes of a row's runs in all, those sent up, and those sent up in the larger round; None where none are known.

    What a row begins from was sent for it, too.
    """
    costs: list[Cost] = []
    for one in request.benchmark.lineage(row):
        cost = measured_cost(request.benchmark, column, request.records_of(one, column))
        if cost is None:
            return None
        costs.append(cost)
    totals = sum(cost.total_bytes for cost in costs), sum(cost.up_bytes for cost in costs)
    return *totals, max(cost.up_bytes / cost.rounds for cost in costs)


def _of(request: Request, row: Row, column: Column, scale: str) -> tuple[str, str, str, str, str, str, Metric, str]:
    own = request.benchmark
    label = score_label(column, column.averaged)
    return own.paper.name, own.place, own.id, scale, column.name, label, metric(column.averaged), row.name


def _ids(records: Sequence[RunResult]) -> tuple[str, ...]:
    return tuple(record.cell_id for record in records)


def _derived(request: Request, row: Row, column: Column) -> Sent | None:
    """What a whole run of the paper's own encoder sends; None where shapes alone do not give it."""
    scale = request.paper_scale
    if request.derive is None or PAPER not in row.scales or PAPER not in column.scales:
        return None
    plan = request.derive(row, column, scale)
    return None if plan is None else plan.over(request.benchmark.cell(row, column, scale, 0).training.rounds)


def with_front(points: Iterable[Point]) -> list[Point]:
    """Each mark once, at the first of the tables in which its records stand, and whether it is one of the best."""
    kept: dict[tuple[object, ...], Point] = {}
    for point in points:
        own = (point.paper, point.place, point.task, point.score, point.method)
        kept.setdefault((*point.panel, point.cells) if point.cells else (*own, point.is_reported), point)
    every = list(kept.values())
    return [replace(point, is_best=_is_best(point, every)) for point in every]


def _is_best(point: Point, every: Sequence[Point]) -> bool:
    """Whether nothing of the same task, scale and kind reaches as much with fewer bytes, or more with as many."""
    rivals = [
        other
        for other in every
        if (other.panel, other.scale, other.is_reported) == (point.panel, point.scale, point.is_reported)
    ]
    return not any(
        point.metric.gain(other.value, point.value) >= 0
        and other.total_bytes <= point.total_bytes
        and (other.value, other.total_bytes) != (point.value, point.total_bytes)
        for other in rivals
    )
