"""The numbers that a paper publishes, read from a benchmark's CSV."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path

from benchmarks.spec import Published
from reports.derivation import evaluate, names
from reports.errors import ReportError

HEADER = ["table", "row", "column", "score", "value"]
DERIVED_HEADER = [*HEADER, "derivation"]  # of files with values that follow from printed ones
Place = tuple[str, str, str]  # row, column, score
AVERAGE = "average"  # the column id of a table's average, whose score is empty


def _entry(path: Path, line: int, cells: list[str], header: list[str]) -> Published:
    """One line of the file; a value that is yet to be derived is NaN."""
    table, row, column, score, text, derivation = [*cells, ""] if header == HEADER else cells
    try:
        value = math.nan if derivation and not text else float(text)
    except ValueError:
        value = math.inf
    if math.isinf(value) or (math.isnan(value) and not derivation) or (derivation and text):
        raise _wrong(path, line, cells, header)
    return Published(table, row, column, score, value, derivation)


def _wrong(path: Path, line: int, cells: list[str], header: list[str]) -> ReportError:
    wanted = "a number as value" if header == HEADER else "a number as value, or a derivation"
    return ReportError(
        f"{path}:{line}: expected {','.join(header)} with {wanted}, found {','.join(cells)!r}. "
        "Restore the file, or correct the line."
    )


def read_published(path: Path) -> tuple[Published, ...]:
    """Every published number of a file, in its order; ReportError names the file and the line that is wrong.

    A sixth column, where there is one, holds the derivation of a value that the paper does not print: arithmetic over
    numbers of its text and values at other rows of the same table, column and score ("{c-psum} / 1.129").
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = list(csv.reader(file)) or [[]]
    except FileNotFoundError:
        raise ReportError(f"{path}: expected the published values, found no such file. Restore it.") from None
    if header not in (HEADER, DERIVED_HEADER):
        raise ReportError(f"{path}:1: expected the header {','.join(HEADER)}, found {','.join(header)!r}.")
    entries: dict[tuple[str, str, str, str], Published] = {}
    for number, cells in enumerate(lines, start=2):
        if len(cells) != len(header):
            raise _wrong(path, number, cells, header)
        entry = _entry(path, number, cells, header)
        place = (entry.table, entry.row, entry.column, entry.score)
        if place in entries:
            raise ReportError(f"{path}:{number}: expected one value a place, found two of {','.join(place)}.")
        entries[place] = _derived(path, number, entry, entries) if entry.derivation else entry
    return tuple(entries.values())


def _derived(path: Path, line: int, entry: Published, known: dict[tuple[str, str, str, str], Published]) -> Published:
    """The entry with its value; what it is derived from stands above it."""
    places = {name: (entry.table, name, entry.column, entry.score) for name in names(entry.derivation)}
    missing = [name for name, place in places.items() if place not in known]
    if missing:
        raise ReportError(
            f"{path}:{line}: expected values of {', '.join(missing)} above what is derived from them, found none."
        )
    try:
        value = evaluate(entry.derivation, {name: known[place].value for name, place in places.items()})
    except ValueError as error:
        raise ReportError(f"{path}:{line}: derivation: {error}. Correct the line.") from None
    return Published(entry.table, entry.row, entry.column, entry.score, value, entry.derivation)


def by_place(entries: Iterable[Published], table: str) -> dict[Place, Published]:
    """What is published at each place of one table."""
    return {(entry.row, entry.column, entry.score): entry for entry in entries if entry.table == table}


def lookup(entries: Iterable[Published], table: str) -> dict[Place, float]:
    """The value at each place of one table."""
    return {place: entry.value for place, entry in by_place(entries, table).items()}
