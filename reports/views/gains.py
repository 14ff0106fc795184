"""The view of gains: how much better each row is than a reference, and than a simpler part of the method.

Options: reference, the row that gains refer to; part, the row of the simpler method; headline, the row shown on the
first page; is, a description of the part for readers who do not know the paper; at, the round of all scores: "late"
for the mean of the last three, by default "last"; kind, of evidence, by default "exploratory"; sum, name -> two rows,
whose differences sum to the headline's gain, the last one over the part; within, the points below which the last one
is said to add less; alone, name -> a row that has one part alone; local, the row of clients that train alone; called,
the name of the score of these sentences; elsewhere, another score of these rows and its name.
All differences are paired by seed and follow the rules of verdicts (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import product

from matplotlib.figure import Figure

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.run_config import JSON
from reports.evidence.gate import gates
from reports.evidence.inference import CONFIDENCE, average_of
from reports.evidence.paired import difference
from reports.evidence.records import Request, paired
from reports.evidence.scores import defined, score_label, scores_of
from reports.evidence.statistics import Estimate, mean
from reports.frame import TableView
from reports.pages.page import Grid, Group, Line, keys_of
from reports.pages.plots import Dots, Panel, dot_plot, with_points
from reports.pages.text import (
    NOTHING,
    at_round,
    compared,
    dagger_note,
    in_brackets,
    in_units,
    not_run,
    number,
    over_clients,
    seed_counts,
    status,
    with_interval,
)

ROUND = "last"  # the default: older runs stored no other round's predictions, which the part corrects
INTERVAL = f"{CONFIDENCE} CI"
OVER, BEYOND = "gain", "beyond"


class Gains(TableView):
    """Every row's gain, even if the rows named by the options are not requested.

    A line has: ours, the mean over the row's seeds; gain, the difference to the reference; beyond, the difference to
    the part; share, the part's gain in percent of the row's gain, on the seeds that all three have, if the row's gain
    is certain. Intervals are shown from three seeds on.
    """

    ranks = False

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.round = str(self.options.get("at", ROUND))
        self.reference, self.part, self.headline = (
            request.rows_named(name)[0] for name in ("reference", "part", "headline")
        )

    @cached_property
    def by_cell(self) -> dict[tuple[str, str], dict[str, JSON]]:
        """(row id, task) -> its line."""
        cells = product((self.reference, self.part, self.headline, *self.request.rows), self.request.columns)
        return {(row.id, column.task): self._line(row, column) for row, column in cells}

    def _over(self, row: Row, other: Row, column: Column, seeds: Container[int] | None = None) -> Estimate | None:
        """How much better a row is than another, on the seeds that both have, or on some of them."""
        pairs = paired(self.request.records_of(row, column), self.request.records_of(other, column))
        counted = [pair for pair in pairs if seeds is None or pair[0].cell.seed in seeds]
        return difference(counted, column.averaged, self.round) if counted else None

    def _line(self, row: Row, column: Column) -> dict[str, JSON]:
        records = self.request.records_of(row, column)
        ours = defined(scores_of(records, column.averaged).at(self.round))
        line = keys_of(self.request, row, column) | {"score": column.averaged, "ours": mean(ours) if ours else None}
        if row.id == self.reference.id:
            return line
        line |= _gain_fields(OVER, self._over(row, self.reference, column))
        if row.id == self.part.id:
            return line
        line |= _gain_fields(BEYOND, self._over(row, self.part, column))
        simple = paired(*(self.request.records_of(each, column) for each in (self.part, self.reference)))
        seeds = {record.cell.seed for record, _ in simple} & {record.cell.seed for record in records}
        whole, part = (self._over(each, self.reference, column, seeds) for each in (row, self.part))
        if whole and part and whole.value and part.value is not None and whole.ends and whole.ends[0] > 0:
            line["share"] = 100 * part.value / whole.value
        return line

    def lines(self) -> Iterator[dict[str, JSON]]:
        """A line a cell, in the metrics' units."""
        for row, at in product(self.request.rows, self.request.columns):
            yield self.by_cell[row.id, at.task] | {"status": status(self.request, row, at)}

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns with runs of both the part and the reference; all where no column has them."""
        run = tuple(at for at in self.request.columns if self.by_cell[self.part.id, at.task].get("n_gain"))
        return run or self.request.columns

    def method(self) -> Iterator[str]:
        """How gains and shares are defined."""
        columns = self.request.columns
        where = f"{over_clients(columns)} {at_round(self.request, self.round)}"
        yield (
            f"Gains{in_units(columns).replace('percent', 'points')}, {where}: means of differences paired by seed, "
            f"with their {INTERVAL} from three seeds on (n: seeds that both rows have; docs/statistics.md)."
        )
        yield (
            f"Share: {self.part.name}'s gain divided by the row's gain, on the seeds that all three have. It is shown "
            "if the row's interval lies above 0. The two lines above it show the remaining difference and its interval."
        )

    def _lines_of(self, row: Row) -> Iterator[Line]:
        cells = [(column, self.by_cell[row.id, column.task]) for column in self.columns]
        is_reference = row.id == self.reference.id

        def main(column: Column, line: dict[str, JSON]) -> str:
            if line["ours"] is None:
                return not_run(self.request, row, column)
            return number(line["ours"]) if is_reference else number(line.get(OVER), "+")

        label = "score" if is_reference else f"over {self.reference.name}"
        yield Line(label, tuple(main(*cell) for cell in cells), is_main=True)
        if is_reference:
            return
        yield Line(f"{INTERVAL} (n)", tuple(_interval_text(line, OVER) for _, line in cells))
        if any(line.get(f"n_{BEYOND}") is not None for _, line in cells):
            yield Line(f"over {self.part.name}", tuple(number(line.get(BEYOND), "+") for _, line in cells))
            yield Line(f"{INTERVAL} (n)", tuple(_interval_text(line, BEYOND) for _, line in cells))
        if any("share" in line for _, line in cells):
            yield Line("share", tuple(f"{line['share']:.0f} %" if "share" in line else NOTHING for _, line in cells))

    def grids(self) -> tuple[Grid, ...]:
        """Groups are methods, columns tasks."""
        headers = tuple((column.name, score_label(column, column.averaged)) for column in self.columns)
        groups = tuple(Group(self.request.name_of(row), tuple(self._lines_of(row))) for row in self.request.rows)
        gains = Grid(f"{self.request.heading}: gains over {self.reference.name}", headers, groups)
        return (gains, *self._grid_of_parts())

    def _grid_of_parts(self) -> Iterator[Grid]:
        """The headline's gain and its parts, on the tasks that count."""
        if not self.sums:
            return
        names = [*next(iter(self.sums.values()))]
        lines = tuple(
            Line(
                "gain" if name == self.headline.name else name,
                tuple(with_interval(of[name].value, of[name].ends, "+") for of in self.sums.values()),
                name == self.headline.name,
            )
            for name in names
        )
        title = f"{self.headline.name}: gain over {self.reference.name} as a sum, with {INTERVAL}"
        yield Grid(title, tuple((task,) for task in self.sums), (Group(self.headline.name, lines),))

    @cached_property
    def counted(self) -> list[Column]:
        """The columns that are evidence."""
        checks = gates(self.request)
        return [at for at in self.columns if at.task not in checks or not checks[at.task].why]

    @cached_property
    def sums(self) -> dict[str, dict[str, Estimate]]:
        """Task -> the headline's gain and its parts, where they are evidence and have the same seeds."""
        sums = {column.name: self._sum(column) for column in self.counted if "sum" in self.options}
        return {task: gains for task, gains in sums.items() if gains}

    def _sum(self, column: Column) -> dict[str, Estimate]:
        """The headline's gain and its parts; empty if they do not have the same seeds."""
        pairs = {self.headline.name: (self.headline.id, self.reference.id), **self.options["sum"]}
        gains = {name: each for name, pair in pairs.items() if (each := self._between(pair, column))}
        return gains if len(gains) == len(pairs) and len({each.n for each in gains.values()}) == 1 else {}

    def _between(self, ids: Iterable[str], column: Column) -> Estimate | None:
        """How much better one row is than another, by their ids."""
        one, other = map(self.request.benchmark.row, ids)
        return self._over(one, other, column)

    def _alone(self, column: Column) -> dict[str, Estimate]:
        """What each row that has one part alone gains."""
        pairs = {name: (row, self.reference.id) for name, row in self.options["alone"].items()}
        return {name: gain for name, pair in pairs.items() if (gain := self._between(pair, column))}

    def _column(self, task: str) -> Column:
        return next(column for column in self.columns if column.name == task)

    def conclusions(self) -> Iterator[str]:
        """On each task, by two scores: the headline's gain as a sum, parts alone, and the gain over local training."""
        scores = ("", self.options.get("called", "")), self.options.get("elsewhere", ("", ""))
        for task, (score, called) in product(self.sums, filter(any, scores)):
            column = replace(self._column(task), averaged=score or self._column(task).averaged)
            if not (gains := self._sum(column)):
                continue
            whole, *parts = map(_with_interval, gains.items())
            of = f"{task}{seed_counts(each.n for each in gains.values())}, gain in {called} over {self.reference.name}"
            yield f"{of}: {whole} = {' + '.join(parts)} ({CONFIDENCE} intervals)."
            alone = [each for each in self._alone(column).items() if each[1] not in gains.values()]  # no term again
            if alone:
                yield f"Alone: {', '.join(map(_with_interval, alone))}."
            if beyond := self._between((self.headline.id, self.options["local"]), column):
                local = self.request.benchmark.row(self.options["local"])
                yield f"{self.headline.name} over {local.name}: {with_interval(beyond.value, beyond.ends, '+')}."

    def finding(self) -> tuple[str, str] | None:
        """For the first page: a task's sum, or the headline row against the part, on the mean of tasks that count."""
        repeated = {task: gains for task, gains in self.sums.items() if all(each.n > 1 for each in gains.values())}
        if repeated:
            task, gains = next(iter(repeated.items()))
            points = gains[self.headline.name].value or 0.0
            above = f"{number(abs(points), places=1)} points {'above' if points >= 0 else 'below'}"
            alone = self._alone(self._column(task)).items()
            told = ", ".join(f"{name} alone {number(gain.value, '+', places=1)}" for name, gain in alone)
            (last, rest), within = [*gains.items()][-1], self.options["within"]
            is_little = rest.ends is not None and max(map(abs, rest.ends)) <= within
            adds = f"less than {within:g} point{'s'[within == 1 :]}" if is_little else number(rest.value, "+", places=1)
            scores = f"{self.headline.name} scores {above} {self.reference.name} in {self.options['called']}"
            title = f"On {task}, {scores}: {told}; a {last} adds {adds} to {self.part.name}"
            kind = self.options.get("kind", "exploratory")
            return title, f"{' '.join(self.conclusions()).rstrip('.')}; {kind}"
        estimates = {at.name: self._over(self.headline, self.part, at) for at in self.counted}
        by_task = {name: each for name, each in estimates.items() if each is not None and each.interval is not None}
        if not by_task:
            return None
        whole = average_of(tuple(by_task.values()))
        value, ends = whole.value or 0.0, whole.interval or (0.0, 0.0)
        title = f"{self.headline.name} is {compared(value, ends)} than {self.part.name}: {self.options['is']}"
        each = "; ".join(f"{name} {number(one.value, '+')}" for name, one in by_task.items())
        n, text = seed_counts(one.n for one in by_task.values()), with_interval(value, ends, "+")
        kind = self.options.get("kind", "exploratory")
        about = f"{kind}, {at_round(self.request, self.round)}, {CONFIDENCE} interval"
        return title, f"mean of {len(by_task)} tasks {text}{n}, {about}: {each}"

    def plot(self) -> Figure:
        """A panel for each task, a mark for each row, and a line where the simple part alone comes."""
        request, panels = self.request, []
        columns, left_out = with_points(
            request.columns,
            lambda at: bool(self.by_cell[self.part.id, at.task].get("n_gain")),
            f"Without {self.part.name}",
        )
        rows = {row.id: request.name_of(row) for row in request.rows if row.id != self.reference.id}
        for column in columns:
            lines = {name: self.by_cell[row_id, column.task] for row_id, name in rows.items()}
            gains = {name: line for name, line in lines.items() if line.get(OVER) is not None}
            ends = {name: (line["gain_low"], line["gain_high"]) for name, line in gains.items() if "gain_low" in line}
            alone = self.by_cell[self.part.id, column.task].get(OVER)
            levels = {} if alone is None else {f"{self.part.name} alone": alone}
            points = " (points)" if metric(column.averaged).unit else ""
            title = f"{column.name}, {score_label(column, column.averaged)}{points}"
            dots = Dots("gain", {name: line[OVER] for name, line in gains.items()}, {}, ends)
            panels.append(Panel(title, list(rows.values()), [dots], levels=levels))
        caption = (
            f"Means of differences paired by seed, with {CONFIDENCE} intervals from three seeds on; no mark: not run."
            f"{dagger_note(request)}{left_out}"
        )
        return dot_plot(request.heading, panels, f"gain over {self.reference.name}", caption)


def _gain_fields(name: str, estimate: Estimate | None) -> dict[str, JSON]:
    if estimate is None:
        return {}
    ends = zip((f"{name}_low", f"{name}_high"), estimate.ends or (), strict=False)
    return {name: estimate.value, f"n_{name}": estimate.n} | dict(ends)


def _with_interval(gain: tuple[str, Estimate]) -> str:
    name, estimate = gain
    return f"{name} {with_interval(estimate.value, estimate.ends, '+')}"


def _interval_text(line: dict[str, JSON], name: str) -> str:
    ends = [line[end] for end in (f"{name}_low", f"{name}_high") if end in line]
    return f"{in_brackets(ends, '+')} ({line[f'n_{name}']})" if f"n_{name}" in line else NOTHING
