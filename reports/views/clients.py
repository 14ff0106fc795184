"""The view of clients: mean, worst client, lowest tenth and spread, by method and task.

Option: baseline, the row that determines the fixed worst client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product

from matplotlib.figure import Figure

from benchmarks.experiment import Column, Row
from benchmarks.measures import OF_CLIENTS, metric, of_clients
from benchmarks.results import RunResult
from benchmarks.run_config import JSON
from reports.evidence.inference import CONFIDENCE, confidence, resampled
from reports.evidence.paired import Pairs, difference, level, resplit_ratio, rule_for
from reports.evidence.records import paired
from reports.evidence.scores import PROTOCOL, WORST, keeps_clients, scores_of, worst_clients
from reports.evidence.statistics import Estimate
from reports.frame import TableView
from reports.pages.page import Grid, Group, Line, keys_of
from reports.pages.plots import HOLLOW, Dots, Panel, dot_plot, with_points
from reports.pages.text import NOTHING, dagger_note, in_units, not_run, over_clients, with_interval

MEAN, FIXED = "mean", "fixed"
GAINS = (MEAN, WORST, FIXED)  # quantities that are compared with the baseline's


def bounds(estimate: Estimate, score: str = "") -> tuple[float, float] | None:
    """The interval, cut to the score's range; None below three seeds."""
    return confidence([estimate], [metric(score).limits]) if score else estimate.ends


def with_bounds(estimate: Estimate | None, score: str = "", sign: str = "") -> str:
    """A value and its interval as text, cut to the score's range; an exact value has no interval."""
    if estimate is None or estimate.value is None:
        return NOTHING
    ends = bounds(estimate, score)
    return with_interval(estimate.value, ends if ends and ends[0] < ends[1] else None, sign)


class Clients(TableView):
    """Levels and gains over the baseline of the mean, the worst client, the lowest tenth and the spread.

    Scores follow docs/protocol.md. For each seed, the fixed worst client is the one with the baseline's lowest scores
    on the other seeds; it is the same for all rows. Intervals are shown from three seeds on.
    """

    @cached_property
    def baseline(self) -> Row:
        return self.request.rows_named("baseline")[0]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns in which each of the baseline's clients has test examples; all columns if there are none."""
        columns = tuple(
            at
            for at in self.request.columns_run
            if any(all(one.held_out_counts(at.evaluation)) for one in self.request.records_of(self.baseline, at))
        )
        return columns or self.request.columns

    @cached_property
    def by_cell(self) -> dict[tuple[str, str, str], Estimate]:
        """(row id, task, quantity) -> its estimate; gains over the baseline are quantities such as "gain_worst"."""
        cells: dict[tuple[str, str, str], Estimate] = {}
        for row, column in product(self.request.rows, self.columns):
            records, base = (self.request.records_of(one, column) for one in (row, self.baseline))
            clients = worst_clients(base, column.averaged)
            for name in (MEAN, *OF_CLIENTS, *((FIXED,) if clients else ())):
                score = of_clients(column.averaged, name) if name in OF_CLIENTS else column.averaged
                whose = clients if name == FIXED else None
                cells[row.id, column.task, name] = level_of(records, score, whose)
                if name in GAINS and row.id != self.baseline.id:
                    cells[row.id, column.task, f"gain_{name}"] = gain_of(paired(records, base), score, whose)
        return {place: estimate for place, estimate in cells.items() if estimate.value is not None}

    def lines(self) -> Iterator[dict[str, JSON]]:
        """A line for each row, task and quantity, in the metrics' units."""
        rows, columns = ({one.id: one for one in self.request.rows}, {one.task: one for one in self.columns})
        for (row, task, quantity), estimate in self.by_cell.items():
            low, high = bounds(estimate, _limiting(columns[task], quantity)) or (None, None)
            line = keys_of(self.request, rows[row], columns[task]) | {"score": columns[task].averaged}
            line |= {"quantity": quantity, "value": estimate.value}
            yield line | {"low": low, "high": high, "n_seeds": estimate.n}

    def _group(self, row: Row) -> Group:
        names = {MEAN: "mean", **{name: of.label for name, of in OF_CLIENTS.items()}}
        names |= {FIXED: f"worst client of {self.baseline.name}"}
        labels = names | {f"gain_{name}": f"{names[name]}: gain over {self.baseline.name}" for name in GAINS}
        lines = []
        for name, label in labels.items():
            cells = [(self.by_cell.get((row.id, column.task, name)), column) for column in self.columns]
            if any(estimate for estimate, _ in cells):
                sign = "" if name in names else "+"
                texts = (with_bounds(estimate, _limiting(column, name), sign) for estimate, column in cells)
                lines.append(Line(label, tuple(texts), is_main=name == MEAN))
        if lines:
            counts = [len(self.request.records_of(row, column)) for column in self.columns]
            lines.append(Line("n", tuple(str(count) if count else NOTHING for count in counts)))
        empty = Line("", tuple(not_run(self.request, row, at) for at in self.columns), True)
        return Group(self.request.name_of(row), tuple(lines) or (empty,))

    def grids(self) -> tuple[Grid, ...]:
        """Groups are methods, columns tasks."""
        headers = tuple((column.name, metric(column.averaged).label) for column in self.columns)
        groups = tuple(self._group(row) for row in self.request.rows)
        return (Grid(f"{self.request.heading}: clients, with {CONFIDENCE} intervals", headers, groups),)

    def method(self) -> Iterator[str]:
        """How the numbers are computed."""
        yield (
            f"Scores{in_units(self.columns)}, {over_clients(self.columns)} unless a line names other clients: mean of "
            "the last three rounds if all runs have six or more rounds, else the last round (docs/protocol.md); "
            f"{CONFIDENCE} intervals from three seeds on. A gain is paired by seed, at rounds that both runs have, "
            "so it may differ from the difference of two means. n: the method's seeds."
        )
        yield from worst_notes(
            {
                f"{row.name} on {at.name}": (self.request.records_of(row, at), at.averaged)
                for row, at in product(self.request.rows, self.columns)
            }
        )
        if any(quantity == FIXED for _, _, quantity in self.by_cell):
            name = self.baseline.name
            yield f"Worst client of {name}: chosen on {name}'s other seeds, and the same for all methods."
        yield "Spread: standard deviation over clients within a run."

    def plot(self) -> Figure:
        """A panel for each task: mean and worst client of each method."""
        columns, left_out = with_points(self.columns, lambda at: any(place[1] == at.task for place in self.by_cell))
        panels = []
        for at in columns:
            series = []
            for name, label, style in ((MEAN, "mean", {}), (WORST, "worst client", HOLLOW)):
                cells = {
                    self.request.name_of(row): self.by_cell.get((row.id, at.task, name)) for row in self.request.rows
                }
                values = {row: one.value for row, one in cells.items() if one and one.value is not None}
                ends = {row: both for row, one in cells.items() if one and (both := bounds(one, at.averaged))}
                series.append(Dots(label, values, style, ends))
            names = [self.request.name_of(row) for row in self.request.rows]
            panels.append(Panel(f"{at.name}, {metric(at.averaged).label}", names, series))
        caption = f"Mean over clients and worst client, with {CONFIDENCE} intervals."
        caption += f"{dagger_note(self.request)}{left_out}"
        return dot_plot(self.request.heading, panels, "score", caption)


