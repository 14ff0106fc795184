"""The view of clients: what a mean over clients hides, by method and task.

Option: baseline, the row whose worst client is followed through all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import product

from matplotlib.figure import Figure

from benchmarks.experiment import Column, Row
from benchmarks.measures import OF_CLIENTS, metric, of_clients
from benchmarks.results import RunResult
from benchmarks.run_config import JSON
from reports.evidence.inference import CONFIDENCE, confidence, resampled
from reports.evidence.paired import difference, level, resplit_ratio, rule_for
from reports.evidence.records import paired
from reports.evidence.scores import PROTOCOL, WORST, keeps_clients, scores_of, worst_clients
from reports.evidence.statistics import Estimate
from reports.frame import TableView
from reports.pages.page import KEYS, Grid, Group, Line, keys_of
from reports.pages.plots import HOLLOW, Dots, Panel, dot_plot, with_points
from reports.pages.text import NOTHING, dagger_note, in_units, not_run, number, over_clients, row_name

MEAN, FIXED = "mean", "fixed"
_ANY = ((-float("inf"), float("inf")),)
_QUANTITIES = (MEAN, *OF_CLIENTS, FIXED)


def bounds(found: Estimate) -> tuple[float, float] | None:
    """The interval at CONFIDENCE; None below three seeds."""
    return confidence([found], _ANY)


def with_bounds(found: Estimate | None, sign: str = "") -> str:
    """A value and its interval as a text."""
    if found is None or found.value is None:
        return NOTHING
    ends = bounds(found)
    interval = f" [{number(ends[0], sign)}, {number(ends[1], sign)}]" if ends else ""
    return f"{number(found.value, sign)}{interval}"


class Clients(TableView):
    """Levels and gains over the baseline of the mean, the worst client, the lowest tenth and the spread.

    Scores are those of docs/protocol.md. The baseline's worst client is followed through all rows: it is chosen, seed
    by seed, on the baseline's other seeds. Intervals are shown from three seeds on.
    """

    fields = (*KEYS, "score", "quantity", "value", "low", "high", "n_seeds")
    integers = ("n_seeds",)
    floats = ("value", "low", "high")

    @cached_property
    def baseline(self) -> Row:
        return self.request.rows_named("baseline")[0]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns in which clients have test examples of their own and something was run; all where none has."""
        own = [at for at in self.request.columns_run if any(self._is_apart(row, at) for row in self.request.rows)]
        return tuple(own) or self.request.columns

    def _is_apart(self, row: Row, column: Column) -> bool:
        return any(all(one.own_examples(column.evaluation)) for one in self.request.records_of(row, column))

    @cached_property
    def by_cell(self) -> dict[tuple[str, str, str], Estimate]:
        """(row id, task, quantity) -> its estimate; gains over the baseline are quantities such as "gain_worst"."""
        found: dict[tuple[str, str, str], Estimate] = {}
        for row, column in product(self.request.rows, self.columns):
            records, base = (self.request.records_of(one, column) for one in (row, self.baseline))
            if records:
                numbers = dict(_levels(records, base, column.averaged))
                if row.id != self.baseline.id:
                    numbers |= {f"gain_{name}": one for name, one in _gains(records, base, column.averaged)}
                found |= {(row.id, column.task, name): one for name, one in numbers.items()}
        return found

    def lines(self) -> Iterator[dict[str, JSON]]:
        """A line for each row, task and quantity, in the metrics' units."""
        rows, columns = ({one.id: one for one in self.request.rows}, {one.task: one for one in self.columns})
        for (row, task, quantity), found in self.by_cell.items():
            low, high = bounds(found) or (None, None)
            keys = keys_of(self.request, rows[row], columns[task]) | {"score": columns[task].averaged}
            yield keys | {"quantity": quantity, "value": found.value, "low": low, "high": high, "n_seeds": found.n}

    def _line(self, row: Row, quantity: str, label: str, is_main: bool = False) -> Line:
        sign = "+" if quantity.startswith("gain") else ""
        cells = [self.by_cell.get((row.id, column.task, quantity)) for column in self.columns]
        return Line(label, tuple(with_bounds(found, sign) for found in cells), is_main)

    def _group(self, row: Row) -> Group:
        cells = {place[2] for place in self.by_cell if place[0] == row.id}
        if not cells:
            return Group(row_name(row), (Line("", tuple(not_run(self.request, row, at) for at in self.columns), True),))
        labels = {MEAN: "mean", FIXED: f"worst client of {self.baseline.name}"}
        labels |= {name: of.label for name, of in OF_CLIENTS.items()}
        over = f"gain over {self.baseline.name}"
        every = [(name, labels[name]) for name in _QUANTITIES] + [
            (f"gain_{name}", f"{labels[name]}: {over}") for name in (MEAN, WORST, FIXED)
        ]
        return Group(
            row_name(row), tuple(self._line(row, *one, is_main=one[0] == MEAN) for one in every if one[0] in cells)
        )

    def grids(self) -> tuple[Grid, ...]:
        """Groups are methods, columns tasks."""
        headers = tuple((column.name, metric(column.averaged).label) for column in self.columns)
        groups = tuple(self._group(row) for row in self.request.rows)
        return (Grid(f"{self.request.heading}: clients, with {CONFIDENCE} intervals", headers, groups),)

    def method(self) -> Iterator[str]:
        """What each number is."""
        yield (
            f"Scores{in_units(self.columns)}, {over_clients(self.columns)} unless a line says of which clients: mean "
            "of the last three rounds where all runs have six or more, else of the last round (docs/protocol.md); "
            f"{CONFIDENCE} intervals from three seeds on."
        )
        yield (
            "Worst client: for each seed, the client that scores worst in the method's other seeds, as the least of "
            "noisy scores is biased against the method with the most equal clients (docs/statistics.md). "
            f"Worst client of {self.baseline.name}: chosen in the same way, on {self.baseline.name}'s other seeds, and "
            "the same for all methods. Spread: standard deviation over clients within a run."
        )
        every = [
            record for row in self.request.rows for at in self.columns for record in self.request.records_of(row, at)
        ]
        if not all(map(keeps_clients, every)):
            yield (
                "Each seed draws all clients anew, so no client is the same in two runs: the worst client is the least "
                "within each run, which lies too low (for perplexity too high) by the noise of its test examples."
            )

    def plot(self) -> Figure:
        """A panel for each task: mean and worst client of each method."""
        columns, left_out = with_points(self.columns, lambda at: any(place[1] == at.task for place in self.by_cell))
        panels = []
        for column in columns:
            series = []
            for name, label, style in ((MEAN, "mean", {}), (WORST, "worst client", HOLLOW)):
                cells = {row_name(row): self.by_cell.get((row.id, column.task, name)) for row in self.request.rows}
                values = {row: one.value for row, one in cells.items() if one and one.value is not None}
                ends = {row: both for row, one in cells.items() if one and (both := bounds(one))}
                series.append(Dots(label, values, style, ends))
            names = [row_name(row) for row in self.request.rows]
            panels.append(Panel(f"{column.name}, {metric(column.averaged).label}", names, series))
        caption = f"Mean over clients and worst client, with {CONFIDENCE} intervals."
        caption += f"{dagger_note(self.request.rows)}{left_out}"
        return dot_plot(self.request.heading, panels, "score", caption)


