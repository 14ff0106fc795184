"""The view of a table of scores: measured and reported, by method and task, with their costs; as dots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from matplotlib.figure import Figure

from benchmarks.experiment import Row
from benchmarks.results import RunBytes, all_stages, stage_bytes
from benchmarks.run_config import JSON
from reports.evidence.published_files import AVERAGE
from reports.evidence.records import PAPER
from reports.evidence.scores import score_label, unit_of
from reports.evidence.traffic import Cost
from reports.pages.page import Grid, Group, Line, keys_of, one_line
from reports.pages.plots import HOLLOW, Dots, Panel, dot_plot
from reports.pages.text import (
    MEASURED,
    NOT_RUN,
    NOTHING,
    ONE_TIME,
    REPORTED,
    UNDEFINED,
    at_round,
    human_bytes,
    human_seconds,
    in_brackets,
    joined,
    marked,
    number,
    status,
    with_unit,
)
from reports.views.comparison import BOUNDS, INTERVAL, CellResult, Comparison, ScoreResult

_OF_SCORE = ("sd", "sampling_error", "published", "derivation", "difference", "verdict", "margin")
_OF_COST = ("round_bytes", "up_bytes", "down_bytes", "setup_bytes", "train_seconds")
_DERIVED = "derived from the paper's text"


def _judged(result: ScoreResult) -> str:
    could = "" if result.margin is None else f" (± {number(result.margin)} could be shown)"
    return marked((result.verdict or NOTHING) + could, result.is_derived)


def _measured(result: ScoreResult) -> str:
    return UNDEFINED if result.ours is None and result.is_held else number(result.ours)


_TEXTS: Mapping[str, Callable[[ScoreResult], str]] = {
    "± sd": lambda result: number(result.sd),
    INTERVAL: lambda result: in_brackets(result.ci),
    "± SE (test set)": lambda result: number(result.sampling_error),
    REPORTED: lambda result: marked(number(result.published), result.is_derived),
    BOUNDS: lambda result: in_brackets(result.interval),
    "difference": lambda result: marked(number(result.difference, "+"), result.is_derived),
}


class ScoreTable(Comparison):
    """Scores and costs of a table's methods on its tasks."""

    is_of_whole_runs = True  # whether the site's first chart has it
    reported = "Diamonds"  # the marks of reported values in the figure

    # ---- tables ----------------------------------------------------------------------------------------------------

    def grids(self) -> Iterator[Grid]:
        """Scores, and bytes where something was run."""
        yield from (grid for grid in (self.scores_grid(), self.costs_grid()) if grid.groups)

    def cell_lines(self, cells: Sequence[CellResult | None], is_published: bool) -> tuple[Line, ...]:
        """The lines of scores for adjacent cells; None for a cell that the table lacks."""
        shown = [cell for cell in cells if cell is not None]
        is_run, has_seeds = any(cell.is_run for cell in shown), any(len(cell.seeds) > 1 for cell in shown)
        # The label shows the number of seeds if all cells have the same; otherwise each cell does.
        counts = {len(cell.seeds) for cell in self.cells if cell.is_run}
        n = f" (n = {counts.pop()})" if len(counts) == 1 else ""

        def line(label: str, text: Callable[[CellResult], str]) -> Line:
            return Line(label, tuple(NOTHING if cell is None else text(cell) for cell in cells))

        def scores(label: str) -> Line:
            return line(label, lambda cell: joined(map(_TEXTS[label], cell.scores)))

        def measured(cell: CellResult) -> str:
            has_numbers = cell.is_run or any(result.ours is not None for result in cell.scores)
            return joined(map(_measured, cell.scores)) if has_numbers else cell.missing

        best = tuple(
            tuple(cell.row.id in self.bold[cell.column.task, result.score] for result in cell.scores)
            if cell is not None and cell.is_run
            else ()
            for cell in cells
        )
        lines = [Line(f"{MEASURED}{n if is_run else ''}", line("", measured).cells, True, best)]
        if not n and is_run:
            seeds = (len(cell.seeds) if cell else 0 for cell in cells)
            sds = zip(scores("± sd").cells, seeds, strict=True)
            lines.append(Line("± sd (n)", tuple(f"{sd} ({k})" if k else sd for sd, k in sds)))
        elif has_seeds:
            lines.append(scores("± sd"))
        lines += [scores(INTERVAL)] if any(result.ci for cell in shown for result in cell.scores) else []
        lines += [scores("± SE (test set)")] if is_run else []
        lines += [scores(REPORTED)] if is_published else []
        if is_published and self.request.scale.id == PAPER and is_run:
            verdicts = line("verdict", lambda cell: "/".join(dict.fromkeys(map(_judged, cell.scores))))
            lines += [scores(BOUNDS), scores("difference"), verdicts]
        return tuple(lines)

    def scores_grid(self) -> Grid:
        """Rows are methods, columns tasks, last the average; a cell has the column's scores between slashes."""
        columns, groups = self.columns_shown, list[Group]()
        labels = ("/".join(score_label(at, score) for score in self.scores_shown(at)) for at in columns)
        headers = [(at.name, label, self.examples(at)) for at, label in zip(columns, labels, strict=True)]
        headers += [("Average", "", "")] if self.has_average else []
        for row in self.request.rows:
            cells = [self.cell(row, column) for column in columns]
            cells += [cell for cell in self.means if cell.row.id == row.id and self.has_average]
            is_published = self.shows_published and row.printed
            groups.append(Group(self.request.name_of(row), self.cell_lines(cells, is_published)))
        return Grid(f"{self.request.heading}: scores", tuple(headers), tuple(groups))

    def costs_grid(self) -> Grid:
        """Rows are methods: bytes of one task's round and set-up, and totals over the tasks run."""
        columns, gigabyte = self.request.columns, self.request.benchmark.paper.gigabyte
        headers = (("per round", "by task"), ("uplink", "all rounds"), ("downlink", "all rounds"), ONE_TIME)
        groups = []
        for row in self.request.rows:
            cells = (self.cell(row, column) for column in columns)
            costs = [cell.cost for cell in cells if cell.cost is not None]
            if any(cost.total_bytes + cost.setup_bytes for cost in costs):
                label = f"{len(costs)} of {len(columns)} tasks"
                groups.append(one_line(self.request.name_of(row), _cost_cells(costs, self._sent(row), gigabyte), label))
        return Grid(f"{self.request.heading}: communication cost", (*headers, ("training",)), tuple(groups))

    def _sent(self, row: Row) -> tuple[float, float]:
        """Uplink and downlink on all tasks, means over seeds; a parent run that tasks share counts once."""
        shares: dict[str, float] = {}  # run -> the share of a task's seeds that have it
        sizes: dict[str, RunBytes] = {}
        for column in self.request.columns:
            records = self.request.records_of(row, column)
            if self.cell(row, column).cost is None:
                continue
            stages = [stage for record in records for stage in all_stages(record, self.request.find) or ()]
            sizes |= {stage.cell_id: stage_bytes(stage) for stage in stages}
            for cell_id, count in Counter(stage.cell_id for stage in stages).items():
                shares[cell_id] = max(shares.get(cell_id, 0.0), count / len(records))
        up = sum(share * sizes[cell_id].up for cell_id, share in shares.items())
        return up, sum(share * sizes[cell_id].down for cell_id, share in shares.items())

    # ---- the long form ---------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[dict[str, JSON]]:
        """A line for each score of a cell, and for each average.

        Scores are in their units, bytes and seconds means over seeds. `last` is the score at the last round.
        """
        common = {"score_at": self.request.scored_at}
        yield from (common | self._score_line(cell, result) for cell in self.cells for result in cell.scores)
        for cell in self.means:
            state = "run" if cell.headline.ours is not None else NOT_RUN
            about = {"column": AVERAGE, "task": "Average", "score": "", "status": state}
            numbers = _numbers(cell.headline, ("published", "difference"))
            yield common | keys_of(self.request, cell.row) | about | numbers

    def _score_line(self, cell: CellResult, result: ScoreResult) -> dict[str, JSON]:
        line = keys_of(self.request, cell.row, cell.column) | _numbers(result, ("score", "last", *_OF_SCORE))
        line |= {"status": status(self.request, cell.row, cell.column)}
        line |= {"n_seeds": result.seeds, "seeds": " ".join(map(str, cell.seeds))}
        if cell.cost is not None:
            line |= {name: getattr(cell.cost, name) for name in _OF_COST}
            line |= {"n_test": round(cell.cost.test_examples), "rounds": round(cell.cost.rounds)}
        return line

    # ---- the figure ------------------------------------------------------------------------------------------------

    @property
    def caption(self) -> str:
        """The meaning of marks and whiskers."""
        scale = self.request.scale
        text = (
            f"Full marks: measured, mean over clients and seeds {at_round(self.request)}; no mark: not "
            "run. Whiskers: ± sd over seeds; with one seed, ± SE of the test sets."
        )
        if any(cell.headline.published is not None for cell in self.cells):
            is_derived = any(cell.headline.is_derived for cell in self.cells)
            text += f" {self.reported}: reported" + (f" (circles: {_DERIVED})" if is_derived else "")
            text += "." if scale.id == PAPER else "; with this small encoder, compare rankings, not score levels."
        return text

    def score_panels(self, names: Mapping[str, str], levels: Collection[str]) -> Iterator[Panel]:
        """A panel for each task: its headline score by method.

        names: row id -> name. levels: ids of the rows that are drawn as lines.
        """
        for column in self.columns_shown:
            cells = {row.id: self.cell(row, column).headline for row in self.request.rows}
            shown = {name: cells[row_id] for row_id, name in names.items() if row_id not in levels}
            lines = {names[row_id]: level for row_id in levels if (level := cells[row_id].ours) is not None}
            title = f"{column.name}, {score_label(column, column.averaged)}"
            yield Panel(title, list(shown), dots(shown), levels=lines)

    @property
    def axis_label(self) -> str:
        """The label of the score axis."""
        return with_unit("score", unit_of(self.columns_shown))

    def plot(self) -> Figure:
        """A panel for each task; the majority class as lines."""
        rows = self.request.rows
        levels = [row.id for row in rows if "majority" in row.algorithm]
        panels = list(self.score_panels({row.id: self.request.name_of(row) for row in rows}, levels))
        return dot_plot(self.request.heading, panels, self.axis_label, self.caption)


