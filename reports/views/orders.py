"""The view of orders: the methods by mean, by worst client, by score within a number of bytes, and by time.

Options: megabytes, uplink of one client; deployments, name of a network -> name of a device (`benchmarks.networks`).
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

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric, of_clients
from benchmarks.networks import DEVICES, NETWORKS, Deployment, preset
from benchmarks.results import RunResult, all_stages
from benchmarks.run_config import JSON
from reports.evidence.budgets import Curves, on_front, resampled_means, score_within, spent
from reports.evidence.inference import CONFIDENCE, resampled
from reports.evidence.paired import difference, level, resplit_ratio, rule_for
from reports.evidence.records import paired
from reports.evidence.scores import PROTOCOL, WORST
from reports.evidence.statistics import Estimate
from reports.evidence.traffic import turns_of
from reports.frame import TableView
from reports.pages.page import KEYS, Grid, Group, Line, keys_of
from reports.pages.plots import colour_of, finish, panels_of, tidy, with_points
from reports.pages.text import NOTHING, in_units, row_name
from reports.views.clients import bounds, late, with_bounds

MEAN, BYTES = "mean", "bytes"
MEGABYTE, MINUTE = 10**6, 60
BUDGETS = 40  # points of a curve
NAMED = 4  # pairs in a sentence, at most
FEWEST = 2  # methods that have an order


@dataclass(frozen=True)
class Order:
    """What methods are ordered by. score: whether more may be better, by the metric; a time is better if shorter."""

    id: str
    label: str
    unit: str
    deployment: Deployment | None = None


class Orders(TableView):
    """Five numbers of each method on each task, with its rank; only rows that were run on a task are ranked there."""

    fields = (*KEYS, "score", "quantity", "value", "low", "high", "rank", "n_seeds", "rounds", "front")
    integers = ("rank", "n_seeds")
    floats = ("value", "low", "high", "rounds", "front")

    @property
    def options(self) -> Any:
        return self.request.benchmark.view.options

    @property
    def _within(self) -> str:
        return f"Within {self.options['megabytes']:g} MB"

    @property
    def budget(self) -> float:
        """Bytes that one client may send."""
        return float(self.options["megabytes"]) * MEGABYTE

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """What methods are ordered by, the mean first."""
        times = []
        for network, device in self.options["deployments"].items():
            at = Deployment(preset("network", NETWORKS, network), preset("device", DEVICES, device))
            times.append(Order(network, at.label, "min", at))
        budget = f"within {self.options['megabytes']:g} MB"
        return (Order(MEAN, "mean", ""), Order(WORST, "worst client", ""), Order(BYTES, budget, ""), *times)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns in which two methods or more were run."""
        return tuple(column for column in self.request.columns if len(self.rows_of(column)) >= FEWEST)

    def rows_of(self, column: Column) -> list[Row]:
        """The rows that were run on a task, with the earlier runs from which they start."""
        return [row for row in self.request.rows if self._stages(row, column)]

    def _stages(self, row: Row, column: Column) -> list[list[RunResult]]:
        records = self.request.records_of(row, column)
        stages = [all_stages(record, self.request.find) for record in records]
        return [] if None in stages else [each for each in stages if each]

    # ---- numbers ---------------------------------------------------------------------------------------------------

    def estimate(self, row: Row, column: Column, order: Order) -> Estimate:
        """The number by which a method is ordered on a task."""
        records = self.request.records_of(row, column)
        score = column.averaged
        if order.deployment is not None:
            minutes = [self.minutes(stages, order.deployment) for stages in self._stages(row, column)]
            return resampled(minutes, 0.0, floor=0.0)
        if order.id == BYTES:
            values = [score_within(record, score, self.budget, self.request.find) for record in records]
            return resampled(values, resplit_ratio(records, column.evaluation))
        found = level(records, self._score(column, order), late(records))
        return found if found.value is not None else level(records, self._score(column, order), "last")

    @staticmethod
    def _score(column: Column, order: Order) -> str:
        return column.averaged if order.id == MEAN else of_clients(column.averaged, WORST)

    def minutes(self, stages: Sequence[RunResult], at: Deployment) -> float | None:
        """The time of a run with its earlier runs; None where the operations of one are unknown."""
        seconds = 0.0
        for stage in stages:
            work = self.request.derive_work(stage.cell) if self.request.derive_work else None
            if work is None:
                return None
            seconds += at.run_seconds(turns_of(stage, work))
        return seconds / MINUTE

    def sign(self, column: Column, order: Order) -> int:
        """The sign of a difference that is better."""
        return -1 if order.deployment is not None else metric(column.averaged).sign

    def gain(self, rows: tuple[Row, Row], column: Column, order: Order) -> int:
        """1 if the first row is certainly better than the second, -1 if it is certainly worse, 0 if neither."""
        pairs = paired(*(self.request.records_of(row, column) for row in rows))
        if not pairs:
            return 0
        sign, score = self.sign(column, order), column.averaged
        if order.deployment is not None or order.id == BYTES:
            sides = []
            for row, place in zip(rows, (0, 1), strict=True):
                if order.deployment is not None:
                    known = {stages[-1].cell_id: stages for stages in self._stages(row, column)}
                    sides.append([self.minutes(known[pair[place].cell_id], order.deployment) for pair in pairs])
                else:
                    sides.append([score_within(pair[place], score, self.budget, self.request.find) for pair in pairs])
            gains = [sign * (one - other) for one, other in zip(*sides, strict=True) if None not in (one, other)]
            ratio = 0.0 if order.deployment else resplit_ratio([pair[0] for pair in pairs], column.evaluation)
            found = resampled(gains, ratio, floor=0.0 if order.deployment else None)
        else:
            rule = rule_for(PROTOCOL, pairs)
            found = difference(pairs, self._score(column, order), rule)
            found = found if found.value is not None else difference(pairs, self._score(column, order), "last")
        ends = bounds(found)
        return 0 if ends is None or ends[0] <= 0 <= ends[1] else 1 if ends[0] > 0 else -1

    @cached_property
    def ranked(self) -> dict[tuple[str, str], list[tuple[Row, Estimate]]]:
        """(task, order) -> the rows from the best to the worst, those without a number last."""
        found = {}
        for column in self.columns:
            for order in self.orders:
                numbers = [(row, self.estimate(row, column, order)) for row in self.rows_of(column)]
                sign = self.sign(column, order)
                found[column.task, order.id] = sorted(
                    numbers, key=lambda pair: (pair[1].value is None, -sign * (pair[1].value or 0.0))
                )
        return found

    def lines(self) -> Iterator[dict[str, JSON]]:
        """A line for each row, task and order; of the bytes with the rounds that fit, and how often it is the best."""
        for column in self.columns:
            curves = self.curves(column, [self.budget])
            front = on_front(curves, metric(column.averaged).sign)
            for order in self.orders:
                for rank, (row, found) in enumerate(self.ranked[column.task, order.id], start=1):
                    low, high = bounds(found) or (None, None)
                    line = keys_of(self.request, row, column) | {"score": column.averaged, "quantity": order.id}
                    line |= {"value": found.value, "low": low, "high": high, "n_seeds": found.n}
                    line |= {"rank": None if found.value is None else rank}
                    if order.id == BYTES:
                        line |= {"rounds": self.rounds(row, column), "front": _only(front.get(row.name))}
                    yield line

    def rounds(self, row: Row, column: Column) -> float:
        """How many rounds fit into the bytes: a mean over seeds."""
        records = self.request.records_of(row, column)
        sizes = [spent(record, self.request.find) or [] for record in records]
        return float(np.mean([sum(size <= self.budget for size in one) for one in sizes]))

    def curves(self, column: Column, budgets: Sequence[float]) -> Curves:
        """Method -> the scores of its seeds at each budget; NaN where no round fits."""
        find, score = self.request.find, column.averaged

        def at(record: RunResult) -> list[float]:
            values = (score_within(record, score, budget, find) for budget in budgets)
            return [np.nan if value is None else value for value in values]

        records = {row.name: self.request.records_of(row, column) for row in self.rows_of(column)}
        return {name: np.array(list(map(at, each))) for name, each in records.items()}

    # ---- tables ----------------------------------------------------------------------------------------------------

    def grids(self) -> tuple[Grid, ...]:
        """Groups are tasks, lines methods in the order of their mean, columns what methods are ordered by."""
        headers = tuple((order.label, order.unit or "score") for order in self.orders)
        groups = []
        for column in self.columns:
            places = {
                order.id: {
                    row.id: (rank, found) for rank, (row, found) in enumerate(self.ranked[column.task, order.id], 1)
                }
                for order in self.orders
            }
            lines = [
                Line(row_name(row), tuple(_ranked(*places[order.id][row.id]) for order in self.orders), rank == 1)
                for rank, (row, _) in enumerate(self.ranked[column.task, MEAN], start=1)
            ]
            groups.append(Group(f"{column.name}, {metric(column.averaged).label}", tuple(lines)))
        title = f"{self.request.heading}: methods in five orders, rank and number with {CONFIDENCE} interval"
        return (Grid(title, headers, tuple(groups), "Task"),)

    def method(self) -> Iterator[str]:
        """Where the orders differ, what follows, and how the numbers were obtained."""
        if self.columns:
            yield from self.conclusions()
        times = "; ".join(
            f"{one.deployment.network.source}; {one.deployment.device.source}" for one in self.orders if one.deployment
        )
        yield (
            f"Scores{in_units(self.columns or self.request.columns)} as in docs/protocol.md; worst client as in the "
            f"table of clients. {self._within}: uplink of one client with all earlier runs, without the one-time "
            "model; the mean of up to the last three rounds that fit. Time: the whole run, every round as long as its "
            "slowest client's download, computation, upload and half a round trip for each message; texts at their "
            f"full length, {Deployment.utilisation:.0%} of the device's peak ({times})."
        )

    @cached_property
    def disagreements(self) -> dict[str, dict[str, list[str]]]:
        """Order -> the pairs of methods that it decides like the mean, the other way, alone, or no longer."""
        found: dict[str, dict[str, list[str]]] = {order.id: {} for order in self.orders}
        for column in self.columns:
            for rows in combinations(self.rows_of(column), 2):
                by = {order.id: self.gain(rows, column, order) for order in self.orders}
                for name, own in by.items():
                    pair = f"{rows[0].name} and {rows[1].name} on {column.name}"
                    found[name].setdefault(_kind(by[MEAN], own), []).append(pair)
        return found

    def conclusions(self) -> Iterator[str]:
        """Four sentences, computed from records."""
        pairs = sum(map(len, self.disagreements[MEAN].values()))
        worst, by_bytes = (self.disagreements[name] for name in (WORST, BYTES))
        decided = len(self.disagreements[MEAN].get("same", ()))
        yield f"By mean, {decided} of {pairs} pairs of methods are decided; by worst client {_counts(worst)}."
        yield f"{self._within}, against the mean of whole runs: {_counts(by_bytes)}."
        slow, fast = (order for order in self.orders if order.deployment is not None)
        changed = [self._swapped(column, slow, fast) for column in self.columns]
        yield (
            f"By time, against the mean: {slow.label}, {_counts(self.disagreements[slow.id])}; {fast.label}, "
            f"{_counts(self.disagreements[fast.id])}; the two times order {sum(changed)} of {pairs} pairs differently."
        )
        firsts = {order.label: self._firsts(order) for order in self.orders}
        best = "; ".join(f"{label}: {text}" for label, text in firsts.items())
        yield (
            f"Most often first of {len(self.columns)} tasks: {best}. "
            + (
                "One method leads in all five, so the choice does not depend on the order."
                if len({text.partition(" (")[0] for text in firsts.values()}) == 1
                else "No method leads in all five: choose by what binds, the mean, the weakest client, bytes or time."
            )
        )

    def _swapped(self, column: Column, one: Order, other: Order) -> int:
        """Pairs of methods that two orders rank the other way round, by their numbers."""
        places = [
            {row.id: rank for rank, (row, _) in enumerate(self.ranked[column.task, order.id])} for order in (one, other)
        ]
        pairs = combinations(places[0], 2)
        return sum((places[0][a] < places[0][b]) != (places[1][a] < places[1][b]) for a, b in pairs)

    def _firsts(self, order: Order) -> str:
        firsts = Counter(self.ranked[column.task, order.id][0][0].name for column in self.columns)
        most = max(firsts.values())
        return f"{' and '.join(name for name in firsts if firsts[name] == most)} ({most})"

    def plot(self) -> Figure:
        """A panel for each task: score within bytes, with a 90 % band of bootstrap means over seeds."""
        columns, left_out = with_points(self.request.columns, lambda column: column in self.columns)
        figure, axes_of = panels_of(len(columns), 3, (4.4, 3.2), "uplink of one client, MB", least=6.5, room=1.8)
        handles: dict[str, Any] = {}
        for axes, column in zip(axes_of, columns, strict=True):
            tidy(axes)
            axes.set_title(f"{column.name}, {metric(column.averaged).label}", fontsize=10)
            sizes = [
                size
                for row in self.rows_of(column)
                for record in self.request.records_of(row, column)
                for size in spent(record, self.request.find) or ()
                if size
            ]
            budgets = np.geomspace(min(sizes), max(sizes), BUDGETS) if sizes else np.ones(1)
            for name, curve in self.curves(column, list(budgets)).items():
                ends = np.quantile(resampled_means(curve), (0.05, 0.95), axis=0)
                axes.fill_between(budgets / MEGABYTE, *ends, alpha=0.15, color=colour_of(name), linewidth=0)
                handles[name] = axes.plot(budgets / MEGABYTE, curve.mean(axis=0), color=colour_of(name), label=name)[0]
            axes.set_xscale("log")
        caption = f"Mean of up to the last three rounds that fit; 90 % bands by the bootstrap over seeds.{left_out}"
        return finish(figure, self.request.heading, list(handles.values()), caption)


def _kind(mean: int, other: int) -> str:
    if mean == other:
        return "same" if mean else "open"
    if mean and other:
        return "reversed"
    return "lost" if mean else "alone"


def _counts(kinds: Mapping[str, Sequence[str]]) -> str:
    same, lost, alone = (len(kinds.get(name, ())) for name in ("same", "lost", "alone"))
    pairs = kinds.get("reversed", ())
    named = f"{len(pairs)} the other way" + (f" ({'; '.join(pairs[:NAMED])})" if 0 < len(pairs) <= NAMED else "")
    return f"{same} are decided the same way, {named}, {lost} no longer, and {alone} that the mean leaves open"


def _only(values: np.ndarray | None) -> float | None:
    return None if values is None else float(values[0])


def _ranked(rank: int, found: Estimate) -> str:
    return NOTHING if found.value is None else f"{rank}. {with_bounds(found)}"
