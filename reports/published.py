"""The numbers that a paper prints, read from a benchmark's CSV."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path

from benchmarks.spec import Published
from reports.errors import ReportError

HEADER = ["table", "row", "column", "score", "value"]
Place = tuple[str, str, str]  # row, column, score
AVERAGE = "average"  # the column id of a table's average, whose score is empty


def _entry(path: Path, line: int, cells: list[str]) -> Published:
    """One line of the file."""
    try:
        table, row, column, score, text = cells
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ReportError(
            f"{path}:{line}: expected {','.join(HEADER)} with a number as value, found {','.join(cells)!r}. "
            "Restore the file, or correct the line."
        )
    return Published(table, row, column, score, value)


def read_published(path: Path) -> tuple[Published, ...]:
    """Every printed number of a file, in its order; ReportError names the file and the line that is wrong."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = list(csv.reader(file)) or [[]]
    except FileNotFoundError:
        raise ReportError(f"{path}: expected the published values, found no such file. Restore it.") from None
    if header != HEADER:
        raise ReportError(f"{path}:1: expected the header {','.join(HEADER)}, found {','.join(header)!r}.")
    entries: dict[tuple[str, str, str, str], Published] = {}
    for number, cells in enumerate(lines, start=2):
        entry = _entry(path, number, cells)
        place = (entry.table, entry.row, entry.column, entry.score)
        if place in entries:
            raise ReportError(f"{path}:{number}: expected one value a place, found two of {','.join(place)}.")
        entries[place] = entry
    return tuple(entries.values())


def lookup(entries: Iterable[Published], table: str) -> dict[Place, float]:
    """The value at each place of one table."""
    return {(entry.row, entry.column, entry.score): entry.value for entry in entries if entry.table == table}
