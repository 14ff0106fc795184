"""Rows of a task's files, as text, parquet or a split of the hub, and the checks that make them examples."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from benchmarks.errors import UserError
from benchmarks.tasks.base import Examples, Skipped
from fedsim.files import open_file

if TYPE_CHECKING:
    from datasets import Dataset

BLANKS = " \t\r\n\x0b\x0c"
ParseLabel = Callable[[Any], int | float]
T = TypeVar("T")


class Row(NamedTuple):
    """One row of a file: its texts and its label as the file has them, or the fault that makes it malformed."""

    line: int  # from 1
    texts: tuple[Any, ...] = ()
    label: Any = None
    fault: str = ""


class RowError(ValueError):
    """Why a row cannot be an example."""


class Place(NamedTuple):
    """Where rows come from: `path` for error messages, `name` for records, which hold no absolute path."""

    path: str
    name: str


@dataclass
class Malformed:
    """The malformed rows of a dataset: skipped and listed where the user is lenient, else the first one is an error."""

    lenient: bool
    skipped: list[Skipped] = field(default_factory=list)

    def reject(self, place: Place, line: int, fault: str) -> None:
        """Skip a row; UserError unless lenient."""
        if not self.lenient:
            raise UserError(f"{place.path}:{line}: {fault}; mend the row, or skip malformed rows with --lenient")
        self.skipped.append(Skipped(place.name, line, fault))


def open_text(file: Path, newline: str | None = None) -> io.TextIOWrapper:
    """Open a UTF-8 file without its byte-order mark. A byte that is not UTF-8 is read as a surrogate.

    newline: as `open` takes it. None ends a line at a newline or a carriage return alone: GLUE's texts hold U+0085.
    """
    return io.TextIOWrapper(open_file(file), encoding="utf-8-sig", errors="surrogateescape", newline=newline)


def read_lines(file: Path, newline: str | None = None) -> Iterator[tuple[int, str, str]]:
    """Each line of a UTF-8 file: its number, its text without the end of the line, and the fault of its bytes."""
    with open_text(file, newline) as stream:
        for number, line in enumerate(stream, start=1):
            yield number, line.removesuffix("\n"), utf8_fault(line)


def utf8_fault(text: str) -> str:
    """The first byte of a text that is not UTF-8, as a fault; "" if there is none."""
    stray = "" if text.isascii() else next((mark for mark in text if "\udc80" <= mark <= "\udcff"), "")
    return f"expected UTF-8, found the byte 0x{ord(stray) - 0xDC00:02x}" if stray else ""


def read_table(
    file: Path, texts: Sequence[str], label: str, header: Sequence[str] = (), tabs: bool = False
) -> Iterator[Row]:
    """The rows of a file with a column for each text and one for the label; empty lines are ignored.

    Args:
        file: A UTF-8 file of comma-separated values; a row's line is that on which it begins.
        texts: Names of the columns with the texts.
        label: Name of the column with the label.
        header: Names of all columns, if the file does not name them.
        tabs: Whether the values are separated by tabs, as in GLUE: then a quote is text, and a row is a line.
    """
    records, columns = _records(file, tabs), (*texts, label)
    first = Row(1, tuple(header)) if header else next(records, Row(1))
    if first.fault or any(first.texts.count(column) != 1 for column in columns):
        raise UserError(
            f"{file}:1: expected a header with each of the columns {', '.join(columns)} once, "
            f"found {first.fault or ', '.join(map(repr, first.texts))}; get the file again"
        )
    positions = [first.texts.index(column) for column in columns]
    for record in records:
        if record.fault:
            yield record
        elif len(record.texts) != len(first.texts):
            yield Row(record.line, fault=f"expected {len(first.texts)} columns, found {len(record.texts)}")
        else:
            *values, code = (record.texts[position] for position in positions)
            yield Row(record.line, tuple(values), code)


def _records(file: Path, tabs: bool) -> Iterator[Row]:
    """All columns of each row, the header's too, as its texts."""
    with open_text(file, newline="") as stream:
        dialect: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if tabs else {"strict": True}
        reader = csv.reader(stream, **dialect)
        while True:
            line = reader.line_num + 1
            try:
                fields = next(reader, None)
            except csv.Error as error:
                yield Row(
                    line, fault=f"expected a record, found a malformed one up to line {reader.line_num} ({error})"
                )
                continue
            if fields is None:
                return
            if fields:
                yield Row(line, tuple(fields), fault=utf8_fault("".join(fields)))


