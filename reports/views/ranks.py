"""The numbers of the view of orders: by what methods are ordered, on which seeds, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.costs.networks import TYPICAL, Deployment
from benchmarks.experiment import Column, Row
from benchmarks.measures import metric, of_clients
from benchmarks.results import RunResult, all_stages
from reports.evidence.budgets import Curves, chosen_within, on_front, score_within
from reports.evidence.inference import resampled
from reports.evidence.paired import resplit_ratio
from reports.evidence.published import MEGABYTE
from reports.evidence.records import Request, comparable, paired
from reports.evidence.scores import WORST, worst_clients
from reports.evidence.statistics import Estimate
from reports.evidence.traffic import whole_run
from reports.frame import TableView
from reports.views.clients import gain_of, level_of

MEAN, BYTES, FRONT = "mean", "bytes", "front"
MINUTE = 60
FEWEST = 2  # methods that have an order
SAME_TIME = 0.01  # times count as equal below this relative difference


@dataclass(frozen=True)
class Order:
    """A criterion that orders methods: a score, in the metric's direction, or a time (shorter is better)."""

    id: str
    label: str
    deployment: Deployment | None = None

    def score(self, column: Column) -> str:
        """The score that methods are ordered by; "" for a time."""
        if self.deployment is not None:
            return ""
        return of_clients(column.averaged, WORST) if self.id == WORST else column.averaged

    def sign(self, column: Column) -> int:
        """The sign of a difference that is better."""
        return metric(self.score(column)).sign if self.score(column) else -1


