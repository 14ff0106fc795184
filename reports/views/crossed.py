"""The view of a table whose rows are crossed: methods in lines, variants of each method in columns.

Options: variant, what the columns are, such as "aggregation architecture"; methods, a method's name -> a variant's
name -> the row that is both. Rows that are none of these, such as a reference, have a line of their own, which holds
for every variant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from reports.evidence.records import Request
from reports.evidence.scores import score_label
from reports.evidence.traffic import Cost
from reports.pages.page import Grid, Group, Line
from reports.pages.text import DAGGER, NOTHING, human_bytes, human_seconds
from reports.views.comparison import CellResult, Comparison, compare
from reports.views.scores import cell_lines, examples
from reports.views.scores import frame as scores_frame


@dataclass(frozen=True)
class Method:
    """A line of the table: variant -> row; a reference has no variants, and one row for all of them."""

    name: str
    rows: Mapping[str, Row]
    is_reference: bool = False

    @property
    def label(self) -> str:
        return self.name if any(row.printed for row in self.rows.values()) else f"{self.name} {DAGGER}"


@dataclass(frozen=True)
class Crossed:
    """The comparison without an average, and the methods and variants that it shows, in the table's order."""

    comparison: Comparison
    variant: str
    variants: tuple[str, ...]
    methods: tuple[Method, ...]

    @property
    def request(self) -> Request:
        return self.comparison.request

    def cells(self, method: Method, column: Column) -> list[CellResult | None]:
        rows = [method.rows.get(variant) for variant in self.variants]
        return [None if row is None else self.comparison.cell(row, column) for row in rows]


def join(request: Request) -> Crossed:
    """Records and published values by method and variant; a request for a part leaves out empty lines and columns."""
    options = request.benchmark.view.options
    placed: Mapping[str, Mapping[str, str]] = options["methods"]
    asked = {row.id: row for row in request.rows}
    names = dict.fromkeys(variant for rows in placed.values() for variant in rows)
    methods = [
        Method(name, {variant: asked[row_id] for variant, row_id in rows.items() if row_id in asked})
        for name, rows in placed.items()
    ]
    methods = [method for method in methods if method.rows]
    crossed = {row_id for rows in placed.values() for row_id in rows.values()}
    # A table of references alone still has the columns for which they hold.
    variants = [name for name in names if any(name in method.rows for method in methods)] or list(names)
    others = [row for row in request.rows if row.id not in crossed]
    references = [Method(row.name, dict.fromkeys(variants, row), is_reference=True) for row in others]
    comparison, shown = replace(compare(request), averages=()), (*references, *methods)
    return Crossed(comparison, str(options["variant"]), tuple(variants), shown)


def notes(found: Crossed) -> Iterator[str]:
    """How the table is laid out, and every note of a table of scores."""
    names = [method.name for method in found.methods if method.is_reference]
    yield f"Columns: {found.variant}" + (f"; the same in every column: {', '.join(names)}." if names else ".")
    yield from found.comparison.notes


def _score_group(found: Crossed, method: Method, column: Column, score: str) -> Group:
    cells = [
        cell and replace(cell, scores=tuple(result for result in cell.scores if result.score == score))
        for cell in found.cells(method, column)
    ]
    is_published = any(result.published is not None for cell in cells if cell for result in cell.scores)
    return Group(method.label, cell_lines(found.comparison, cells, is_published))


def _cost_group(found: Crossed, method: Method, column: Column) -> Group:
    cells = found.cells(method, column)
    gigabyte = found.request.benchmark.paper.gigabyte

    def line(label: str, text: Callable[[Cost], str]) -> Line:
        costs = (cell.cost if cell else None for cell in cells)
        return Line(label, tuple(NOTHING if cost is None else text(cost) for cost in costs))

    lines = (
        line("per round", lambda cost: human_bytes(cost.round_bytes, gigabyte)),
        line("uplink, all rounds", lambda cost: human_bytes(cost.up_bytes, gigabyte)),
        line("downlink, all rounds", lambda cost: human_bytes(cost.down_bytes, gigabyte)),
        line("one-time model distribution", lambda cost: human_bytes(cost.setup_bytes, gigabyte)),
        line("training", lambda cost: NOTHING if cost.train_seconds is None else human_seconds(cost.train_seconds)),
    )
    return Group(method.label, lines)


def _grids(found: Crossed) -> Iterator[Grid]:
    headers = tuple((variant,) for variant in found.variants)
    for column in found.comparison.columns_shown:
        heading = found.request.heading_of(column)
        for score in sorted(found.comparison.scores_of(column), key=lambda score: score != column.averaged):
            title = f"{column.name}, {score_label(column, score)}"
            about = ", ".join(filter(None, (title, examples(found.comparison, column))))
            groups = tuple(_score_group(found, method, column, score) for method in found.methods)
            yield Grid(f"{heading}: {about}", headers, groups, signs=((metric(score).sign,),) * len(headers))
        run = [method for method in found.methods if any(c and c.is_run for c in found.cells(method, column))]
        groups = tuple(_cost_group(found, method, column) for method in run)
        yield Grid(f"{heading}: {column.name}, communication cost", headers, groups)


def grids(found: Crossed) -> tuple[Grid, ...]:
    """The tables; bytes only where something was run."""
    return tuple(grid for grid in _grids(found) if grid.groups)


def frame(found: Crossed) -> pd.DataFrame:
    """The comparison in long form."""
    return scores_frame(found.comparison)
