"""The view of a table of scores: measured and reported, by method and task, and what they cost; as bars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.experiment import Column, Row
from benchmarks.run_config import JSON
from reports.evidence.published import AVERAGE
from reports.evidence.records import PAPER, Request
from reports.evidence.resources import Resources
from reports.evidence.scores import score_label, unit_of
from reports.evidence.traffic import Cost
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form, one_line
from reports.pages.plots import HOLLOW, Dots, Panel, dot_plot
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
    number,
    row_name,
    status,
)
from reports.views.comparison import BOUNDS, INTERVAL, CellResult, Comparison, ScoreResult, compare
from reports.views.resources import communication_grid, computation_grid, cost_lines, cost_notes

_OF_SCORE = ("sd", "sampling_error", "published", "derivation", "difference", "verdict", "margin")
_OF_COST = ("round_bytes", "up_bytes", "down_bytes", "setup_bytes", "train_seconds")
FIELDS = [
    *(*KEYS[:4], "score_at", *KEYS[4:], "score", "status", "ours", "n_seeds", "seeds"),
    *("sd", "interval_low", "interval_high", "sampling_error", "published", "derivation", "difference", "verdict"),
    *("margin", "n_test", "rounds", *_OF_COST),
]
_DERIVED = "derived from the paper's text"

join = compare


def grids(comparison: Comparison) -> tuple[Grid, ...]:
    """Scores, bytes where something was run, and what a client costs where the paper's table says so."""
    request = comparison.request
    costs = Resources(request) if request.benchmark.costing else None
    tables = () if costs is None else (computation_grid(costs), communication_grid(costs))
    return tuple(grid for grid in (scores_grid(comparison), costs_grid(comparison), *tables) if grid.groups)


def notes(comparison: Comparison) -> Iterator[str]:
    """Every note under them."""
    yield from comparison.notes
    if comparison.request.benchmark.costing:
        yield from cost_notes(Resources(comparison.request))


def _bracketed(interval: tuple[float, float] | None) -> str:
    return NOTHING if interval is None else f"[{number(interval[0])}, {number(interval[1])}]"


def _judged(result: ScoreResult) -> str:
    could = "" if result.margin is None else f" (± {number(result.margin)} could be shown)"
    return marked((result.verdict or NOTHING) + could, result.is_derived)


def _measured(result: ScoreResult) -> str:
    return UNDEFINED if result.ours is None and result.is_held else number(result.ours)


_TEXTS: Mapping[str, Callable[[ScoreResult], str]] = {
    "± sd": lambda result: number(result.sd),
    INTERVAL: lambda result: _bracketed(result.ci),
    "± SE (test set)": lambda result: number(result.sampling_error),
    REPORTED: lambda result: marked(number(result.published), result.is_derived),
    BOUNDS: lambda result: _bracketed(result.interval),
    "difference": lambda result: marked(number(result.difference, "+"), result.is_derived),
}


def cell_lines(comparison: Comparison, cells: Sequence[CellResult | None], is_published: bool) -> tuple[Line, ...]:
    """The lines of scores of cells side by side; None where the table has no such cell."""
    shown = [cell for cell in cells if cell is not None]
    is_run, has_seeds = any(cell.is_run for cell in shown), any(len(cell.seeds) > 1 for cell in shown)
    # The label holds the number of seeds where it is the same for all, else every cell does.
    counts = {len(cell.seeds) for cell in comparison.cells if cell.is_run}
    n = f" (n = {counts.pop()})" if len(counts) == 1 else ""

    def line(label: str, text: Callable[[CellResult], str]) -> Line:
        return Line(label, tuple(NOTHING if cell is None else text(cell) for cell in cells))

    def scores(label: str) -> Line:
        return line(label, lambda cell: joined(map(_TEXTS[label], cell.scores)))

    def measured(cell: CellResult) -> str:
        has_numbers = cell.is_run or any(result.ours is not None for result in cell.scores)
        return joined(map(_measured, cell.scores)) if has_numbers else cell.missing

    best = tuple(
        tuple(cell.row.id in comparison.bold[cell.column.task, result.score] for result in cell.scores)
        if cell is not None and cell.is_run
        else ()
        for cell in cells
    )
    lines = [Line(f"{REPRODUCED}{n}", line("", measured).cells, True, best)]
    if not n and is_run:
        sds = scores("± sd").cells
        counts_of = (len(cell.seeds) if cell else 0 for cell in cells)
        lines.append(Line("± sd (n)", tuple(f"{sd} ({k})" if k else sd for sd, k in zip(sds, counts_of, strict=True))))
    elif has_seeds:
        lines.append(scores("± sd"))
    lines += [scores(INTERVAL)] if any(result.ci for cell in shown for result in cell.scores) else []
    lines += [scores("± SE (test set)")] if is_run else []
    lines += [scores(REPORTED)] if is_published else []
    if is_published and comparison.request.scale.id == PAPER and is_run:
        verdicts = line("verdict", lambda cell: "/".join(dict.fromkeys(map(_judged, cell.scores))))
        lines += [scores(BOUNDS), scores("difference"), verdicts]
    return tuple(lines)