def read_split(
    split: Dataset, place: str, texts: Sequence[str], label: str, names: Sequence[str] = (), codes: Sequence[str] = ()
) -> Iterator[Row]:
    """The rows of a split of the hub, or of a parquet file.

    texts and label name the columns; place says where the rows come from, for error messages. names: the expected names
    of the label ids, checked if the split names them. codes: what a row has for each label id; else the split's names.
    """
    if any(column not in split.column_names for column in (*texts, label)):
        raise UserError(
            f"{place}: expected the columns {', '.join((*texts, label))}, found {', '.join(split.column_names)}; "
            "get the data again"
        )
    feature = split.features[label]
    names_found = getattr(feature, "names", None) or getattr(getattr(feature, "feature", None), "names", ())
    if names and names_found and tuple(names_found) != tuple(names):
        raise UserError(
            f"{place}: expected the labels in the order {', '.join(names)}, found {', '.join(names_found)}; "
            "get the data again"
        )
    codes = codes or names_found
    columns = [split[column][:] for column in (*texts, label)]
    for number, (*values, value) in enumerate(zip(*columns, strict=True), start=1):
        is_id = isinstance(value, int) and 0 <= value < len(codes)
        yield Row(number, tuple(values), codes[value] if is_id else value)


def class_label(codes: Sequence[str]) -> ParseLabel:
    """A parser of class labels. codes: how a file writes each label, in the order of the label ids."""

    def parse(value: Any) -> int:
        if value not in codes:
            raise RowError(f"expected one of the labels {', '.join(codes)}, found {value!r}")
        return codes.index(value)

    return parse


def score_label(low: float, high: float) -> ParseLabel:
    """A parser of scores from low to high."""

    def parse(value: Any) -> float:
        try:
            score = float(value)
        except (TypeError, ValueError):
            score = np.nan
        if not low <= score <= high:
            raise RowError(f"expected a score from {low:g} to {high:g}, found {value!r}")
        return float(np.float32(score))  # the hub keeps scores in single precision

    return parse


def sound_rows(
    rows: Iterable[Row], check: Callable[[Row], T], place: Place, malformed: Malformed
) -> Iterator[tuple[Row, T]]:
    """The rows that pass a check, each with what the check returns; one with a fault or a RowError is rejected.

    UserError if no row passes.
    """
    passed = 0
    for row in rows:
        try:
            if row.fault:
                raise RowError(row.fault)
            checked = check(row)
        except RowError as error:
            malformed.reject(place, row.line, str(error))
        else:
            passed += 1
            yield row, checked
    if not passed:
        raise UserError(f"{place.path}: expected at least one example, found none; get the file again")


def to_examples(
    rows: Iterable[Row],
    place: Place,
    malformed: Malformed,
    columns: Sequence[str],
    parse_label: ParseLabel,
    blank: bool = False,
) -> Examples:
    """The sound rows as examples, in their order.

    columns: names of the text columns, for error messages. parse_label: makes a label of what the file holds, or raises
    RowError. blank: whether a text may be empty.
    """

    def check(row: Row) -> int | float:
        for column, text in zip(columns, row.texts, strict=True):
            if not isinstance(text, str) or not (blank or text.strip()):
                raise RowError(f"expected a text in column {column!r}, found {text!r}")
        return parse_label(row.label)

    checked = list(sound_rows(rows, check, place, malformed))
    return Examples(tuple(row.texts for row, _ in checked), np.array([label for _, label in checked]))