def late(records: Sequence[RunResult]) -> str:
    """Where records are scored by themselves, by the rule of comparisons."""
    return rule_for(PROTOCOL, [(record, record) for record in records])


def _levels(records: Sequence[RunResult], base: Sequence[RunResult], score: str) -> Iterator[tuple[str, Estimate]]:
    names = {MEAN: score, **{name: of_clients(score, name) for name in OF_CLIENTS}}
    for name, own in names.items():
        found = _defined(partial(level, records, own), late(records))
        if found.value is not None:
            yield name, found
    clients = worst_clients(base, score)
    known = [record for record in records if record.cell.seed in clients]
    if known:
        at, ratio = late(known), resplit_ratio(known, score.partition("/")[0])
        yield FIXED, _defined(lambda at: resampled(scores_of(known, score, clients).at(at), ratio), at)


def _gains(records: Sequence[RunResult], base: Sequence[RunResult], score: str) -> Iterator[tuple[str, Estimate]]:
    pairs, clients = paired(records, base), worst_clients(base, score)
    if not pairs:
        return
    at = rule_for(PROTOCOL, pairs)
    for name, own in ((MEAN, score), (WORST, of_clients(score, WORST))):
        yield name, _defined(partial(difference, pairs, own), at)
    if clients:
        by, ratio = metric(score), resplit_ratio([pair[0] for pair in pairs], score.partition("/")[0])

        def fixed(at: str) -> Estimate:
            sides = (scores_of([pair[side] for pair in pairs], score, clients).at(at) for side in (0, 1))
            both = [by.gain(*pair) for pair in zip(*sides, strict=True) if None not in pair]
            return resampled(both, ratio)

        yield FIXED, _defined(fixed, at)


def _defined(estimate: Callable[[str], Estimate], at: str) -> Estimate:
    """At that round, or at the last one where answers of earlier ones were not kept."""
    found = estimate(at)
    return found if found.value is not None else estimate("last")
