"""The view of gains: how much better each row is than a reference, and what remains beyond a simpler part of it.

Options: reference, the row that gains are over; part, the row that shows how much of the gains something simple gives
by itself; headline, the row whose remainder the first page reports. All are paired by seed, by the rules of verdicts
(docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product

from matplotlib.figure import Figure

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.results import RunResult
from benchmarks.run_config import JSON
from reports.evidence.inference import confidence
from reports.evidence.paired import difference
from reports.evidence.records import Request, paired
from reports.evidence.scores import known, score_label, scores_of
from reports.evidence.statistics import Estimate, mean
from reports.frame import TableView
from reports.pages.page import KEYS, Grid, Group, Line, keys_of
from reports.pages.plots import Dots, Panel, dot_plot, with_points
from reports.pages.text import NOTHING, at_round, dagger_note, in_units, not_run, number, over_clients, row_name, status

ROUND = "last"  # of every row: the part has one round, which starts from the reference's last model
INTERVAL = "95 % CI"
_ANY = ((-float("inf"), float("inf")),)
OVER, BEYOND = "gain", "beyond"


class Gains(TableView):
    """Every row's gain, also where the rows that the options name are not requested.

    A line holds: ours, the mean over the row's seeds; gain, how much better it is than the reference; beyond, than the
    part; share, the part's gain in percent of the row's, on the seeds that all three have, where it is certain that the
    row gains. Intervals are of 95 %, from three seeds on.
    """

    ranks = False
    fields = (
        *(*KEYS, "score", "status", "ours", "gain", "gain_low", "gain_high", "n_gain"),
        *("beyond", "beyond_low", "beyond_high", "n_beyond", "share"),
    )
    integers = ("n_gain", "n_beyond")

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.reference, self.part, self.headline = (
            request.rows_named(name)[0] for name in ("reference", "part", "headline")
        )

    @cached_property
    def by_cell(self) -> dict[tuple[str, str], dict[str, JSON]]:
        """(row id, task) -> its line."""
        cells = product((self.reference, self.part, self.headline, *self.request.rows), self.request.columns)
        return {(row.id, column.task): self._line(row, column) for row, column in cells}

    def _line(self, row: Row, column: Column) -> dict[str, JSON]:
        score = column.averaged
        records, reference, part = (self.request.records_of(one, column) for one in (row, self.reference, self.part))
        ours = known(scores_of(records, score).at(ROUND))
        line = keys_of(self.request, row, column) | {"score": score, "ours": mean(ours) if ours else None}

        def over(some: Sequence[RunResult], others: Sequence[RunResult]) -> Estimate | None:
            pairs = paired(some, others)
            return difference(pairs, score, ROUND) if pairs else None

        if row.id == self.reference.id:
            return line
        line |= _gain_fields(OVER, over(records, reference))
        if row.id == self.part.id:
            return line
        line |= _gain_fields(BEYOND, over(records, part))
        seeds = {record.cell.seed for record, _ in paired(part, reference)}
        common = [record for record in records if record.cell.seed in seeds]
        whole, simple = over(common, reference), over([record for record, _ in paired(part, common)], reference)
        ends = _interval(whole)
        if whole and simple and whole.value and simple.value is not None and ends and ends[0] > 0:
            line["share"] = 100 * simple.value / whole.value
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
        """What gains and shares are."""
        columns = self.request.columns
        yield (
            f"Gains{in_units(columns)}, {over_clients(columns)} {at_round(ROUND)}: means of "
            f"differences paired by seed, with their {INTERVAL} from three seeds on (n: seeds that both rows have; "
            "docs/statistics.md)."
        )
        yield (
            f"Share: the gain of {self.part.name} in percent of the row's gain, on the seeds that all three "
            "have, where the row's interval lies above 0 there. The lines above it show what remains, and its interval."
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
        groups = tuple(Group(row_name(row), tuple(self._lines_of(row))) for row in self.request.rows)
        return (Grid(f"{self.request.heading}: gains over {self.reference.name}", headers, groups),)

    def finding(self) -> tuple[str, str] | None:
        """For the first page: the part's gain, and what remains of a row's gain beyond it; None without records."""
        numbers, equal = [], 0
        for at in self.columns:
            part, headline = (self.by_cell[row.id, at.task] for row in (self.part, self.headline))
            if part.get(f"n_{OVER}") and headline.get(f"n_{BEYOND}"):
                beyond = f"{number(headline[BEYOND], '+')} {_interval_text(headline, BEYOND)}"
                gain = f"{self.part.name} {number(part[OVER], '+')}"
                numbers.append(f"{at.name}: {gain}, {self.headline.name} against that {beyond}")
                equal += headline.get(f"{BEYOND}_low", 0) <= 0 <= headline.get(f"{BEYOND}_high", 0)
        title = (
            f"On {equal} of {len(numbers)} tasks, {self.headline.name} is not measurably better than {self.part.name}"
        )
        return (title, f"gains over {self.reference.name}: {'; '.join(numbers)}") if numbers else None

    def plot(self) -> Figure:
        """A panel for each task, a mark for each row, and a line where the simple part alone comes."""
        request, panels = self.request, []
        columns, left_out = with_points(
            request.columns,
            lambda at: bool(self.by_cell[self.part.id, at.task].get("n_gain")),
            f"Without {self.part.name}",
        )
        rows = {row.id: row_name(row) for row in request.rows if row.id != self.reference.id}
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
            "Means of differences paired by seed, with 95 % intervals from three seeds on; no mark: not run."
            f"{dagger_note(request.rows)}{left_out}"
        )
        return dot_plot(request.heading, panels, f"gain over {self.reference.name}", caption)


def _interval(found: Estimate | None) -> tuple[float, float] | None:
    """The 95 % interval; None below three seeds."""
    return None if found is None else confidence([found], _ANY)


def _gain_fields(name: str, found: Estimate | None) -> dict[str, JSON]:
    if found is None:
        return {}
    ends = _interval(found)
    interval = {} if ends is None else {f"{name}_low": ends[0], f"{name}_high": ends[1]}
    return {name: found.value, f"n_{name}": found.n} | interval


def _interval_text(line: dict[str, JSON], name: str) -> str:
    if f"n_{name}" not in line:
        return NOTHING
    ends = [number(line[f"{name}_{end}"], "+") for end in ("low", "high")] if f"{name}_low" in line else []
    return f"{f'[{ends[0]}, {ends[1]}]' if ends else NOTHING} ({line[f'n_{name}']})"
