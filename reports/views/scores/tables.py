"""The tables of a comparison: scores by method and task, bytes by method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmarks.spec import Column, Row
from reports.comparison import AverageResult, CellResult, Comparison, ScoreResult
from reports.cost import Cost
from reports.layout import (
    NOT_RUN,
    NOTHING,
    UNDEFINED,
    Grid,
    Group,
    Line,
    human_bytes,
    human_seconds,
    marked,
    number,
    row_name,
    score_label,
)


def columns_shown(comparison: Comparison) -> tuple[Column, ...]:
    """The columns to draw: those that were run, or all where none was."""
    return comparison.run_columns or comparison.columns


def _joined(cell: CellResult, text: Callable[[ScoreResult], str]) -> str:
    """The texts of a cell's scores as the paper prints them, a/b; one dash where there is none at all."""
    texts = [text(result) for result in cell.scores]
    return NOTHING if set(texts) == {NOTHING} else "/".join(texts)


def _ours(cell: CellResult) -> str:
    """Our scores."""
    if not cell.is_run:
        return NOT_RUN
    return _joined(cell, lambda result: UNDEFINED if result.ours is None else number(result.ours))


def _sd(cell: CellResult) -> str:
    """Standard deviation over seeds."""
    return _joined(cell, lambda result: number(result.sd))


def _sd_and_seeds(cell: CellResult) -> str:
    """Standard deviation over seeds, with their number."""
    return f"{_sd(cell)} ({len(cell.seeds)})" if cell.is_run else NOTHING


def _test_noise(cell: CellResult) -> str:
    """Sampling error of the test sets."""
    return _joined(cell, lambda result: number(result.sampling_error))


def _published(cell: CellResult) -> str:
    """What the paper prints, or what follows from its text, marked."""
    return _joined(cell, lambda result: marked(number(result.published), result.is_derived))


def _difference(cell: CellResult) -> str:
    """Ours - published."""
    return _joined(cell, lambda result: marked(number(result.difference, "+"), result.is_derived))


def _bracketed(interval: tuple[float, float] | None) -> str:
    """An interval; a dash for none."""
    return NOTHING if interval is None else f"[{number(interval[0])}, {number(interval[1])}]"


def _interval(cell: CellResult) -> str:
    """The 95 % t interval over seeds."""
    return _joined(cell, lambda result: _bracketed(result.interval))


def _verdict(cell: CellResult) -> str:
    """Whether the printed numbers were reproduced; once where all have the same verdict."""
    verdicts = dict.fromkeys(marked(result.verdict or NOTHING, result.is_derived) for result in cell.scores)
    return "/".join(verdicts)


def cell_lines(
    comparison: Comparison,
    cells: Sequence[CellResult | None],
    shows_published: bool,
    average: AverageResult | None = None,
) -> tuple[Line, ...]:
    """The lines of scores of cells side by side, None where the table has none; an average comes last.

    shows_published: whether what the paper prints stands beside ours.
    """
    shown = [cell for cell in cells if cell is not None]
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

    lines = [line(f"ours{n}", _ours, lambda found: number(found.ours), is_main=True)]
    if not n and any(cell.is_run for cell in shown):
        lines.append(line("± sd (n)", _sd_and_seeds))
    elif any(len(cell.seeds) > 1 for cell in shown):
        lines.append(line("± sd", _sd))
    if any(len(cell.seeds) > 1 for cell in shown):
        lines.append(line("95 % interval", _interval, lambda found: _bracketed(found.interval)))
    if any(cell.is_run for cell in shown):
        lines.append(line("± test set", _test_noise))
    if shows_published:
        lines.append(line("published", _published, lambda found: number(found.published)))
        lines.append(line("difference", _difference, lambda found: number(found.difference, "+")))
        if comparison.shows_verdicts and any(cell.is_run for cell in shown):
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
    partial = ", partial" if column.task in comparison.partial else ""
    return f"test: {'–'.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}{partial}"


def _score_names(column: Column) -> str:
    """The scores of a column as its header names them."""
    return "/".join(map(score_label, column.scores))


def scores_grid(comparison: Comparison) -> Grid:
    """Rows are methods, columns tasks: ours, seed noise, test noise, published and difference."""
    columns = columns_shown(comparison)
    headers = [(column.name, _score_names(column), examples(comparison, column)) for column in columns]
    if comparison.has_average:
        headers.append(("Average", "", ""))
    groups = (Group(row_name(row), score_lines(comparison, row, columns)) for row in comparison.rows)
    return Grid(f"{comparison.heading}: scores", tuple(headers), tuple(groups))


def _range(texts: Iterable[str]) -> str:
    """The texts of several tasks as one: a range from the first to the last, or the only one."""
    distinct = list(dict.fromkeys(texts))
    return distinct[0] if len(distinct) == 1 else f"{distinct[0]} … {distinct[-1]}"


def _cost_line(costs: Sequence[Cost], tasks: int, gigabyte: int) -> Line:
    """A method's bytes and time over the tasks that it was run on."""

    def spread(values: Iterable[float]) -> str:
        return _range(human_bytes(value, gigabyte) for value in sorted(values))

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
    headers = (
        ("a round", "by task"),
        ("up", "all rounds"),
        ("down", "all rounds"),
        ("set-up", "by task"),
        ("training",),
    )
    groups = []
    for row in comparison.rows:
        cells = (comparison.cell(row, column) for column in comparison.columns)
        costs = [cell.cost for cell in cells if cell.cost is not None]
        if costs:
            line = _cost_line(costs, len(comparison.columns), comparison.paper.gigabyte)
            groups.append(Group(row_name(row), (line,)))
    return Grid(f"{comparison.heading}: bytes", headers, tuple(groups))


def grids(comparison: Comparison) -> tuple[Grid, ...]:
    """The tables of a comparison; bytes only where something was run."""
    tables = (scores_grid(comparison), costs_grid(comparison))
    return tuple(grid for grid in tables if grid.groups)