def score_lines(comparison: Comparison, row: Row, columns: Sequence[Column]) -> tuple[Line, ...]:
    """A method's lines of scores; the average comes last where some method has one."""
    cells = [comparison.cell(row, column) for column in columns]
    cells += [cell for cell in comparison.averages if cell.row.id == row.id and comparison.has_average]
    return cell_lines(comparison, cells, comparison.shows_published and row.printed)


def scores_grid(comparison: Comparison) -> Grid:
    """Rows are methods, columns tasks; each cell holds the column's scores between slashes."""
    columns = comparison.columns_shown
    headers = [
        (
            column.name,
            "/".join(score_label(column, score) for score in comparison.scores_of(column)),
            comparison.examples(column),
        )
        for column in columns
    ]
    headers += [("Average", "", "")] if comparison.has_average else []
    groups = (Group(row_name(row), score_lines(comparison, row, columns)) for row in comparison.request.rows)
    return Grid(f"{comparison.request.heading}: scores", tuple(headers), tuple(groups))


def _cost_cells(costs: Sequence[Cost], gigabyte: int) -> Iterator[str]:
    def spread(values: Iterable[float]) -> str:
        """Of several tasks: a range from the smallest to the largest."""
        distinct = list(dict.fromkeys(human_bytes(value, gigabyte) for value in sorted(values)))
        return " … ".join(dict.fromkeys((distinct[0], distinct[-1])))

    yield spread(cost.round_bytes for cost in costs)
    yield human_bytes(sum(cost.up_bytes for cost in costs), gigabyte)
    yield human_bytes(sum(cost.down_bytes for cost in costs), gigabyte)
    yield spread(cost.setup_bytes for cost in costs)
    seconds = [cost.train_seconds for cost in costs if cost.train_seconds is not None]
    yield human_seconds(sum(seconds)) if len(seconds) == len(costs) else NOTHING


def costs_grid(comparison: Comparison) -> Grid:
    """Rows are methods: bytes of one task's round and set-up, and totals over the tasks run."""
    columns, gigabyte = comparison.request.columns, comparison.request.benchmark.paper.gigabyte
    headers = (("per round", "by task"), ("uplink", "all rounds"), ("downlink", "all rounds"), ONE_TIME, ("training",))
    groups = []
    for row in comparison.request.rows:
        cells = (comparison.cell(row, column) for column in columns)
        costs = [cell.cost for cell in cells if cell.cost is not None]
        if costs:
            label = f"{len(costs)} of {len(columns)} tasks"
            groups.append(one_line(row_name(row), _cost_cells(costs, gigabyte), label))
    return Grid(f"{comparison.request.heading}: communication cost", headers, tuple(groups))


def _cell_line(request: Request, cell: CellResult, result: ScoreResult) -> dict[str, JSON]:
    low, high = result.interval or (None, None)
    line = keys_of(request, cell.row, cell.column)
    line |= {name: getattr(result, name) for name in ("score", "ours", "last", *_OF_SCORE)}
    line |= {"status": status(request, cell.row, cell.column), "interval_low": low, "interval_high": high}
    line |= {"n_seeds": result.seeds, "seeds": " ".join(map(str, cell.seeds))}
    if cell.cost is not None:
        line |= {name: getattr(cell.cost, name) for name in _OF_COST}
        line |= {"n_test": round(cell.cost.test_examples), "rounds": round(cell.cost.rounds)}
    return line