def worst_notes(cells: Mapping[str, tuple[Sequence[RunResult], str]]) -> Iterator[str]:
    """How each cell's worst clients are chosen. cells: name -> its records and score."""
    least: dict[str, list[str]] = {}
    run = {name: cell for name, cell in cells.items() if level_of(cell[0], of_clients(cell[1], WORST)).n}
    for name, (records, score) in run.items():
        if not all(map(keeps_clients, records)):
            least.setdefault("Each seed draws all clients anew, so no client is the same in two runs", []).append(name)
        elif not worst_clients(records, score):
            least.setdefault("With one seed, or with an undefined score, other seeds cannot choose", []).append(name)
    if sum(map(len, least.values())) < len(run):
        yield (
            "Worst client: for each seed, the client that scores worst in the method's other seeds, as the minimum "
            "within a run is biased against methods whose clients score alike (docs/statistics.md)."
        )
    for why, names in least.items():
        whose = "" if len(names) == len(run) else f" of {', '.join(names)}"
        yield (
            f"{why}: the worst client{whose} is the minimum in each scored round, and a run's number is the mean of "
            "these. The minimum is biased low by test-set noise (perplexity: biased high), most for methods whose "
            "clients score alike (docs/statistics.md)."
        )


def _limiting(column: Column, quantity: str) -> str:
    """The score that limits a quantity's range; "" for gains."""
    if quantity in OF_CLIENTS:
        return of_clients(column.averaged, quantity)
    return "" if quantity.startswith("gain_") else column.averaged


def level_of(
    records: Sequence[RunResult], score: str, clients: Mapping[int, int] | None = None, at: str = PROTOCOL
) -> Estimate:
    """A score over seeds, by default by the rule of docs/protocol.md.

    clients: seed -> client, for the score of one client. at: the scored round; see `rule_for`.
    """
    runs = [record for record in records if clients is None or record.cell.seed in clients]

    def by(rule: str) -> Estimate:
        if clients is None:
            return level(runs, score, rule)
        return resampled(scores_of(runs, score, clients).at(rule), resplit_ratio(runs, score.partition("/")[0]))

    return _by_rule(by, [(record, record) for record in runs], at)


def gain_of(pairs: Pairs, score: str, clients: Mapping[int, int] | None = None, at: str = PROTOCOL) -> Estimate:
    """By how much the first records of pairs are better, by the same rule."""
    ratio, gain = resplit_ratio([first for first, _ in pairs], score.partition("/")[0]), metric(score).gain

    def by(rule: str) -> Estimate:
        if clients is None:
            return difference(pairs, score, rule)
        sides = (scores_of([pair[side] for pair in pairs], score, clients).at(rule) for side in (0, 1))
        both = zip(*sides, strict=True)
        return resampled([None if None in pair else gain(*pair) for pair in both], ratio)

    return _by_rule(by, pairs, at)


def _by_rule(estimate_by: Callable[[str], Estimate], pairs: Pairs, at: str) -> Estimate:
    """At the scored round, or at the last one where predictions of earlier ones were not stored."""
    estimate = estimate_by(rule_for(at, pairs)) if pairs else Estimate(None)
    return estimate if estimate.value is not None or not pairs else estimate_by("last")
