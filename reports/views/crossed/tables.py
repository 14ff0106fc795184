"""The tables of a crossed comparison: each score and the bytes, methods in lines and variants in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from benchmarks.spec import Column
from reports.comparison import CellResult
from reports.cost import Cost
from reports.layout import NOTHING, Grid, Group, Line, human_bytes, human_seconds, score_label
from reports.views.crossed.join import Crossed, Method
from reports.views.scores.tables import cell_lines, columns_shown, examples


def _by_headline(column: Column) -> list[str]:
    """A column's scores, the one that counts first."""
    return sorted(column.scores, key=lambda score: score != column.averaged)


def _one_score(cell: CellResult | None, score: str) -> CellResult | None:
    """The cell with that score alone."""
    return cell and replace(cell, scores=tuple(result for result in cell.scores if result.score == score))


def _score_group(found: Crossed, method: Method, column: Column, score: str) -> Group:
    """A method's lines of one score."""
    cells = [_one_score(cell, score) for cell in found.cells(method, column)]
    is_published = any(result.published is not None for cell in cells if cell for result in cell.scores)
    return Group(method.label, cell_lines(found.comparison, cells, is_published))


def _score_grid(found: Crossed, column: Column, score: str) -> Grid:
    """One score of a task."""
    about = ", ".join(filter(None, (f"{column.name}, {score_label(score)}", examples(found.comparison, column))))
    return Grid(
        f"{found.comparison.heading}: {about}",
        tuple((variant,) for variant in found.variants),
        tuple(_score_group(found, method, column, score) for method in found.methods),
    )


def _cost_lines(found: Crossed, method: Method, column: Column) -> tuple[Line, ...]:
    """A method's bytes and training time."""
    cells = found.cells(method, column)
    gigabyte = found.comparison.paper.gigabyte

    def line(label: str, text: Callable[[Cost], str]) -> Line:
        costs = (cell.cost if cell else None for cell in cells)
        return Line(label, tuple(NOTHING if cost is None else text(cost) for cost in costs))

    return (
        line("a round", lambda cost: human_bytes(cost.round_bytes, gigabyte)),
        line("up, all rounds", lambda cost: human_bytes(cost.up_bytes, gigabyte)),
        line("down, all rounds", lambda cost: human_bytes(cost.down_bytes, gigabyte)),
        line("set-up, once", lambda cost: human_bytes(cost.setup_bytes, gigabyte)),
        line("training", lambda cost: NOTHING if cost.train_seconds is None else human_seconds(cost.train_seconds)),
    )


def _cost_grid(found: Crossed, column: Column) -> Grid:
    """What a task cost, for the methods that were run."""
    groups = (
        Group(method.label, _cost_lines(found, method, column))
        for method in found.methods
        if any(cell and cell.is_run for cell in found.cells(method, column))
    )
    return Grid(
        f"{found.comparison.heading}: {column.name}, bytes",
        tuple((variant,) for variant in found.variants),
        tuple(groups),
    )


def _grids(found: Crossed) -> Iterator[Grid]:
    """Task by task: its scores, then its bytes."""
    for column in columns_shown(found.comparison):
        for score in _by_headline(column):
            yield _score_grid(found, column, score)
        yield _cost_grid(found, column)


def grids(found: Crossed) -> tuple[Grid, ...]:
    """The tables; bytes only where something was run."""
    return tuple(grid for grid in _grids(found) if grid.groups)
