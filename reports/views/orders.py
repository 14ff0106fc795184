"""The view of orders: the methods by mean, by worst client, by score within a communication budget, and by time.

Options: megabytes, the budget of one client by which methods are ordered; front, those at which the best is shown;
networks, two names of `benchmarks.costs.networks.TYPICAL`, the slower one first; directions, of the bytes that count,
by default up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.costs.networks import Deployment
from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.run_config import JSON
from reports.evidence.budgets import resampled_means, spent
from reports.evidence.inference import CONFIDENCE, LEVEL
from reports.evidence.published import MEGABYTE
from reports.evidence.statistics import Estimate
from reports.pages.page import Grid, Group, Line, keys_of, one_line
from reports.pages.plots import finish, method_marks, panels_of, tidy, with_points
from reports.pages.text import NOTHING, in_units, seed_counts
from reports.views.clients import bounds, with_bounds, worst_notes
from reports.views.ranks import FRONT, MEAN, SAME_TIME, Order, Ranks, within

BUDGETS, MARK_EVERY = 40, 6  # points of a curve, and from one mark to the next
NAMED = 4  # pairs in a sentence, at most
KINDS = {  # of pairs by a criterion, next to the mean: -> the heading of their number
    "same": "same direction",
    "reversed": "reversed",
    "lost": "no longer significant",
    "missing": "without a number",
    "alone": "newly significant",
}
LEAST_CHANCE = 0.05  # probability of being the best from which a method is named


class Orders(Ranks):
    """Ranks as tables, sentences and a figure."""

    def lines(self) -> Iterator[dict[str, JSON]]:
        """A line for each row, task and order, and for each budget the row's probability of being the best."""
        for column in self.columns:
            for row in self.rows_of(column):
                common = keys_of(self.request, row, column) | {"score": column.averaged}
                for order in self.orders:
                    rank, one = self.ranked[column.task, order.id][row.id]
                    low, high = bounds(one, order.score(column)) or (None, None)
                    line = common | {"quantity": order.id, "value": one.value, "low": low, "high": high}
                    yield line | {"rank": rank, "n_seeds": one.n}
                for budget, chance in zip(self.budgets, self.fronts.get((column.task, row.name), ()), strict=False):
                    numbers = dict(zip(("value", "low", "high"), chance, strict=True))
                    yield common | numbers | {"quantity": FRONT, "counted": within(budget)}

    # ---- tables ----------------------------------------------------------------------------------------------------

    def grids(self) -> Iterator[Grid]:
        """Methods in the order of their mean by five criteria, the front by budget, and where the criteria differ."""
        units = [(order.label, "min" if order.deployment else "score") for order in self.orders]
        headers = (*units, (within(self.budget), "chosen round"))
        title = f"Methods by five criteria: rank and number with {CONFIDENCE} interval"
        yield Grid(title, headers, tuple(self._groups()), "Task", is_whole=True)
        title = f"Which method is best within the {self.link} budget of one client"
        groups = tuple(
            Group(f"{column.name}{self._seeds_of(column)}", tuple(self._chances(column))) for column in self.columns
        )
        yield Grid(title, (("best with probability",),), groups, "Task")
        counts = ("pairs that differ", *KINDS.values())
        title = "Pairs of methods that differ significantly (uncorrected) by each criterion, next to the mean score"
        groups = tuple(one_line(order.label, self._counts(order)) for order in self.orders if self.columns)
        yield Grid(title, tuple((count,) for count in counts), groups, "Criterion", is_whole=True)

    def _groups(self) -> Iterator[Group]:
        for column in self.columns:
            rows = {row.id: row for row in self.rows_of(column)}
            ranks = self.ranked[column.task, MEAN]
            lines = tuple(
                Line(self.request.name_of(rows[id]), self._cells(rows[id], column), ranks[id][0] == 1) for id in ranks
            )
            yield Group(f"{column.name}, {metric(column.averaged).label}{self._seeds_of(column)}", lines)

    def _seeds_of(self, column: Column) -> str:
        """The seeds on which methods are compared, as text."""
        seeds = ", ".join(map(str, self.seeds(column)))
        return f" (seeds {seeds})" if seeds else ""

    def _cells(self, row: Row, column: Column) -> tuple[str, ...]:
        """Rank and number in each order, and the score of the chosen round within the bytes."""
        seeds = len(self.seeds(column))

        def text(one: Estimate, score: str, rank: int | None = None) -> str:
            first = f"{rank}. " if rank else ""
            n = "" if one.value is None or one.n == seeds else f" (n = {one.n})"
            return f"{first}{with_bounds(one, score)}{n}"

        each = ((*self.ranked[column.task, order.id][row.id], order) for order in self.orders)
        ranks = (text(one, order.score(column), rank) for rank, one, order in each)
        return *ranks, text(self.chosen(row, column), column.averaged)

    def _chances(self, column: Column) -> Iterator[Line]:
        """For each budget, the methods that may be the best, the most probable first."""
        fronts = [(name, front) for (task, name), front in self.fronts.items() if task == column.task]
        for place, budget in enumerate(self.budgets):
            at = [(*front[place], name) for name, front in fronts if front[place][0] >= LEAST_CHANCE]
            texts = (f"{name} {chance:.0%} [{low:.0%}, {high:.0%}]" for chance, low, high, name in sorted(at)[::-1])
            yield Line(within(budget), ("; ".join(texts) or NOTHING,))

    def method(self) -> Iterator[str]:
        """How the numbers were obtained."""
        times = "; ".join(
            f"{one.deployment.network.source}; {one.deployment.device.source}" for one in self.orders if one.deployment
        )
        corrects = any(row.corrects for column in self.columns for row in self.rows_of(column))
        corrected = " (for corrected predictions, of the run that made them)" if corrects else ""
        yield (
            f"Scores{in_units(self.columns or self.request.columns)} as in docs/protocol.md. Within a communication "
            f"budget: {self.link} of one client with all parent runs, without the one-time model; the mean of up to "
            f"the last three rounds that fit, or the fitting round that validation data choose{corrected}. Time: the "
            "whole run, every round as long as its slowest client's download, computation, upload and half a round "
            f"trip for each message; texts at their full length, {Deployment.utilisation:.0%} of the device's peak "
            f"({times})."
        )
        yield (
            "Numbers and ranks are of the seeds named with the task, which all compared methods have "
            "(docs/statistics.md). With n, a number is of other or fewer seeds, and has no rank. A dash: no round "
            "fits, or its predictions were not stored. A pair of methods is compared on all seeds that both have, "
            f"each pair alone; it differs if the {CONFIDENCE} interval excludes 0. Times also have to differ by "
            f"{SAME_TIME:.0%} or more; otherwise they share a rank. The probability of being best, "
            f"shown from {LEAST_CHANCE:.0%} on, is the share of resamples of the named seeds, equal for all methods; "
            "its band, in brackets, comes from resampling the seeds first. A method that lacks a number on one of "
            "the seeds is never the best."
        )
        for column in self.columns:
            if names := ", ".join(row.name for row in self.rows_of(column) if row.id not in self.compared[column.task]):
                yield f"{column.name}: without a rank, as too few seeds are shared with the other methods: {names}."
        for order in self.orders:
            pairs = self.disagreements[order.id].get("reversed", ()) if self.columns else ()
            if 0 < len(pairs) <= NAMED:
                yield f"Pairs reversed, {order.label}: {'; '.join(pairs)}."
        yield from worst_notes(self.worst)

    # ---- where the orders differ -----------------------------------------------------------------------------------

    @cached_property
    def gains(self) -> dict[str, dict[str, int | None]]:
        """Pair of methods on a task -> order -> which one is significantly better; see `gain`."""
        return {
            f"{rows[0].name} and {rows[1].name} on {column.name}": {
                order.id: self.gain(rows, column, order) for order in self.orders
            }
            for column in self.columns
            for rows in combinations(self.rows_of(column), 2)
        }

    @cached_property
    def disagreements(self) -> dict[str, dict[str, list[str]]]:
        """Order -> pairs of methods: it and the mean differ alike, oppositely, one of them alone, or neither."""
        by_order: dict[str, dict[str, list[str]]] = {order.id: {} for order in self.orders}
        for pair, by in self.gains.items():
            for name, gain in by.items():
                by_order[name].setdefault(_kind(by[MEAN], gain), []).append(pair)
        return by_order

    def conclusions(self) -> Iterator[str]:
        """Sentences computed from records."""
        if not self.columns:
            return
        slow, fast = (order for order in self.orders if order.deployment is not None)
        differing = self.disagreements[MEAN].get("same", ())
        timed = [ends for by in self.gains.values() if all(ends := (by[slow.id], by[fast.id]))]
        if self.evident_finding:
            yield f"{self.evident_finding[0]}."
        among = f"{len(differing)} of {len(self.gains)} pairs of methods"
        yield f"By mean score, {among} differ significantly (uncorrected)."
        yield (
            f"The times on {slow.label} and {fast.label} put {sum(one != other for one, other in timed)} of the "
            f"{len(timed)} pairs that differ by {SAME_TIME:.0%} or more on both in opposite orders."
        )

    def _counts(self, order: Order) -> Iterator[str]:
        """How many pairs differ by a criterion, and how many of them in each way from the mean."""
        kinds = {kind: len(pairs) for kind, pairs in self.disagreements[order.id].items()}
        yield str(sum(kinds.get(kind, 0) for kind in ("same", "reversed", "alone")))
        for kind in KINDS:
            yield NOTHING if order.id == MEAN else str(kinds.get(kind, 0))

    def finding(self) -> tuple[str, str] | None:
        """Whether a method most often comes first by every order, and who does; None if no task has two seeds."""
        if not self._repeated:
            return None
        firsts = {order.label: self._firsts(order) for order in self.orders}
        several = len(self._repeated) > 1
        best = "; ".join(f"{label}: {_together(counts, several)}" for label, counts in firsts.items() if counts)
        in_all = set.intersection(*map(set, firsts.values()))
        leaders = " and ".join(sorted(in_all)) or "No method"
        are = "are" if len(in_all) > 1 else "is"
        criteria = "mean, worst client, score within a communication budget, time on two networks"
        title = f"{leaders} {are} best on all five criteria ({criteria})"
        n = seed_counts(len(self.seeds(column)) for column in self._repeated)
        places = "most first places (of the tasks on which a method is ranked)"
        return title, f"{places if several else f'first on {self._repeated[0].name}'}{n}: {best}"

    @cached_property
    def _repeated(self) -> list[Column]:
        """The tasks on which methods are compared on two seeds or more."""
        return [column for column in self.columns if len(self.seeds(column)) > 1]

    def _firsts(self, order: Order) -> dict[str, tuple[int, int]]:
        """The methods that most often come first -> on how many tasks, and on how many they are ranked."""
        ranks = [self.ranked[column.task, order.id] for column in self._repeated]
        ranked = [{row: rank for row, (rank, _) in each.items() if rank is not None} for each in ranks]
        firsts = Counter(row for each in ranked for row, rank in each.items() if rank == 1)
        most = max(firsts.values(), default=0)
        leaders = [row for row, count in firsts.items() if count == most]
        return {self.request.benchmark.row(row).name: (most, sum(row in each for each in ranked)) for row in leaders}

    # ---- figure ----------------------------------------------------------------------------------------------------

    def plot(self) -> Figure:
        """Two panels per task, with bands: score by budget, and each method's probability of being the best."""
        columns, left_out = with_points(self.request.columns, lambda column: column in self.columns)
        bytes_of = f"{self.link} of one client, MB"
        figure, axes_of = panels_of(2 * len(columns), 4, (3.4, 2.9), bytes_of, least=6.5, room=1.8)
        handles: dict[str, Any] = {}
        styles = method_marks(row.name for column in columns for row in self.rows_of(column))
        for place, column in enumerate(columns):
            scores, chances = axes_of[2 * place : 2 * place + 2]
            budgets = self._range(column)
            curves = self.curves(column, budgets)
            front = self.chances(column, curves)
            scores.set_title(f"{column.name}, {metric(column.averaged).label}", fontsize=10)
            chances.set_title("best with probability", fontsize=10)
            for name, curve in curves.items():
                ends = np.quantile(resampled_means(curve), (LEVEL, 1 - LEVEL), axis=0)
                band = np.stack([curve.mean(axis=0), *ends])
                every = slice(len(handles) % MARK_EVERY, None, MARK_EVERY)  # so that marks of equal curves show
                style = styles[name] | {"label": name, "markevery": every}
                handles[name] = _band(scores, budgets, band, style)
                if name in front and max(front[name][0]) >= LEAST_CHANCE:
                    _band(chances, budgets, front[name], style)
        caption = (
            "Mean of up to the last three rounds that fit, with bands of the bootstrap over seeds; next to it the "
            f"probability that no compared method is better, if it reaches {LEAST_CHANCE:.0%}. No line: no round fits, "
            f"or a seed has no number. Bands are of {CONFIDENCE}.{left_out}"
        )
        return finish(figure, self.request.heading, list(handles.values()), caption)

    def _range(self, column: Column) -> list[float]:
        """Budgets from the cheapest first round to the most expensive run."""
        records = [record for row in self.rows_of(column) for record in self.records(row, column)]
        sizes = [size for record in records for size in spent(record, self.request.find, self.ways) or () if size]
        return np.geomspace(min(sizes), max(sizes), BUDGETS).tolist() if sizes else [1.0]


def _band(axes: Any, budgets: Sequence[float], curve: np.ndarray, style: Mapping[str, Any]) -> Any:
    """Draw a curve with its band, [3, budgets]; return the line."""
    sizes, (middle, low, high) = np.array(budgets) / MEGABYTE, curve
    tidy(axes)
    axes.set_xscale("log")
    axes.fill_between(sizes, low, high, alpha=0.15, color=style["color"], linewidth=0)
    return axes.plot(sizes, middle, markersize=6, markeredgecolor="white", markeredgewidth=0.4, **style)[0]


def _together(counts: Mapping[str, tuple[int, int]], several: bool) -> str:
    """The methods that come first, by name unless they are many. several: whether there are several tasks."""
    if len(counts) > NAMED:
        return f"{len(counts)} methods"
    return " and ".join(f"{name} ({count} of {of})" if several else name for name, (count, of) in counts.items())


def _kind(mean: int | None, other: int | None) -> str:
    if mean is None or other is None:
        return "missing" if mean else "open"
    if mean == other:
        return "same" if mean else "open"
    if mean and other:
        return "reversed"
    return "lost" if mean else "alone"
