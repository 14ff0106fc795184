"""The numbers that papers publish: printed, or derived from printed ones."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from benchmarks.costs import Terms
from benchmarks.experiment import Scale
from benchmarks.publication import Published
from benchmarks.results import RunResult
from fedsim.files import FileError, MissingFileError, read_text
from reports import ReportError
from reports.evidence.inference import LEVEL, moved, similar
from reports.evidence.records import DEMO, PAPER, Request
from reports.evidence.statistics import Estimate, printed

HEADER = ["table", "row", "column", "score", "value"]
DERIVED_HEADER = [*HEADER, "derivation"]  # of files with values that follow from printed ones
AVERAGE = "average"  # the column id of a table's average, whose score is empty
PARAMETERS = "parameters"  # the row at which a table publishes the terms of its equations
MEGABYTE = 10**6
AS_PRINTED, DIFFERS = "as printed", "differs"
Place = tuple[str, str, str, str]  # table, row, column, score
_DERIVATION = re.compile(
    r"\{([^{}]+)\} ([*/]) (\d+(?:\.\d+)?)"
)  # another row's value, multiplied or divided by a number


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
        raise ReportError(f"{path}: expected the published values, found no such file. Restore it.") from None
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


def read_folder(folder: Path) -> tuple[Published, ...]:
    """Every published value of a paper: all CSV files of its folder, by name; ReportError without files."""
    paths = sorted(folder.glob("*.csv"))
    if not paths:
        raise ReportError(f"{folder}: expected CSV files of published values, found none. Restore them.")
    return tuple(entry for path in paths for entry in read_published(path))


def by_place(entries: Iterable[Published], table: str) -> dict[tuple[str, str, str], Published]:
    """(row, column, score) of one table -> published value."""
    return {(entry.row, entry.column, entry.score): entry for entry in entries if entry.table == table}


def published_for(request: Request, table: str = "") -> dict[tuple[str, str, str], Published]:
    """(row, column, score) -> published value, for a request's table or another one; {} at the demo scale."""
    entries = () if request.scale.id == DEMO else read_published(request.benchmark.published_csv)
    return by_place(entries, table or request.benchmark.place)


@dataclass(frozen=True)
class Numbers:
    """A paper's published numbers by place, as the decimals that were printed."""

    values: Mapping[Place, Decimal]
    derived: frozenset[Place] = frozenset()  # of numbers that are not printed but follow from the text

    @classmethod
    def of(cls, entries: Iterable[Published]) -> Numbers:
        """From published values, whose floats spell the printed digits."""
        places = {(e.table, e.row, e.column, e.score): e for e in entries}
        derived = frozenset(place for place, entry in places.items() if entry.derivation)
        return cls({place: Decimal(str(entry.value)) for place, entry in places.items()}, derived)

    @property
    def printed(self) -> Numbers:
        return Numbers({place: value for place, value in self.values.items() if place not in self.derived})

    def at(self, table: str, row: str, column: str, score: str = "") -> Decimal:
        """The number at a place; ReportError without one."""
        place = (table, row, column, score)
        if place not in self.values:
            raise ReportError(
                f"audit: expected a published value at {','.join(place)}, found none. Restore the published CSV files."
            )
        return self.values[place]

    def terms(self, table: str) -> Terms:
        """The printed parameters of a table's equations, megabytes as bytes; ReportError if one is missing."""

        def value(name: str) -> float:
            if (table, PARAMETERS, f"{name}_mb", "") in self.values:
                return float(self.at(table, PARAMETERS, f"{name}_mb") * MEGABYTE)
            return float(self.at(table, PARAMETERS, name))

        return Terms(**{term.name: value(term.name) for term in fields(Terms)})


def places_of(value: Decimal) -> int:
    """The number of printed decimals; floats from a CSV have no trailing zeros."""
    return max(0, -int(value.normalize().as_tuple().exponent))


def is_printed_as(value: Decimal, published: Decimal) -> bool:
    """Whether a number, rounded to a printed number's digits, equals it."""
    return printed(value, places=places_of(published)) == published


def as_decimal(value: Fraction) -> Decimal:
    """A ratio in decimal arithmetic with 28 digits."""
    return Decimal(value.numerator) / Decimal(value.denominator)


# ---- whether a score is the published one again -------------------------------------------------------------------

REPRODUCED, UNDECIDED, NOT_REPRODUCED = "reproduced", "undecided", "not reproduced"
NOT_COMPARABLE = "not comparable"
# The largest distance of a reproduction from the printed value: in points for percentages, a share for plain scores. If
# a paper rounds more coarsely, half of its last digit. This is a choice, explained in docs/statistics.md.
MARGIN_POINTS, MARGIN_SHARE = 1.0, 0.01
RULE = (
    f"Verdict, by two one-sided tests at {100 * LEVEL:g} % (docs/statistics.md): {REPRODUCED}: all between our bounds "
    f"lies within ± {MARGIN_POINTS:g} point of the reported value (plain numbers: ± {100 * MARGIN_SHARE:g} % of it; "
    f"half of its last digit where that is more); {NOT_REPRODUCED}: all lies outside; {UNDECIDED}: otherwise, with "
    f"the margin that so many seeds with this spread would mostly have shown; {NOT_COMPARABLE}: partial or other data, "
    "another encoder or changed settings."
)


def is_comparable(scale: Scale, records: Sequence[RunResult]) -> bool:
    """Whether records are comparable with print: paper scale, as defined, on complete data without skipped rows."""
    if scale.id != PAPER or scale.changed:
        return False
    data = [record.inputs["data"] for record in records]
    return not any(entry.get("notes") or entry.get("skipped") or entry.get("stand_in") for entry in data)


def margin_of(published: float, unit: str = "%") -> float:
    """The largest distance between a score and a printed value that it reproduces, in its unit."""
    last_digit = float(Decimal(1).scaleb(-places_of(Decimal(str(published))))) / 2
    return max(MARGIN_POINTS if unit == "%" else MARGIN_SHARE * abs(published), last_digit)


def verdict(estimate: Estimate, published: float | None, comparable: bool, unit: str = "%") -> str | None:
    """The verdict on one score, by RULE; None if nothing was printed or run. All numbers are in the metric's unit."""
    if estimate.value is None or published is None:
        return None
    if not comparable:
        return NOT_COMPARABLE
    answer = similar(moved(estimate, -published), margin_of(published, unit))
    return UNDECIDED if answer is None else REPRODUCED if answer else NOT_REPRODUCED
