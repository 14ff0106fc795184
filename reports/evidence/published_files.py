"""Reads files of published values. It loads no heavy library, as `--include` checks a user's file."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.publication import Published
from fedsim.files import FileError, MissingFileError, read_text
from reports import ReportError

FOLDER = "published"
HEADER = ["table", "row", "column", "score", "value"]
DERIVED_HEADER = [*HEADER, "derivation"]  # of files with values that follow from printed ones
AVERAGE = "average"  # the column id of a table's average, whose score is empty
PARAMETERS = "parameters"  # the row at which a table publishes the terms of its equations
Place = tuple[str, str, str, str]  # table, row, column, score
# Another row's value, multiplied or divided by a number.
_DERIVATION = re.compile(r"\{([^{}]+)\} ([*/]) (\d+(?:\.\d+)?)")


def derivation_text(derivation: str, names: Mapping[str, str]) -> str:
    """A derivation with the row's name instead of its id. names: row id -> name."""
    return _DERIVATION.sub(lambda match: f"{names[match[1]]} {match[2]} {match[3]}", derivation)


def _entry(cells: list[str], header: list[str], entries: Mapping[Place, Published]) -> Published:
    """One line of a file; a derivation refers to lines above it. ValueError if the line is wrong."""
    wanted = "a number as value" if header == HEADER else "a number as value, or a derivation"
    wrong = (
        f"expected {','.join(header)} with {wanted}, found {','.join(cells)!r}. Restore the file, or correct the line."
    )
    if len(cells) != len(header):
        raise ValueError(wrong)
    table, row, column, score, text, derivation = cells if header == DERIVED_HEADER else [*cells, ""]
    if (table, row, column, score) in entries:
        raise ValueError(f"expected one value for each place, found two of {table},{row},{column},{score}.")
    if derivation and not text:
        return Published(table, row, column, score, _derived((table, column, score), derivation, entries), derivation)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if derivation or not math.isfinite(value):
        raise ValueError(wrong)
    return Published(table, row, column, score, value)


def _derived(at: tuple[str, str, str], derivation: str, entries: Mapping[Place, Published]) -> float:
    table, column, score = at
    match = _DERIVATION.fullmatch(derivation)
    if match is None:
        raise ValueError(f"expected {{row}} times (*) or over (/) a number as derivation, found {derivation!r}")
    place, by = (table, match[1], column, score), float(match[3])
    if place not in entries or not by:
        raise ValueError(f"expected a value of {match[1]} other than 0 above this line, found {derivation!r}")
    return entries[place].value * by if match[2] == "*" else entries[place].value / by


def read_published(path: Path) -> tuple[Published, ...]:
    """Every published number of a file, in its order; ReportError names the file and the wrong line.

    An optional sixth column has the derivation of a value that the paper does not print: the value at another row of
    the same table, column and score, multiplied or divided by a number from the text ("{c-psum} / 1.129").
    """
    try:
        text = read_text(path, "published values")
        header, *lines = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    except MissingFileError:
        line = ",".join(HEADER)
        raise ReportError(
            f"{path}: expected the published values, found no such file; restore it, or write the line {line}"
        ) from None
    except (FileError, csv.Error) as error:
        reason = str(error) if isinstance(error, FileError) else f"{path}: expected published values as CSV; {error}"
        raise ReportError(f"{reason}. Restore the file.") from None
    if header not in (HEADER, DERIVED_HEADER):
        raise ReportError(f"{path}:1: expected the header {','.join(HEADER)}, found {','.join(header)!r}.")
    entries: dict[Place, Published] = {}
    for number, cells in enumerate(lines, start=2):
        try:
            entry = _entry(cells, header, entries)
        except ValueError as error:
            raise ReportError(f"{path}:{number}: {error}") from None
        entries[entry.table, entry.row, entry.column, entry.score] = entry
    return tuple(entries.values())


def read_paper(files: Iterable[Path]) -> tuple[Published, ...]:
    """Every published value of a paper. files: of its tables.

    A folder named `published` also has values of no table; another folder may have other CSV files.
    """
    paths = (path for file in files for path in (file.parent.glob("*.csv") if file.parent.name == FOLDER else [file]))
    return tuple(entry for path in sorted(set(paths)) for entry in read_published(path))
