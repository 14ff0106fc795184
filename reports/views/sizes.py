"""The view of a table of sizes: how much of each task every client was to hold, and how much it got.

Rows are ways to share a task out; the numbers are those of any record's partition report, so they are rows that cost
nothing, and their scores are not shown. A paper prints sizes in a unit of its own (score "client1/megabytes", …,
"all/megabytes"), records count examples: compared are shares of all clients together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import pandas as pd

from benchmarks.experiment import Column, Row
from benchmarks.results import RunResult
from benchmarks.run_config import JSON
from reports.evidence.published import published_for
from reports.evidence.records import Request
from reports.evidence.statistics import printed
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.text import NOT_RUN, NOTHING, data_notes, number, scale_note

ALL = "all"  # stands for every client together
UNIT = "megabytes"
RANKS = False
FIELDS = [*KEYS, "client", "status", "requested", "obtained", "published", "difference", "examples", UNIT]


@dataclass(frozen=True)
class Part:
    """One client's part, shares in percent of all clients together. printed_size: in the paper's own unit."""

    requested: float
    obtained: float | None  # None where it is not run
    examples: int | None
    printed_size: float | None = None
    published: float | None = None

    @property
    def difference(self) -> float | None:
        """Obtained - published, of the two as printed to two decimals."""
        if self.obtained is None or self.published is None:
            return None
        return float(printed(self.obtained) - printed(self.published))


@dataclass(frozen=True)
class Sizes:
    """(row id, task) -> its clients' parts, in their order."""

    request: Request
    by_cell: Mapping[tuple[str, str], tuple[Part, ...]]

    def of(self, row: Row, column: Column) -> tuple[Part, ...]:
        return self.by_cell[row.id, column.task]

    @property
    def clients(self) -> int:
        return max(map(len, self.by_cell.values()))


def join(request: Request) -> Sizes:
    """Every client's part by the record of the lowest seed, beside what was requested and what is printed."""
    known = {place: entry.value for place, entry in published_for(request).items()}
    return Sizes(
        request,
        {
            (row.id, column.task): tuple(_parts(request, row, column, known))
            for row, column in product(request.rows, request.columns)
        },
    )


def _parts(request: Request, row: Row, column: Column, known: Mapping[tuple[str, str, str], float]) -> Iterator[Part]:
    cell = request.benchmark.cell(row, column, request.scale, 0)
    records: tuple[RunResult, ...] = request.records_of(row, column)
    obtained = list(records[0].partition["sizes"]) if records else None
    wanted = cell.partition.get("sizes") or [1] * cell.clients
    for client in range(cell.clients):
        of_print = [known.get((row.id, column.task, f"{name}/{UNIT}")) for name in (f"client{client + 1}", ALL)]
        size, whole = of_print
        yield Part(
            requested=100 * wanted[client] / sum(wanted),
            obtained=None if obtained is None else 100 * obtained[client] / sum(obtained),
            examples=None if obtained is None else obtained[client],
            printed_size=size,
            published=None if size is None or whole is None else 100 * size / whole,
        )


def notes(found: Sizes) -> Iterator[str]:
    """Every note under the table."""
    yield scale_note(found.request)
    yield (
        "Shares of all clients together, in percent: requested and obtained of examples, held-out ones included; "
        f"reported of the printed {UNIT}. Difference: obtained - reported, both to two decimals, in points. "
        "Nothing is trained, and scores are no part of this table."
    )
    for row, column in product(found.request.rows, found.request.columns):
        sizes = {tuple(record.partition["sizes"]) for record in found.request.records_of(row, column)}
        if len(sizes) > 1:
            yield f"{row.name}, {column.name}: seeds differ in sizes; the lowest one is shown."
    yield from data_notes(found.request)


def _lines(found: Sizes, client: int, row: Row) -> Iterator[Line]:
    parts = [found.of(row, column)[client] for column in found.request.columns]
    missing = NOT_RUN if all(part.obtained is None for part in parts) else NOTHING
    yield Line(f"{row.name}: requested", tuple(number(part.requested) for part in parts))
    yield Line(
        f"{row.name}: obtained",
        tuple(missing if part.obtained is None else number(part.obtained) for part in parts),
        is_main=True,
    )
    if any(part.published is not None for part in parts):
        yield Line(f"{row.name}: reported", tuple(number(part.published) for part in parts))
        yield Line(f"{row.name}: difference", tuple(number(part.difference, "+") for part in parts))
    yield Line(f"{row.name}: examples", tuple(_count(part.examples) for part in parts))


def _count(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def grids(found: Sizes) -> tuple[Grid, ...]:
    """Groups are clients, columns tasks, lines ways to share them out."""
    headers = tuple((column.name, "% of all clients") for column in found.request.columns)
    groups = [
        Group(str(client + 1), tuple(line for row in found.request.rows for line in _lines(found, client, row)))
        for client in range(found.clients)
    ]
    return (Grid(f"{found.request.heading}: sizes of datasets", headers, tuple(groups), stub="Client"),)


def _frame_lines(found: Sizes) -> Iterator[dict[str, JSON]]:
    for row, column in product(found.request.rows, found.request.columns):
        for client, part in enumerate(found.of(row, column), start=1):
            known = {name: getattr(part, name) for name in FIELDS if hasattr(part, name)}
            status = NOT_RUN if part.obtained is None else "run"
            yield (
                keys_of(found.request, row, column)
                | known
                | {
                    "client": str(client),
                    "status": status,
                    UNIT: part.printed_size,
                }
            )


def frame(found: Sizes) -> pd.DataFrame:
    """The sizes as a data frame of FIELDS: shares in percent."""
    return long_form(_frame_lines(found), FIELDS, {"Int64": ("examples",)})
