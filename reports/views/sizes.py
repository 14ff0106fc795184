"""The view of a table of sizes: the share of each task that every client was to hold, and the share it got.

Rows are ways to partition a task; the numbers come from any record's partition report, so the rows cost nothing, and
their scores are not shown. A paper prints sizes in a unit of its own (score "client1/megabytes", …, "all/megabytes"),
records count examples: the table compares shares of all clients together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.experiment import Column, Row
from benchmarks.run_config import JSON
from reports.evidence.published import published_for
from reports.evidence.records import Request
from reports.evidence.statistics import printed
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.plots import HOLLOW, Dots, Panel, dot_plot, mark, with_points
from reports.pages.text import NOT_RUN, NOTHING, data_notes, number, scale_note

UNIT = "megabytes"
RANKS = False
FIELDS = [*KEYS, "client", "status", "requested", "obtained", "published", "difference", "examples", UNIT]


@dataclass(frozen=True)
class Sizes:
    """(row id, task) -> what is known of each client, in their order, by the record of the lowest seed."""

    request: Request

    @cached_property
    def by_cell(self) -> dict[tuple[str, str], list[dict[str, JSON]]]:
        known = {place: entry.value for place, entry in published_for(self.request).items()}
        cells = product(self.request.rows, self.request.columns)
        return {(row.id, column.task): list(self._clients(row, column, known)) for row, column in cells}

    def _clients(self, row: Row, column: Column, known: dict[tuple[str, str, str], float]) -> Iterator[dict[str, JSON]]:
        cell = self.request.benchmark.cell(row, column, self.request.scale, 0)
        records = self.request.records_of(row, column)
        sizes = list(records[0].partition["sizes"]) if records else []
        wanted = cell.partition.get("sizes") or [1] * cell.clients
        whole = known.get((row.id, column.task, f"all/{UNIT}"))
        for client in range(cell.clients):
            size = known.get((row.id, column.task, f"client{client + 1}/{UNIT}"))
            share = 100 * sizes[client] / sum(sizes) if sizes else None
            published = None if size is None or whole is None else 100 * size / whole
            gap = None if share is None or published is None else float(printed(share) - printed(published))
            yield {
                "client": str(client + 1),
                "status": "run" if sizes else NOT_RUN,
                "requested": 100 * wanted[client] / sum(wanted),
                "obtained": share,
                "published": published,
                "difference": gap,
                "examples": sizes[client] if sizes else None,
                UNIT: size,
            }


join = Sizes


def notes(found: Sizes) -> Iterator[str]:
    """Every note under the table."""
    yield scale_note(found.request)
    yield (
        "Shares of all clients together, in percent: requested and obtained of examples, held-out ones included; "
        f"reported of the printed {UNIT}. Difference: obtained - reported, both to two decimals, in points. "
        "Nothing is trained, and the table shows no scores."
    )
    for row, column in product(found.request.rows, found.request.columns):
        if len({tuple(record.partition["sizes"]) for record in found.request.records_of(row, column)}) > 1:
            yield f"{row.name}, {column.name}: seeds differ in sizes; the table shows the lowest seed."
    yield from data_notes(found.request)


def _lines(found: Sizes, client: int, row: Row) -> Iterator[Line]:
    parts = [found.by_cell[row.id, column.task][client] for column in found.request.columns]
    is_run, has_print = (any(part[name] is not None for part in parts) for name in ("obtained", "published"))
    names = ("requested", "obtained", *(("published", "difference") if has_print else ()), "examples")
    for name in names:
        missing = NOT_RUN if name == "obtained" and not is_run else NOTHING
        places, sign = 0 if name == "examples" else 2, "+" if name == "difference" else ""
        texts = (missing if part[name] is None else number(part[name], sign, places) for part in parts)
        label = "reported" if name == "published" else name
        yield Line(f"{row.name}: {label}", tuple(texts), is_main=name == "obtained")


def grids(found: Sizes) -> tuple[Grid, ...]:
    """Groups are clients, columns tasks, lines ways to partition them."""
    rows = found.request.rows
    headers = tuple((column.name, "% of all clients") for column in found.request.columns)
    clients = range(max(map(len, found.by_cell.values())))
    groups = (
        Group(str(place + 1), tuple(line for row in rows for line in _lines(found, place, row))) for place in clients
    )
    return (Grid(f"{found.request.heading}: sizes of datasets", headers, tuple(groups), stub="Client"),)


def frame(found: Sizes) -> pd.DataFrame:
    """The sizes as a data frame of FIELDS: shares in percent."""
    cells = product(found.request.rows, found.request.columns)
    lines = (keys_of(found.request, *cell) | part for cell in cells for part in found.by_cell[cell[0].id, cell[1].task])
    return long_form(lines, FIELDS, {"Int64": ("examples",)})


def plot(found: Sizes) -> Figure:
    """A panel for each task: a line for each client, a mark for each way to partition the task."""
    request = found.request

    def values(row: Row, column: Column, name: str) -> dict[str, float]:
        parts = found.by_cell[row.id, column.task]
        return {f"client {part['client']}": part[name] for part in parts if part[name] is not None}

    columns, left_out = with_points(
        request.columns, lambda at: any(values(row, at, "obtained") for row in request.rows)
    )
    panels = []
    for column in columns:
        series = [Dots(row.name, values(row, column, "obtained"), mark(n)) for n, row in enumerate(request.rows)]
        requested = {"marker": "|", "color": "black", "markersize": 12}
        for row in request.rows:
            series.append(Dots("requested", values(row, column, "requested"), requested))
            series.append(Dots("reported", values(row, column, "published"), HOLLOW | {"color": "black"}))
        panels.append(Panel(column.name, list(values(request.rows[0], column, "requested")), series))
    return dot_plot(request.heading, panels, "share (%)", f"Full marks: obtained, held-out examples too.{left_out}")