def _average_line(request: Request, cell: CellResult) -> dict[str, JSON]:
    result = cell.headline
    low, high = result.interval or (None, None)
    line = keys_of(request, cell.row) | {"column": AVERAGE, "task": "Average", "score": ""}
    line |= {name: getattr(result, name) for name in ("ours", "published", "difference")}
    return line | {"interval_low": low, "interval_high": high, "status": NOT_RUN if result.ours is None else "run"}


def _cost_lines(request: Request) -> Iterator[dict[str, JSON]]:
    """What a client costs, as lines of scores: the quantity and how it is counted stand for a score."""
    if request.benchmark.costing:
        costs = Resources(request)
        for row in costs.rows:
            common = keys_of(request, row) | {"column": "costs", "task": "Costs", "status": "derived"}
            for line in cost_lines(costs, row):
                score = f"{line['quantity']} ({line['counted']})"
                yield common | {"score": score, "ours": line.get("value"), "published": line.get("published")}


def frame(comparison: Comparison) -> pd.DataFrame:
    """The comparison as a data frame of FIELDS: scores in their units, bytes and seconds as means over seeds.

    Where some record chose its round, a field `last` stands behind `ours`: the score at the last round.
    """
    request = comparison.request
    lines = [_cell_line(request, cell, result) for cell in comparison.cells for result in cell.scores]
    lines += [_average_line(request, cell) for cell in comparison.averages]
    lines = [{"score_at": request.scored_at} | line for line in (*lines, *_cost_lines(request))]
    place = FIELDS.index("ours") + 1
    fields = [*FIELDS[:place], "last", *FIELDS[place:]] if request.scored_at == "chosen" else FIELDS
    return long_form(lines, fields, {"Int64": ("n_seeds", "n_test", "rounds")})


def dots(results: Mapping[str, ScoreResult]) -> list[Dots]:
    """The series of a dot plot of scores. results: name on the axis -> its result."""
    known = {name: result for name, result in results.items() if result.ours is not None}
    ours = {name: result.ours for name, result in known.items() if result.ours is not None}
    whiskers = {name: (value - known[name].error, value + known[name].error) for name, value in ours.items()}
    series = [Dots(REPRODUCED, ours, {}, whiskers)]
    for label, style, is_derived in ((REPORTED, HOLLOW, False), (_DERIVED, HOLLOW | {"marker": "o"}, True)):
        printed = {name: result.published for name, result in results.items() if result.is_derived == is_derived}
        values = {name: value for name, value in printed.items() if value is not None}
        series += [Dots(label, values, style)] if values else []
    return series


def caption(comparison: Comparison) -> str:
    """What marks and whiskers are."""
    text = (
        f"Full marks: reproduced, mean over clients and seeds ({comparison.request.scored_at} round); no mark: not "
        "run. Whiskers: ± sd over seeds; with one seed, ± SE of the test sets."
    )
    if comparison.shows_published:
        is_derived = any(cell.headline.is_derived for cell in comparison.cells)
        text += " Diamonds: reported" + (f" (circles: {_DERIVED})" if is_derived else "")
        text += "." if comparison.request.scale.id == PAPER else ", not comparable in level: other encoder/scale."
    return text


def score_panels(comparison: Comparison, names: Mapping[str, str], levels: Collection[str]) -> Iterator[Panel]:
    """A panel for each task: its headline score by method.

    names: row id -> name. levels: ids of the rows that are drawn as lines.
    """
    for column in comparison.columns_shown:
        cells = {row.id: comparison.cell(row, column).headline for row in comparison.request.rows}
        shown = {name: cells[row_id] for row_id, name in names.items() if row_id not in levels}
        lines = {names[row_id]: level for row_id in levels if (level := cells[row_id].ours) is not None}
        title = f"{column.name}, {score_label(column, column.averaged)}"
        yield Panel(title, list(shown), dots(shown), levels=lines)


def plot(comparison: Comparison) -> Figure:
    """A panel for each task; the majority class as lines."""
    rows = comparison.request.rows
    levels = [row.id for row in rows if "majority" in row.algorithm]
    panels = list(score_panels(comparison, {row.id: row_name(row) for row in rows}, levels))
    label = axis_label(unit_of(comparison.columns_shown))
    return dot_plot(comparison.request.heading, panels, label, caption(comparison))


def axis_label(unit: str) -> str:
    """The label of an axis of scores."""
    return f"score ({unit})" if unit else "score"
