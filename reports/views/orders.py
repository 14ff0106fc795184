"""The view of orders: the methods by mean, by worst client, by score within a number of bytes, and by time.

Options: megabytes, the bytes of one client by which methods are ordered; front, those at which the best is shown;
networks, two names of `benchmarks.costs.networks.TYPICAL`, the slower one first; directions, of the bytes that count,
by default up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.costs.networks import TYPICAL, Deployment
from benchmarks.experiment import Column, Row
from benchmarks.measures import metric, of_clients
from benchmarks.results import RunResult, all_stages
from benchmarks.run_config import JSON
from reports.evidence.budgets import Curves, on_front, resampled_means, score_within, spent
from reports.evidence.inference import CONFIDENCE, LEVEL, resampled
from reports.evidence.paired import resplit_ratio
from reports.evidence.published import MEGABYTE
from reports.evidence.records import Request, paired
from reports.evidence.scores import WORST
from reports.evidence.statistics import Estimate
from reports.evidence.traffic import whole_run
from reports.frame import TableView
from reports.pages.page import Grid, Group, Line, keys_of
from reports.pages.plots import colour_of, finish, panels_of, tidy, with_points
from reports.pages.text import NOTHING, in_units
from reports.views.clients import bounds, gain_of, level_of, with_bounds

MEAN, BYTES, FRONT = "mean", "bytes", "front"
MINUTE = 60
BUDGETS = 40  # points of a curve
NAMED = 4  # pairs in a sentence, at most
FEWEST = 2  # methods that have an order
LEAST_CHANCE = 0.05  # probability of being the best from which a method is named


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


class Orders(TableView):
    """Five numbers and ranks per method and task; only rows with runs on a task are ranked there."""

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
        return Order(MEAN, "mean"), Order(WORST, "worst client"), Order(BYTES, _within(self.budget)), *times

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns with runs of two or more methods."""
        return tuple(column for column in self.request.columns if len(self.rows_of(column)) >= FEWEST)

    def rows_of(self, column: Column) -> list[Row]:
        """The rows with runs on a task, including their earlier runs."""
        return [row for row in self.request.rows if self._records(row, column)]

    def _records(self, row: Row, column: Column) -> Sequence[RunResult]:
        records = self.request.records_of(row, column)
        return records if all(all_stages(record, self.request.find) for record in records) else ()

    # ---- numbers ---------------------------------------------------------------------------------------------------

    def _number(self, record: RunResult, column: Column, order: Order) -> float | None:
        """A run's score within the bytes, or its minutes; None if no round fits, or if operations are unknown."""
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
        records = self._records(row, column)
        if order.id in (MEAN, WORST):
            return level_of(records, order.score(column))
        return self._estimate([self._number(record, column, order) for record in records], records, order)

    def gain(self, rows: tuple[Row, Row], column: Column, order: Order) -> int:
        """1 if the first row is certainly better than the second, -1 if it is certainly worse, 0 if neither."""
        pairs = paired(*(self._records(row, column) for row in rows))
        if not pairs:
            return 0
        if order.id in (MEAN, WORST):
            estimate = gain_of(pairs, order.score(column))
        else:
            both = [[self._number(record, column, order) for record in pair] for pair in pairs]
            sign = order.sign(column)
            gains = [None if one is None or other is None else sign * (one - other) for one, other in both]
            estimate = self._estimate(gains, [pair[0] for pair in pairs], order)
        low, high = estimate.ends or (0.0, 0.0)
        return 1 if low > 0 else -1 if high < 0 else 0

    @cached_property
    def ranked(self) -> dict[tuple[str, str], dict[str, tuple[int, Estimate]]]:
        """(task, order) -> row id -> its rank and number, from the best to the worst, those without a number last."""
        ranked = {}
        for column in self.columns:
            for order in self.orders:
                numbers = [(row.id, self.estimate(row, column, order)) for row in self.rows_of(column)]
                sign = order.sign(column)
                numbers.sort(key=lambda pair: (pair[1].value is None, -sign * (pair[1].value or 0.0)))
                values = [one.value for _, one in numbers]
                ranked[column.task, order.id] = {row: (values.index(one.value) + 1, one) for row, one in numbers}
        return ranked

    @cached_property
    def fronts(self) -> dict[tuple[str, str], list[list[float]]]:
        """(task, row's name) -> at each budget its probability of being the best, with its band; see `on_front`."""
        return {
            (column.task, name): band.T.tolist()
            for column in self.columns
            for name, band in on_front(self.curves(column, self.budgets), metric(column.averaged).sign).items()
        }

    def lines(self) -> Iterator[dict[str, JSON]]:
        """A line for each row, task and order, and for each budget the row's probability of being the best."""
        for column in self.columns:
            for row in self.rows_of(column):
                common = keys_of(self.request, row, column) | {"score": column.averaged}
                for order in self.orders:
                    rank, one = self.ranked[column.task, order.id][row.id]
                    low, high = bounds(one, order.score(column)) or (None, None)
                    line = common | {"quantity": order.id, "value": one.value, "low": low, "high": high}
                    yield line | {"rank": None if one.value is None else rank, "n_seeds": one.n}
                for budget, chance in zip(self.budgets, self.fronts.get((column.task, row.name), ()), strict=False):
                    numbers = dict(zip(("value", "low", "high"), chance, strict=True))
                    yield common | numbers | {"quantity": FRONT, "counted": _within(budget)}

    def curves(self, column: Column, budgets: Sequence[float]) -> Curves:
        """Method -> the scores of its seeds at each budget; NaN where no round fits."""

        def at(record: RunResult) -> list[float]:
            values = (score_within(record, column.averaged, size, self.request.find, self.ways) for size in budgets)
            return [np.nan if value is None else value for value in values]

        return {row.name: np.array(list(map(at, self._records(row, column)))) for row in self.rows_of(column)}

    # ---- tables ----------------------------------------------------------------------------------------------------

    def grids(self) -> Iterator[Grid]:
        """Groups are tasks, lines methods in the order of their mean: five orders, and the front by bytes."""
        units = [(order.label, "min" if order.deployment else "score") for order in self.orders]
        headers = (*units, (_within(self.budget), "chosen round"))
        title = f"Methods in five orders: rank and number with {CONFIDENCE} interval"
        yield Grid(title, headers, tuple(self._groups()), "Task", is_whole=True)
        title = f"Which method is the best within the {self.link} of one client"
        groups = tuple(Group(column.name, tuple(self._chances(column))) for column in self.columns)
        yield Grid(title, (("best with probability",),), groups, "Task")

    def _groups(self) -> Iterator[Group]:
        for column in self.columns:
            rows = {row.id: row for row in self.rows_of(column)}
            ranks = self.ranked[column.task, MEAN]
            lines = tuple(
                Line(self.request.name_of(rows[id]), self._cells(rows[id], column), ranks[id][0] == 1) for id in ranks
            )
            yield Group(f"{column.name}, {metric(column.averaged).label}", lines)

    def _cells(self, row: Row, column: Column) -> tuple[str, ...]:
        """Rank and number in each order, and the score of the chosen round within the bytes."""
        each = ((*self.ranked[column.task, order.id][row.id], order) for order in self.orders)
        ranks = (
            NOTHING if one.value is None else f"{rank}. {with_bounds(one, order.score(column))}"
            for rank, one, order in each
        )
        records, limit = self._records(row, column), (column.averaged, self.budget, self.request.find, self.ways)
        chosen = resampled([score_within(one, *limit, chosen=True) for one in records], resplit_ratio(records))
        return *ranks, with_bounds(chosen, column.averaged)

    def _chances(self, column: Column) -> Iterator[Line]:
        """For each budget, the methods that may be the best, the most probable first."""
        fronts = [(name, front) for (task, name), front in self.fronts.items() if task == column.task]
        for place, budget in enumerate(self.budgets):
            at = [(*front[place], name) for name, front in fronts if front[place][0] >= LEAST_CHANCE]
            texts = (f"{name} {chance:.0%} [{low:.0%}, {high:.0%}]" for chance, low, high, name in sorted(at)[::-1])
            yield Line(_within(budget), ("; ".join(texts) or NOTHING,))

    def method(self) -> Iterator[str]:
        """How the numbers were obtained."""
        times = "; ".join(
            f"{one.deployment.network.source}; {one.deployment.device.source}" for one in self.orders if one.deployment
        )
        yield (
            f"Scores{in_units(self.columns or self.request.columns)} as in docs/protocol.md; worst client as in the "
            f"table of clients. Within bytes: {self.link} of one client with all earlier runs, without the one-time "
            "model; the mean of up to the last three rounds that fit, or the round chosen on validation data. Best "
            f"with probability, from {LEAST_CHANCE:.0%} on: over resampled seeds, in brackets over seeds that are "
            "themselves resampled. Time: the whole run, every round as long as its slowest client's download, "
            "computation, upload and half a round trip for each message; texts at their full length, "
            f"{Deployment.utilisation:.0%} of the device's peak ({times})."
        )

    # ---- where the orders differ -----------------------------------------------------------------------------------

    @cached_property
    def disagreements(self) -> dict[str, dict[str, list[str]]]:
        """Order -> the pairs of methods that it decides like the mean, opposite to it, alone, or not."""
        by_order: dict[str, dict[str, list[str]]] = {order.id: {} for order in self.orders}
        for column in self.columns:
            for rows in combinations(self.rows_of(column), 2):
                by = {order.id: self.gain(rows, column, order) for order in self.orders}
                for name, gain in by.items():
                    pair = f"{rows[0].name} and {rows[1].name} on {column.name}"
                    by_order[name].setdefault(_kind(by[MEAN], gain), []).append(pair)
        return by_order

    def conclusions(self) -> Iterator[str]:
        """Sentences computed from records."""
        if not self.columns:
            return
        yield "{}; {}.".format(*self.finding() or ())
        slow, fast = (order for order in self.orders if order.deployment is not None)
        counts = {order.id: _counts(self.disagreements[order.id]) for order in self.orders}
        pairs, decided = sum(map(len, self.disagreements[MEAN].values())), self.disagreements[MEAN].get("same", ())
        swapped = sum(self._swapped(column, slow, fast) for column in self.columns)
        yield (
            f"By mean, {len(decided)} of {pairs} pairs of methods differ by more than the error. The worst client "
            f"{counts[WORST]}; the score {_within(self.budget)} of {self.link} {counts[BYTES]}."
        )
        yield (
            f"The time on {slow.label} {counts[slow.id]}; on {fast.label} it {counts[fast.id]}. The two times order "
            f"{swapped} of {pairs} pairs differently."
        )

    def finding(self) -> tuple[str, str] | None:
        """Whether a method most often comes first by every order, and who does; None if no task has two methods."""
        if not self.columns:
            return None
        firsts = {order.label: self._firsts(order) for order in self.orders}
        best = "; ".join(
            f"{label}: {' and '.join(f'{name} ({count} of {of})' for name, (count, of) in counts.items())}"
            for label, counts in firsts.items()
        )
        in_all = set.intersection(*map(set, firsts.values()))
        leaders = " and ".join(sorted(in_all)) or "No method"
        title = f"{leaders} {'lead' if len(in_all) > 1 else 'leads'} by mean, worst client, bytes and time alike"
        return title, f"most often first, of the tasks on which it was run: {best}"

    def _swapped(self, column: Column, one: Order, other: Order) -> int:
        """Pairs of methods that two orders rank the other way round, by their numbers."""
        first, second = (self.ranked[column.task, order.id] for order in (one, other))
        return sum((first[a][0] - first[b][0]) * (second[a][0] - second[b][0]) < 0 for a, b in combinations(first, 2))

    def _firsts(self, order: Order) -> dict[str, tuple[int, int]]:
        """The methods that most often come first -> on how many tasks, and on how many they are ranked."""
        ranks = [self.ranked[column.task, order.id] for column in self.columns]
        ranked = [{row: rank for row, (rank, one) in each.items() if one.value is not None} for each in ranks]
        firsts = Counter(row for each in ranked for row, rank in each.items() if rank == 1)
        most = max(firsts.values(), default=0)
        leaders = [row for row, count in firsts.items() if count == most]
        return {self.request.benchmark.row(row).name: (most, sum(row in each for each in ranked)) for row in leaders}

    # ---- figure ----------------------------------------------------------------------------------------------------

    def plot(self) -> Figure:
        """Two panels per task, with bands: score within bytes, and each method's probability of being the best."""
        columns, left_out = with_points(self.request.columns, lambda column: column in self.columns)
        bytes_of = f"{self.link} of one client, MB"
        figure, axes_of = panels_of(2 * len(columns), 4, (3.4, 2.9), bytes_of, least=6.5, room=1.8)
        handles: dict[str, Any] = {}
        for place, column in enumerate(columns):
            scores, chances = axes_of[2 * place : 2 * place + 2]
            budgets = self._range(column)
            curves = self.curves(column, budgets)
            front = on_front(curves, metric(column.averaged).sign)
            scores.set_title(f"{column.name}, {metric(column.averaged).label}", fontsize=10)
            chances.set_title("best with probability", fontsize=10)
            for name, curve in curves.items():
                ends = np.quantile(resampled_means(curve), (LEVEL, 1 - LEVEL), axis=0)
                handles[name] = _band(scores, budgets, name, np.stack([curve.mean(axis=0), *ends]))
                if name in front:
                    _band(chances, budgets, name, front[name])
        caption = (
            "Mean of up to the last three rounds that fit, with bands of the bootstrap over seeds; next to it the "
            f"probability that no method is better. Bands are of {CONFIDENCE}.{left_out}"
        )
        return finish(figure, self.request.heading, list(handles.values()), caption)

    def _range(self, column: Column) -> list[float]:
        """Budgets from the cheapest first round to the most expensive run."""
        records = [record for row in self.rows_of(column) for record in self._records(row, column)]
        sizes = [size for record in records for size in spent(record, self.request.find, self.ways) or () if size]
        return np.geomspace(min(sizes), max(sizes), BUDGETS).tolist() if sizes else [1.0]


def _band(axes: Any, budgets: Sequence[float], name: str, curve: np.ndarray) -> Any:
    """Draw a curve with its band, [3, budgets]; return the line."""
    sizes, (middle, low, high) = np.array(budgets) / MEGABYTE, curve
    tidy(axes)
    axes.set_xscale("log")
    axes.fill_between(sizes, low, high, alpha=0.15, color=colour_of(name), linewidth=0)
    return axes.plot(sizes, middle, color=colour_of(name), label=name)[0]


def _within(budget: float) -> str:
    return f"within {budget / MEGABYTE:g} MB"


def _kind(mean: int, other: int) -> str:
    if mean == other:
        return "same" if mean else "open"
    if mean and other:
        return "reversed"
    return "lost" if mean else "alone"


def _counts(kinds: Mapping[str, Sequence[str]]) -> str:
    same, lost, alone = (len(kinds.get(name, ())) for name in ("same", "lost", "alone"))
    pairs = kinds.get("reversed", ())
    named = f"reverses {len(pairs)}" + (f" ({'; '.join(pairs[:NAMED])})" if 0 < len(pairs) <= NAMED else "")
    return f"keeps {same} of them, {named}, leaves {lost} undecided, and decides {alone} others"
