"""Appendix Table 5: each client's share of a task's data, requested, obtained and published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product

from benchmarks.experiment import Column, Row
from benchmarks.run_config import JSON
from reports.pages.page import Grid, Group, Line, keys_of
from reports.pages.text import NOT_RUN, NOTHING, data_notes, number, scale_note
from reports.views.comparison import difference
from reports.views.shares import WHOLE, Lines, Shares

UNIT = "megabytes"


class SizeShares(Shares):
    """Each client's share of a task, from the record with the lowest seed; a line per partition."""

    @cached_property
    def by_cell(self) -> dict[tuple[str, str], Lines]:
        cells = product(self.request.rows, self.request.columns)
        return {(row.id, column.task): list(self._clients(row, column)) for row, column in cells}

    def _clients(self, row: Row, column: Column) -> Iterator[dict[str, JSON]]:
        cell = self.request.benchmark.cell(row, column, self.request.scale, 0)
        records = self.request.records_of(row, column)
        sizes = list(records[0].partition["sizes"]) if records else []
        wanted = cell.partition.get("sizes") or [1] * cell.clients
        whole = self.published.get((row.id, column.task, f"{WHOLE}/{UNIT}"))
        for client in range(cell.clients):
            size = self.published.get((row.id, column.task, f"client{client + 1}/{UNIT}"))
            line: dict[str, JSON] = {"client": str(client + 1), "status": NOT_RUN, "obtained": None, "examples": None}
            if sizes:
                obtained = 100 * sizes[client] / sum(sizes)
                line |= {"status": "run", "obtained": obtained, "examples": sizes[client]}
            published = None if size is None or whole is None else 100 * size / whole
            line |= {"requested": 100 * wanted[client] / sum(wanted), "published": published, UNIT: size}
            yield keys_of(self.request, row, column) | line | {"difference": difference(line["obtained"], published)}

    def lines(self) -> Iterator[dict[str, JSON]]:
        """Shares in percent of all clients together."""
        for lines in self.by_cell.values():
            yield from lines

    def notes(self) -> Iterator[str]:
        """Every note under the table."""
        yield scale_note(self.request)
        yield (
            "Shares of all clients together, in percent: requested and obtained of examples, held-out ones included; "
            f"reported of the printed {UNIT}. Difference: obtained - reported, both to two decimals, in points. "
            "Nothing is trained, and the table shows no scores."
        )
        for row, column in product(self.request.rows, self.request.columns):
            if len({tuple(record.partition["sizes"]) for record in self.request.records_of(row, column)}) > 1:
                yield f"{row.name}, {column.name}: seeds differ in sizes; the table shows the lowest seed."
        yield from data_notes(self.request)

    def _group_lines(self, client: int, row: Row) -> Iterator[Line]:
        parts = [self.by_cell[row.id, column.task][client] for column in self.request.columns]
        is_run, has_print = (any(part[name] is not None for part in parts) for name in ("obtained", "published"))
        for name in ("requested", "obtained", *(("published", "difference") if has_print else ()), "examples"):
            missing = NOT_RUN if name == "obtained" and not is_run else NOTHING
            places, sign = 0 if name == "examples" else 2, "+" if name == "difference" else ""
            texts = (missing if part[name] is None else number(part[name], sign, places) for part in parts)
            label = "reported" if name == "published" else name
            yield Line(f"{row.name}: {label}", tuple(texts), is_main=name == "obtained")

    def grids(self) -> tuple[Grid, ...]:
        """Lines are ways to partition the tasks."""
        headers = ((column.name, "% of all clients") for column in self.request.columns)
        groups = (
            Group(client, tuple(line for row in self.request.rows for line in self._group_lines(place, row)))
            for place, client in enumerate(self.clients)
        )
        return (self.grid("sizes of datasets", headers, groups),)

    def series(self, column: Column) -> Mapping[str, Lines]:
        """Ways to partition the task."""
        return {row.name: self.by_cell[row.id, column.task] for row in self.request.rows}
