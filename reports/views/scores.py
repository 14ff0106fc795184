"""The view of a table of scores: reproduced beside reported, by method and task, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pandas as pd

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.run_config import JSON
from reports.evidence.published import AVERAGE
from reports.evidence.records import Request
from reports.evidence.resources import Resources
from reports.evidence.scores import score_label
from reports.evidence.traffic import Cost
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.text import (
    NOT_RUN,
    NOTHING,
    ONE_TIME,
    REPORTED,
    REPRODUCED,
    UNDEFINED,
    human_bytes,
    human_seconds,
    joined,
    marked,
    not_run,
    number,
    row_name,
    status,
)
from reports.views.comparison import BOUNDS, INTERVAL, AverageResult, CellResult, Comparison, ScoreResult, compare
from reports.views.resources import communication_grid, computation_grid, cost_lines, cost_notes

_OF_SCORE = ("sd", "sampling_error", "published", "derivation", "difference", "verdict", "margin")
_OF_COST = ("round_bytes", "up_bytes", "down_bytes", "setup_bytes", "train_seconds")
FIELDS = [
    *(*KEYS[:4], "score_at", *KEYS[4:], "score", "status", "ours", "n_seeds", "seeds"),
    *("sd", "interval_low", "interval_high", "sampling_error", "published", "derivation", "difference", "verdict"),
    *("margin", "n_test", "rounds", *_OF_COST),
]

join = compare


def grids(comparison: Comparison) -> tuple[Grid, ...]:
    """Scores, bytes where something was run, and what a client costs where the paper's table says so."""
    own = (scores_grid(comparison), costs_grid(comparison))
    costs = _resources(comparison)
    tables = () if costs is None else (computation_grid(costs), communication_grid(costs))
    return tuple(grid for grid in (*own, *tables) if grid.groups)


def _resources(comparison: Comparison) -> Resources | None:
    return Resources(comparison.request) if comparison.request.benchmark.costing else None


def notes(comparison: Comparison) -> tuple[str, ...]:
    """Every note under them."""
    costs = _resources(comparison)
    return comparison.notes if costs is None else (*comparison.notes, *cost_notes(costs))


def _bracketed(interval: tuple[float, float] | None) -> str:
    return NOTHING if interval is None else f"[{number(interval[0])}, {number(interval[1])}]"


def _of_scores(text: Callable[[ScoreResult], str]) -> Callable[[CellResult], str]:
    return lambda cell: joined(map(text, cell.scores))


_ours = _of_scores(lambda result: UNDEFINED if result.ours is None and result.is_held else number(result.ours))
_sd = _of_scores(lambda result: number(result.sd))
_ci = _of_scores(lambda result: _bracketed(result.ci))
_bounds = _of_scores(lambda result: _bracketed(result.interval))
_test_noise = _of_scores(lambda result: number(result.sampling_error))
_published = _of_scores(lambda result: marked(number(result.published), result.is_derived))
_difference = _of_scores(lambda result: marked(number(result.difference, "+"), result.is_derived))


def _judged(result: ScoreResult) -> str:
    if result.margin is not None:
        return f"{result.verdict} (± {number(result.margin)} could be shown)"
    return result.verdict or NOTHING


def _verdict(cell: CellResult) -> str:
    return "/".join(dict.fromkeys(marked(_judged(result), result.is_derived) for result in cell.scores))


def cell_lines(
    comparison: Comparison,
    cells: Sequence[CellResult | None],
    shows_published: bool,
    average: AverageResult | None = None,
) -> tuple[Line, ...]:
    """The lines of scores of cells side by side, None where the table has none; an average comes last."""
    shown = [cell for cell in cells if cell is not None]
    is_run, has_seeds = any(cell.is_run for cell in shown), any(len(cell.seeds) > 1 for cell in shown)
    # The number of seeds stands in the label where one number holds for all, else in every cell.
    counts = {len(cell.seeds) for cell in comparison.cells if cell.is_run}
    n = f" (n = {counts.pop()})" if len(counts) == 1 else ""

    def line(
        label: str,
        text: Callable[[CellResult], str],
        of_average: Callable[[AverageResult], str] = lambda _: "",
        is_main: bool = False,
    ) -> Line:
        tail = () if average is None else (of_average(average),)
        return Line(label, (*(NOTHING if cell is None else text(cell) for cell in cells), *tail), is_main)

    def ours(cell: CellResult) -> str:
        return _ours(cell) if cell.is_run else not_run(comparison.request, cell.row, cell.column)

    lines = [line(f"{REPRODUCED}{n}", ours, lambda found: number(found.ours), is_main=True)]
    if not n and is_run:
        lines.append(line("± sd (n)", lambda cell: f"{_sd(cell)} ({len(cell.seeds)})" if cell.is_run else NOTHING))
    elif has_seeds:
        lines.append(line("± sd", _sd))
    if any(result.ci for cell in shown for result in cell.scores):
        lines.append(line(INTERVAL, _ci, lambda found: _bracketed(found.ci)))
    if is_run:
        lines.append(line("± SE (test set)", _test_noise))
    if shows_published:
        lines.append(line(REPORTED, _published, lambda found: number(found.published)))
    if shows_published and comparison.shows_verdicts and is_run:
        lines.append(line(BOUNDS, _bounds, lambda found: _bracketed(found.interval)))
        lines.append(line("difference", _difference, lambda found: number(found.difference, "+")))
        lines.append(line("verdict", _verdict, lambda _: NOTHING))
    return tuple(lines)


def score_lines(comparison: Comparison, row: Row, columns: Sequence[Column]) -> tuple[Line, ...]:
    """A method's lines of scores; the average comes last where some method has one."""
    cells = [comparison.cell(row, column) for column in columns]
    average = comparison.average_of(row) if comparison.has_average else None
    return cell_lines(comparison, cells, comparison.shows_published and row.printed, average)


