"""A page: what one benchmark shows at one scale, whatever its view. Every renderer draws pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from benchmarks.costs import WirePlan
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark, Column, Row, Scale
from reports.layout import Grid
from reports.selection import Selection, by_definition, select

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Derive(Protocol):
    """What one round of a cell sends, derived from shapes without training."""

    def __call__(self, row: Row, column: Column, scale: Scale, examples: int | None = None) -> WirePlan | None:
        """examples: of all clients together; None where the bytes depend on them unknown, or on the texts' lengths."""


@dataclass(frozen=True)
class Request:
    """The part of a benchmark that is to be shown, with the records at hand; records of other scales are ignored."""

    benchmark: Benchmark
    scale: Scale
    records: tuple[RunRecord, ...]
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    score_at: str = "last"
    derive: Derive | None = None  # where a view shows what the paper's own encoder would send

    @property
    def heading(self) -> str:
        """What is shown, with the scale that labels every number."""
        return f"{self.benchmark.paper.name}, {self.benchmark.place} · scale {self.scale.id}: {self.scale.label}"

    @cached_property
    def selections(self) -> dict[tuple[str, str], Selection]:
        """(row id, task) -> the records of that cell."""
        index = by_definition(record for record in self.records if record.cell.scale == self.scale.id)
        seeds = {record.cell.seed for found in index.values() for record in found}
        return {
            (row.id, column.task): select(self.benchmark, self.scale, row, column, index, seeds)
            for row in self.rows
            for column in self.columns
        }

    def records_of(self, row: Row, column: Column) -> tuple[RunRecord, ...]:
        """The records of one cell, one a seed in the order of seeds."""
        return self.selections[row.id, column.task].records

    def page(
        self,
        grids: Iterable[Grid],
        notes: Iterable[str],
        frame: Callable[[], pd.DataFrame],
        figure: Callable[[], Figure] | None = None,
    ) -> Page:
        """The page that answers this request."""
        return Page(
            benchmark_id=self.benchmark.id,
            scale_id=self.scale.id,
            heading=self.heading,
            title=self.benchmark.title,
            run=sum(bool(selection.records) for selection in self.selections.values()),
            cells=len(self.selections),
            grids=tuple(grids),
            notes=tuple(notes),
            frame=frame,
            figure=figure,
        )


def request_for(
    benchmark: Benchmark,
    scale: Scale,
    records: Iterable[RunRecord],
    rows: Sequence[Row] = (),
    columns: Sequence[Column] = (),
    score_at: str = "last",
    derive: Derive | None = None,
) -> Request:
    """A request for a part of a benchmark; no rows or columns means all of them."""
    return Request(
        benchmark,
        scale,
        tuple(records),
        tuple(rows) or benchmark.rows,
        tuple(columns) or benchmark.columns,
        score_at,
        derive,
    )


@dataclass(frozen=True)
class Page:
    """Tables, notes under them, the numbers in long form, and a figure where there is one to draw."""

    benchmark_id: str
    scale_id: str
    heading: str
    title: str
    run: int  # cells with a record, of `cells`
    cells: int
    grids: tuple[Grid, ...]
    notes: tuple[str, ...]
    frame: Callable[[], pd.DataFrame]
    figure: Callable[[], Figure] | None = None

    @property
    def csv(self) -> str:
        """The numbers as CSV."""
        return str(self.frame().to_csv(index=False, lineterminator="\n"))
