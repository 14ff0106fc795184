"""A view: a table's or figure's content as one long frame, with its tables, notes and figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.experiment import Row
from benchmarks.run_config import JSON
from reports.evidence.records import DEMO, Request
from reports.pages.page import Grid, Page, long_form, one_line
from reports.pages.text import NOTHING, notes_under, number

FrameLine = Mapping[str, JSON]  # one line of a frame: field -> value


class TableView:
    """A benchmark's records as a frame, tables, notes and a figure.

    ranks: whether it shows the methods' scores, so one method is the best. options: of the benchmark's view.
    """

    ranks: ClassVar[bool] = True

    def __init__(self, request: Request) -> None:
        self.request = request
        self.options = request.benchmark.view.options

    def lines(self) -> Iterable[FrameLine]:
        """The frame's lines."""
        raise NotImplementedError

    def frame(self) -> pd.DataFrame:
        """The content of all tables in long form."""
        return long_form(self.lines())

    def grids(self) -> Iterable[Grid]:
        """The tables."""
        raise NotImplementedError

    def method(self) -> Iterator[str]:
        """How the numbers were obtained, as notes."""
        yield from ()

    def notes(self) -> Iterable[str]:
        """Every note under the tables."""
        return notes_under(self.request, self.method())

    def plot(self) -> Figure:
        """The figure, if the view has one."""
        raise NotImplementedError

    def conclusions(self) -> Iterator[str]:
        """Conclusions from the numbers, as sentences above the tables."""
        yield from ()

    def finding(self) -> tuple[str, str] | None:
        """For the first page: the finding and its numbers, of two seeds or more."""
        return None

    @cached_property
    def evident_finding(self) -> tuple[str, str] | None:
        """The finding; None for generated data, which are no evidence about methods."""
        return None if self.request.scale.id == DEMO else self.finding()

    def page(self) -> Page:
        """The view's page."""
        grids, notes, conclusions = tuple(self.grids()), tuple(self.notes()), tuple(self.conclusions())
        figure = None if type(self).plot is TableView.plot else self.plot
        return Page(self.request, grids, notes, self.frame, figure, self.ranks, self.evident_finding, conclusions)

    def title(self, about: str) -> str:
        """A title for numbers that are the same at every scale."""
        return f"{self.request.benchmark.paper.name}, {self.request.benchmark.place} · {about}"


Place = tuple[str, ...]  # such as the way to count, the quantity's name, and the denominator of a ratio


class Shown(NamedTuple):
    """A column of a table of quantities. field: of the frame, "value" or "published"."""

    header: tuple[str, ...]
    place: Place
    text: Callable[[float], str] = number
    field: str = "value"


class Quantities(TableView):
    """A view of rows' quantities. place_fields: the fields that identify a row's lines."""

    ranks = False
    place_fields: ClassVar[Sequence[str]] = ("counted", "quantity", "over")

    @cached_property
    def by_place(self) -> dict[tuple[str, Place], FrameLine]:
        """(row id, place) -> the frame's line."""

        def place(line: FrameLine) -> Place:
            return tuple(line[name] for name in self.place_fields if line.get(name))

        return {(line.get("row", ""), place(line)): line for line in self.lines()}

    def value(self, row: Row, place: Place, field: str = "value") -> float | None:
        """One number of the frame; None where it is missing."""
        value: float | None = self.by_place.get((row.id, place), {}).get(field)
        return value

    def values(self, rows: Iterable[Row], place: Place, field: str = "value") -> dict[str, float]:
        """Row's name -> its number, without the missing ones, as a series of a plot."""
        numbers = {self.request.name_of(row): self.value(row, place, field) for row in rows}
        return {name: value for name, value in numbers.items() if value is not None}

    def cells(self, row: Row, columns: Iterable[Shown]) -> tuple[str, ...]:
        """A row's numbers as texts; a dash for a missing number."""
        values = [(self.value(row, column.place, column.field), column.text) for column in columns]
        return tuple(NOTHING if value is None else text(value) for value, text in values)

    def table(self, title: str, rows: Iterable[Row], columns: Sequence[Shown]) -> Grid:
        """Rows are methods, columns quantities."""
        groups = tuple(one_line(self.request.name_of(row), self.cells(row, columns)) for row in rows)
        return Grid(title, tuple(column.header for column in columns), groups)