def _cost_cells(costs: Sequence[Cost], sent: tuple[float, float], gigabyte: int) -> Iterator[str]:
    def spread(sizes: Sequence[float]) -> str:
        """A range from the smallest to the largest, if the tasks differ."""
        return " … ".join(dict.fromkeys(human_bytes(size, gigabyte) for size in (min(sizes), max(sizes))))

    yield spread([cost.round_bytes for cost in costs])
    yield from (human_bytes(size, gigabyte) for size in sent)
    yield spread([cost.setup_bytes for cost in costs])
    seconds = [cost.train_seconds for cost in costs if cost.train_seconds is not None]
    yield human_seconds(sum(seconds)) if len(seconds) == len(costs) else NOTHING


def _numbers(result: ScoreResult, fields: Iterable[str]) -> dict[str, JSON]:
    low, high = result.interval or (None, None)
    numbers = {name: getattr(result, name) for name in ("ours", *fields)}
    return numbers | {"interval_low": low, "interval_high": high}


def dots(results: Mapping[str, ScoreResult]) -> list[Dots]:
    """The series of a dot plot of scores. results: name on the axis -> its result."""
    ours = {name: result.ours for name, result in results.items() if result.ours is not None}
    whiskers = {name: (value - results[name].error, value + results[name].error) for name, value in ours.items()}
    series = [Dots(MEASURED, ours, {}, whiskers)]
    for label, style, is_derived in ((REPORTED, HOLLOW, False), (_DERIVED, HOLLOW | {"marker": "o"}, True)):
        printed = {name: result.published for name, result in results.items() if result.is_derived == is_derived}
        values = {name: value for name, value in printed.items() if value is not None}
        series += [Dots(label, values, style)] if values else []
    return series
