"""Table 3: methods in lines, aggregation architectures in columns.

A row outside this grid, such as a reference, has one line for all architectures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from benchmarks.experiment import Column, Row
from benchmarks.fedfreezebert.paper import FEDAVG_AT_FROZEN_RATE, HEADS, METHODS, with_head
from reports.evidence.records import DAGGER, Request
from reports.evidence.scores import score_label
from reports.pages.page import Grid, Group
from reports.pages.plots import HOLLOW, MARKS, Dots, Panel, dot_plot
from reports.views.scores import ScoreTable, dots

VARIANT = "aggregation architecture"
# Method's name -> architecture -> row id.
PLACED: Mapping[str, Mapping[str, str]] = {
    **{method.name: {name: with_head(method, head).id for head, name in HEADS.items()} for method in METHODS},
    FEDAVG_AT_FROZEN_RATE.name: {HEADS["ordinary"]: FEDAVG_AT_FROZEN_RATE.id},
}


@dataclass(frozen=True)
class CrossedMethod:
    """A line of the table: variant -> row; a reference has one row for all variants."""

    name: str
    rows: Mapping[str, Row]

    @property
    def label(self) -> str:
        return self.name if any(row.printed for row in self.rows.values()) else f"{self.name} {DAGGER}"


class CrossedTable(ScoreTable):
    """Scores by method and variant, without an average; a partial table leaves out empty lines and columns."""

    averages = False
    reported = "Hollow marks"

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        rows = {row.id: row for row in request.rows}
        methods = [
            CrossedMethod(name, {variant: rows[row_id] for variant, row_id in variants.items() if row_id in rows})
            for name, variants in PLACED.items()
        ]
        self.methods = [method for method in methods if method.rows]
        placed = {name for method in self.methods for name in method.rows}
        # A table with only references keeps all columns.
        self.variants = [name for name in HEADS.values() if name in placed] or list(HEADS.values())
        crossed = {row_id for variants in PLACED.values() for row_id in variants.values()}
        others = (row for row in request.rows if row.id not in crossed)
        self.references = [CrossedMethod(row.name, dict.fromkeys(self.variants, row)) for row in others]

    def notes(self) -> Iterator[str]:
        """The layout, and every note of a score table."""
        names = ", ".join(method.name for method in self.references)
        yield f"Columns: {VARIANT}" + (f"; the same in every column: {names}." if names else ".")
        yield from super().notes()

    def _score_group(self, method: CrossedMethod, column: Column, score: str) -> Group:
        rows = [method.rows.get(variant) for variant in self.variants]
        cells = [None if row is None else self.cell(row, column) for row in rows]
        kept = [
            cell and replace(cell, scores=tuple(result for result in cell.scores if result.score == score))
            for cell in cells
        ]
        is_published = any(result.published is not None for cell in kept if cell for result in cell.scores)
        return Group(method.label, self.cell_lines(kept, is_published))

    def grids(self) -> Iterator[Grid]:
        """A table per task and score, and one of bytes if anything was run."""
        headers = tuple((variant,) for variant in self.variants)
        for column in self.columns_shown:
            heading = self.request.heading_of(column)
            for score in sorted(self.scores_shown(column), key=lambda score: score != column.averaged):
                about = ", ".join(filter(None, (column.name, score_label(column, score), self.examples(column))))
                methods = (*self.references, *self.methods)
                groups = tuple(self._score_group(method, column, score) for method in methods)
                yield Grid(f"{heading}: {about}", headers, groups)
        yield from (grid for grid in [self.costs_grid()] if grid.groups)

    def plot(self) -> Figure:
        """A panel per task with headline scores: methods in lines, a mark per variant, references as levels."""
        panels = []
        for column in self.columns_shown:
            series, hollow = list[Dots](), list[Dots]()
            for place, variant in enumerate(self.variants):
                rows = {method.name: method.rows[variant] for method in self.methods if variant in method.rows}
                results = {name: self.cell(row, column).headline for name, row in rows.items()}
                measured, *reported = dots(results)
                sign = {"marker": MARKS[place % len(MARKS)]}
                series.append(replace(measured, label=variant, style=sign))
                hollow += [replace(marks, style=HOLLOW | sign) for marks in reported]
            rows = {method.label: method.rows[self.variants[0]] for method in self.references}
            scores = {label: self.cell(row, column).headline.ours for label, row in rows.items()}
            levels = {label: level for label, level in scores.items() if level is not None}
            title = f"{column.name}, {score_label(column, column.averaged)}"
            panels.append(Panel(title, [method.name for method in self.methods], [*series, *hollow], levels=levels))
        text = f"Marks: {VARIANT}. {self.caption}"
        return dot_plot(self.request.heading, panels, self.axis_label, text)
