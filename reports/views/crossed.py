"""The view of a table whose rows are crossed: methods in lines, variants of each method in columns.

Options: variant, what the columns are, such as "aggregation architecture"; methods, a method's name -> a variant's
name -> the row that is both. Rows outside this grid, such as a reference, have a line of their own, which holds for
every variant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.experiment import Column, Row
from reports.evidence.records import Request
from reports.evidence.scores import score_label, unit_of
from reports.pages.page import Grid, Group
from reports.pages.plots import HOLLOW, Dots, Panel, dot_plot
from reports.pages.styles import MARKS
from reports.pages.text import DAGGER
from reports.views.comparison import CellResult, Comparison, compare
from reports.views.scores import axis_label, caption, cell_lines, costs_grid, dots
from reports.views.scores import frame as scores_frame


@dataclass(frozen=True)
class CrossedMethod:
    """A line of the table: variant -> row; a reference has one row for all variants."""

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
    variants: tuple[str, ...]
    methods: tuple[CrossedMethod, ...]

    @property
    def request(self) -> Request:
        return self.comparison.request

    def cells(self, method: CrossedMethod, column: Column) -> list[CellResult | None]:
        rows = [method.rows.get(variant) for variant in self.variants]
        return [None if row is None else self.comparison.cell(row, column) for row in rows]


def join(request: Request) -> Crossed:
    """Records and published values by method and variant; a request for a part leaves out empty lines and columns."""
    placed: Mapping[str, Mapping[str, str]] = request.benchmark.view.options["methods"]
    rows = {row.id: row for row in request.rows}
    methods = [
        CrossedMethod(name, {variant: rows[row_id] for variant, row_id in variants.items() if row_id in rows})
        for name, variants in placed.items()
    ]
    methods = [method for method in methods if method.rows]
    names = dict.fromkeys(variant for variants in placed.values() for variant in variants)
    # A table of references alone still has the columns for which they hold.
    shown = [name for name in names if any(name in method.rows for method in methods)] or list(names)
    crossed = {row_id for variants in placed.values() for row_id in variants.values()}
    others = (row for row in request.rows if row.id not in crossed)
    references = [CrossedMethod(row.name, dict.fromkeys(shown, row), is_reference=True) for row in others]
    return Crossed(compare(request, averages=False), tuple(shown), (*references, *methods))


def notes(found: Crossed) -> Iterator[str]:
    """How the table is laid out, and every note of a table of scores."""
    names = [method.name for method in found.methods if method.is_reference]
    variant = found.request.benchmark.view.options["variant"]
    yield f"Columns: {variant}" + (f"; the same in every column: {', '.join(names)}." if names else ".")
    yield from found.comparison.notes


def _score_group(found: Crossed, method: CrossedMethod, column: Column, score: str) -> Group:
    cells = [
        cell and replace(cell, scores=tuple(result for result in cell.scores if result.score == score))
        for cell in found.cells(method, column)
    ]
    is_published = any(result.published is not None for cell in cells if cell for result in cell.scores)
    return Group(method.label, cell_lines(found.comparison, cells, is_published))


def grids(found: Crossed) -> Iterator[Grid]:
    """For each task a table a score, and one of bytes where something was run."""
    headers, comparison = tuple((variant,) for variant in found.variants), found.comparison
    for column in comparison.columns_shown:
        heading = found.request.heading_of(column)
        for score in sorted(comparison.scores_of(column), key=lambda score: score != column.averaged):
            about = ", ".join(filter(None, (column.name, score_label(column, score), comparison.examples(column))))
            groups = tuple(_score_group(found, method, column, score) for method in found.methods)
            yield Grid(f"{heading}: {about}", headers, groups)
    yield from (grid for grid in [costs_grid(comparison)] if grid.groups)


def frame(found: Crossed) -> pd.DataFrame:
    """The comparison in long form."""
    return scores_frame(found.comparison)


def plot(found: Crossed) -> Figure:
    """A panel for each task: methods in lines, a mark a variant of the headline score, references as levels."""
    comparison, panels = found.comparison, []
    methods = [method for method in found.methods if not method.is_reference]
    for column in comparison.columns_shown:
        series: list[Dots] = []
        for place, variant in enumerate(found.variants):
            rows = {method.name: method.rows[variant] for method in methods if variant in method.rows}
            results = {name: comparison.cell(row, column).headline for name, row in rows.items()}
            measured, *reported = dots(results)
            sign = {"marker": MARKS[place % len(MARKS)]}
            series.append(replace(measured, label=variant, style=sign))
            series += [replace(own, style=HOLLOW | sign) for own in reported]
        references = {
            method.label: comparison.cell(row, column).headline.ours
            for method in found.methods
            if method.is_reference
            for row in method.rows.values()
        }
        levels = {label: level for label, level in references.items() if level is not None}
        title = f"{column.name}, {score_label(column, column.averaged)}"
        panels.append(Panel(title, [method.name for method in methods], series, levels=levels))
    text = f"Marks: {found.request.benchmark.view.options['variant']}; hollow: reported. {caption(comparison)}"
    return dot_plot(found.request.heading, panels, axis_label(unit_of(comparison.columns_shown)), text)