def examples(comparison: Comparison, column: Column) -> str:
    """Test examples of a column, as a range where the methods' differ."""
    costs = [cell.cost for cell in comparison.cells if cell.column.task == column.task]
    counts = sorted({round(cost.test_examples) for cost in costs if cost is not None})
    if not counts:
        return ""
    partly = ", partial" if column.task in comparison.partial else ""
    return f"test: {'–'.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}{partly}"


def scores_grid(comparison: Comparison) -> Grid:
    """Rows are methods, columns tasks: reproduced, seed and test noise, reported; at the paper's scale, verdicts."""
    columns = comparison.columns_shown
    headers = [
        (
            column.name,
            "/".join(score_label(column, score) for score in comparison.scores_of(column)),
            examples(comparison, column),
        )
        for column in columns
    ]
    signs = [tuple(metric(score).sign for score in comparison.scores_of(column)) for column in columns]
    if comparison.has_average:
        headers.append(("Average", "", ""))
        signs.append((1,) if all(metric(column.averaged).higher_is_better for column in columns) else ())
    groups = (Group(row_name(row), score_lines(comparison, row, columns)) for row in comparison.request.rows)
    return Grid(f"{comparison.request.heading}: scores", tuple(headers), tuple(groups), signs=tuple(signs))


def _cost_line(costs: Sequence[Cost], tasks: int, gigabyte: int) -> Line:
    def spread(values: Iterable[float]) -> str:
        """Of several tasks as one: a range from the first to the last, or the only one."""
        distinct = list(dict.fromkeys(human_bytes(value, gigabyte) for value in sorted(values)))
        return " … ".join(dict.fromkeys((distinct[0], distinct[-1])))

    seconds = [cost.train_seconds for cost in costs if cost.train_seconds is not None]
    cells = (
        spread(cost.round_bytes for cost in costs),
        human_bytes(sum(cost.up_bytes for cost in costs), gigabyte),
        human_bytes(sum(cost.down_bytes for cost in costs), gigabyte),
        spread(cost.setup_bytes for cost in costs),
        human_seconds(sum(seconds)) if len(seconds) == len(costs) else NOTHING,
    )
    return Line(f"{len(costs)} of {tasks} tasks", cells)


def costs_grid(comparison: Comparison) -> Grid:
    """Rows are methods: bytes of one task's round and set-up, and totals over the tasks run."""
    columns, gigabyte = comparison.request.columns, comparison.request.benchmark.paper.gigabyte
    by_task, whole = "by task", "all rounds"
    headers = (("per round", by_task), ("uplink", whole), ("downlink", whole), ONE_TIME, ("training",))
    groups = []
    for row in comparison.request.rows:
        cells = (comparison.cell(row, column) for column in columns)
        costs = [cell.cost for cell in cells if cell.cost is not None]
        if costs:
            groups.append(Group(row_name(row), (_cost_line(costs, len(columns), gigabyte),)))
    return Grid(f"{comparison.request.heading}: communication cost", headers, tuple(groups))


def _cell_line(request: Request, cell: CellResult, result: ScoreResult) -> dict[str, JSON]:
    low, high = result.interval or (None, None)
    known: dict[str, JSON] = {name: getattr(result, name) for name in ("score", "ours", "last", *_OF_SCORE)}
    known |= {"status": status(request, cell.row, cell.column), "interval_low": low, "interval_high": high}
    known |= {"n_seeds": result.seeds, "seeds": " ".join(map(str, cell.seeds))}
    if cell.cost is not None:
        known |= {name: getattr(cell.cost, name) for name in _OF_COST}
        known |= {"n_test": round(cell.cost.test_examples), "rounds": round(cell.cost.rounds)}
    return known


def _average_line(result: AverageResult) -> dict[str, JSON]:
    low, high = result.interval or (None, None)
    known: dict[str, JSON] = {name: getattr(result, name) for name in ("ours", "published", "difference")}
    known |= {"column": AVERAGE, "task": "Average", "score": "", "status": NOT_RUN if result.ours is None else "run"}
    return known | {"interval_low": low, "interval_high": high}


def _cost_lines(comparison: Comparison) -> Iterator[dict[str, JSON]]:
    """What a client costs, as lines of scores: the quantity and how it is counted stand for a score."""
    costs = _resources(comparison)
    if costs is None:
        return
    for row in costs.rows:
        common = keys_of(comparison.request, row) | {"column": "costs", "task": "Costs", "status": "derived"}
        for line in cost_lines(costs, row):
            score = f"{line['quantity']} ({line['counted']})"
            yield common | {"score": score, "ours": line.get("value"), "published": line.get("published")}


def frame(comparison: Comparison) -> pd.DataFrame:
    """The comparison as a data frame of FIELDS: scores in their units, bytes and seconds as means over seeds.

    Where some record chose its round, a field `last` stands behind `ours`: the score at the last round.
    """
    request = comparison.request
    pairs = [(cell, result) for cell in comparison.cells for result in cell.scores]
    lines = [keys_of(request, cell.row, cell.column) | _cell_line(request, cell, result) for cell, result in pairs]
    lines += [keys_of(request, result.row) | _average_line(result) for result in comparison.averages]
    lines += _cost_lines(comparison)
    lines = [{"score_at": request.scored_at} | line for line in lines]
    place = FIELDS.index("ours") + 1
    fields = [*FIELDS[:place], "last", *FIELDS[place:]] if request.scored_at == "chosen" else FIELDS
    return long_form(lines, fields, {"Int64": ("n_seeds", "n_test", "rounds")})