class Ranks(TableView):
    """Five numbers and ranks per method and task.

    Methods are compared on the seeds that all of them have (`comparable`). Other methods have the numbers of their own
    seeds, and no rank.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.budget = float(MEGABYTE * self.options["megabytes"])  # bytes that one client may send
        self.ways: Sequence[str] = self.options.get("directions", ("up",))
        self.link = " and ".join(f"{way}link" for way in self.ways)
        self.budgets = [float(MEGABYTE * size) for size in self.options["front"]]  # where the best is shown

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """The criteria that order methods, the mean first."""
        times = (Order(network, TYPICAL[network].label, TYPICAL[network]) for network in self.options["networks"])
        return Order(MEAN, "mean"), Order(WORST, self.worst_label), Order(BYTES, within(self.budget)), *times

    @cached_property
    def worst(self) -> dict[str, tuple[Sequence[RunResult], str]]:
        """Cell -> its records and score, by which its worst clients are chosen."""
        cells = ((row, column) for column in self.columns for row in self.rows_of(column))
        return {f"{row.name} on {column.name}": (self.records(row, column), column.averaged) for row, column in cells}

    @property
    def worst_label(self) -> str:
        """What the worst client is: no cell may have one that other seeds chose."""
        is_chosen = any(worst_clients(*cell) for cell in self.worst.values())
        return "worst client" if is_chosen or not self.worst else "worst client within a run"

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns with runs of two or more methods."""
        return tuple(column for column in self.request.columns if len(self.rows_of(column)) >= FEWEST)

    def rows_of(self, column: Column) -> list[Row]:
        """The rows with runs on a task, including their parent runs."""
        return [row for row in self.request.rows if self._finished(row, column)]

    @cached_property
    def compared(self) -> dict[str, dict[str, tuple[RunResult, ...]]]:
        """Task -> row id -> its records of the seeds that all compared rows have."""
        return {
            column.task: comparable({row.id: self._finished(row, column) for row in self.rows_of(column)})
            for column in self.columns
        }

    def seeds(self, column: Column) -> tuple[int, ...]:
        """The seeds on which methods are compared on a task."""
        return tuple(record.cell.seed for record in next(iter(self.compared[column.task].values()), ()))

    def records(self, row: Row, column: Column) -> Sequence[RunResult]:
        """The records of the common seeds; all of a row that is not compared."""
        return self.compared.get(column.task, {}).get(row.id) or self._finished(row, column)

    def _finished(self, row: Row, column: Column) -> Sequence[RunResult]:
        records = self.request.records_of(row, column)
        return records if all(all_stages(record, self.request.find) for record in records) else ()

    # ---- numbers ---------------------------------------------------------------------------------------------------

    def _number(self, record: RunResult, column: Column, order: Order) -> float | None:
        """A run's score within the budget, or its minutes; None if no round fits, or if operations are unknown."""
        if order.deployment is None:
            return score_within(record, column.averaged, self.budget, self.request.find, self.ways)
        rounds = whole_run(record, self.request)
        return order.deployment.run_seconds(rounds) / MINUTE if rounds else None

    def _estimate(self, values: Sequence[float | None], records: Sequence[RunResult], order: Order) -> Estimate:
        """A mean over seeds. Bytes and operations are exact, so a time's only error is their spread over seeds."""
        if order.deployment is not None:
            return resampled(values, 0.0, floor=0.0)
        return resampled(values, resplit_ratio(records))

    def estimate(self, row: Row, column: Column, order: Order) -> Estimate:
        """The number by which a method is ordered on a task."""
        records = self.records(row, column)
        if order.id in (MEAN, WORST):
            return level_of(records, order.score(column))
        return self._estimate([self._number(record, column, order) for record in records], records, order)

    def gain(self, rows: tuple[Row, Row], column: Column, order: Order) -> int | None:
        """1 if the first row is significantly better than the second, -1 if it is worse, 0 if neither.

        None if one of them has no number.
        """
        pairs = paired(*(self._finished(row, column) for row in rows))
        if not pairs:
            return None
        if order.id in (MEAN, WORST):
            estimate = gain_of(pairs, order.score(column))
        else:
            both = [[self._number(record, column, order) for record in pair] for pair in pairs]
            sign = order.sign(column)
            gains = [None if one is None or other is None else sign * (one - other) for one, other in both]
            estimate = self._estimate(gains, [pair[0] for pair in pairs], order)
            if order.deployment is not None and all(map(_is_same_time, both)):
                return 0
        if estimate.value is None:
            return None
        low, high = estimate.ends or (0.0, 0.0)
        return 1 if low > 0 else -1 if high < 0 else 0

    @cached_property
    def ranked(self) -> dict[tuple[str, str], dict[str, tuple[int | None, Estimate]]]:
        """(task, order) -> row id -> its rank and number, from the best to the worst, those without a rank last."""
        return {
            (column.task, order.id): self._ranked(column, order) for column in self.columns for order in self.orders
        }

    def _ranked(self, column: Column, order: Order) -> dict[str, tuple[int | None, Estimate]]:
        """A row has a rank if it is compared and has a number on every common seed; equal times share one."""
        numbers = {row.id: self.estimate(row, column, order) for row in self.rows_of(column)}
        whole = {id for id in self.compared[column.task] if numbers[id].n == len(self.seeds(column))}
        sign = order.sign(column)

        def place(id: str) -> tuple[bool, bool, float]:
            value = numbers[id].value
            return id not in whole, value is None, -sign * (value or 0.0)

        def rank(id: str) -> int:
            above = [other for other in whole if place(other) < place(id)]
            if order.deployment is not None:
                above = [other for other in above if not _is_same_time((numbers[other].value, numbers[id].value))]
            return len(above) + 1

        return {id: (rank(id) if id in whole else None, numbers[id]) for id in sorted(numbers, key=place)}

    def chosen(self, row: Row, column: Column) -> Estimate:
        """The score within the budget in the round that is best on validation data.

        A row that corrects predictions takes the round of the row that it corrects.
        """
        by = self.request.benchmark.row(row.corrects) if row.corrects else row
        runs = {record.cell.seed: record for record in self._finished(by, column)}
        limit, records = (self.budget, self.request.find, self.ways), self.records(row, column)
        values = [chosen_within(one, column.averaged, *limit, by=runs[one.cell.seed]) for one in records]
        return resampled(values, resplit_ratio(records))

    @cached_property
    def fronts(self) -> dict[tuple[str, str], list[list[float]]]:
        """(task, row's name) -> at each budget its probability of being the best, with its band."""
        chances = {column.task: self.chances(column, self.curves(column, self.budgets)) for column in self.columns}
        return {(task, name): band.T.tolist() for task, bands in chances.items() for name, band in bands.items()}

    def chances(self, column: Column, curves: Curves) -> dict[str, np.ndarray]:
        """Compared method -> its probability of being the best, with its band; see `on_front`."""
        rows = self.compared.get(column.task, {})  # without two comparable rows a task is missing
        names = [row.name for row in self.rows_of(column) if row.id in rows]
        return on_front({name: curves[name] for name in names}, metric(column.averaged).sign)

    def curves(self, column: Column, budgets: Sequence[float]) -> Curves:
        """Method -> the scores of its seeds at each budget; NaN where no round fits, or its score is undefined."""

        def at(record: RunResult) -> list[float]:
            values = (score_within(record, column.averaged, size, self.request.find, self.ways) for size in budgets)
            return [np.nan if value is None else value for value in values]

        return {row.name: np.array(list(map(at, self.records(row, column)))) for row in self.rows_of(column)}


def _is_same_time(times: Sequence[float | None]) -> bool:
    """Whether two times count as equal."""
    one, other = times
    return one is not None and other is not None and abs(one - other) < SAME_TIME * max(one, other)


def within(budget: float) -> str:
    """A communication budget as a limit."""
    return f"within {budget / MEGABYTE:g} MB"
