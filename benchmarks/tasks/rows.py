"""Reads rows from text files, parquet files or hub splits, and checks them to make examples."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from benchmarks.errors import UserError
from benchmarks.tasks.base import Skipped, TextExamples
from fedsim.files import open_file

if TYPE_CHECKING:
    from datasets import Dataset

BLANKS = " \t\r\n\x0b\x0c"
MOST_LINES, MOST_RATIO = 20, 10  # of a CSV record
LARGEST = float(np.finfo(np.float32).max)  # score: the hub stores them in single precision
T = TypeVar("T")


class RawRow(NamedTuple):
    """One row of a file: its raw texts and label, or the fault that makes it malformed."""

    line: int  # from 1
    texts: tuple[Any, ...] = ()
    label: Any = None
    fault: str = ""
    lines: int = 1  # that it spans


class RowError(ValueError):
    """Why a row cannot be an example."""


class Location(NamedTuple):
    """Where rows come from: `path` for error messages, `name` for records, which have no absolute path."""

    path: str
    name: str


@dataclass
class Log:
    """Malformed rows, counts of omitted lines, and other notes from reading a dataset."""

    lenient: bool
    skipped: list[Skipped] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def reject(self, location: Location, line: int, fault: str, lines: int = 1) -> None:
        """Skip a malformed row that spans `lines` lines; UserError unless lenient."""
        if not self.lenient:
            raise UserError(f"{location.path}:{line}: {fault}; fix the row, or skip malformed rows with --lenient")
        self.skipped.append(Skipped(location.name, line, fault, lines))


class Reader(Protocol):
    """Reads rows from a text file, a hub split or a parquet file, and makes examples."""

    def read_file(self, file: Path) -> Iterator[RawRow]: ...

    def read_split(self, split: Dataset, place: str) -> Iterator[RawRow]: ...

    def examples(self, rows: Iterable[RawRow], location: Location, log: Log) -> TextExamples: ...


@dataclass(frozen=True)
class TableReader:
    """Files with a column per text and one for the label.

    Args:
        texts: Names of the text columns.
        label: Name of the label column.
        codes: The labels in the files, by label id; () for scores.
        header: Names of all columns, for files without a header.
        tabs: Whether tabs separate columns, as in GLUE, with one row per line and quotes as text. Otherwise CSV.
        comment: Lines with this beginning are ignored.
        any_case: Whether label comparison ignores case.
        blank: Whether a text may be empty.
        hub: Names of the hub's columns, texts first, if they differ.
        hub_names: The label names that the hub must have, by label id, if it has any.
        scores: The lowest and the highest score, if labels are scores; None: any finite number is one.
    """

    texts: tuple[str, ...]
    label: str
    codes: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    tabs: bool = False
    comment: str | None = None
    any_case: bool = False
    blank: bool = False
    hub: tuple[str, ...] = ()
    hub_names: tuple[str, ...] = ()
    scores: tuple[float, float] | None = None

    def read_file(self, file: Path) -> Iterator[RawRow]:
        """The rows of a UTF-8 file, with the line where each begins; empty lines are ignored."""
        records, columns = self._records(file), (*self.texts, self.label)
        if not self.tabs:
            records = iter(without_runaways(list(records)))
        header = RawRow(1, self.header) if self.header else next(records, RawRow(1))
        if header.fault:
            raise UserError(f"{file}:1: {header.fault}; correct the file, or get it again")
        if any(header.texts.count(column) != 1 for column in columns):
            names = ", ".join(map(repr, header.texts)) or "an empty line"
            expected = f"expected a header with the columns {', '.join(columns)}, each once"
            raise UserError(f"{file}:1: {expected}, found {names}; correct the file, or get it again")
        positions = [header.texts.index(column) for column in columns]
        for record in records:
            if record.fault:
                yield record
            elif len(record.texts) != len(header.texts):
                fault = f"expected {len(header.texts)} columns, found {len(record.texts)}"
                yield RawRow(record.line, fault=fault, lines=record.lines)
            else:
                *texts, label = (record.texts[position] for position in positions)
                yield record._replace(texts=tuple(texts), label=label)

    def _records(self, file: Path) -> Iterator[RawRow]:
        """Each row, including the header, with all columns as texts."""
        with open_text(file, newline="") as stream:
            dialect: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if self.tabs else {"strict": True}
            reader = csv.reader(stream, **dialect)
            while True:
                line = reader.line_num + 1
                try:
                    fields = next(reader, None)
                except csv.Error as error:
                    end = f"up to line {reader.line_num} ({error})"
                    fault = f"expected CSV, found a malformed record {end}"
                    yield RawRow(line, fault=fault, lines=reader.line_num - line + 1)
                    continue
                if fields is None:
                    return
                if fields and not (self.comment and fields[0].startswith(self.comment)):
                    lines = reader.line_num - line + 1
                    yield RawRow(line, tuple(fields), fault=utf8_fault("".join(fields)), lines=lines)

    def read_split(self, split: Dataset, place: str) -> Iterator[RawRow]:
        """The rows of a hub split or parquet file. place: for error messages."""
        codes = self.codes if self.hub_names else ()
        return read_columns(split, place, self.hub or (*self.texts, self.label), self.hub_names, codes)

    def examples(self, rows: Iterable[RawRow], location: Location, log: Log) -> TextExamples:
        """The valid rows as examples, in order."""
        checked = list(sound_rows(rows, self._label_id, location, log))
        if long := [row for row, _ in checked if row.lines > 1]:
            longest = max(long, key=lambda row: row.lines)
            summary = f"{len(long)} over several lines, the longest over {longest.lines} (line {longest.line})"
            log.notes.append(f"{location.name}: records: {summary}")
        return TextExamples(tuple(row.texts for row, _ in checked), np.array([label for _, label in checked]))

    def _label_id(self, row: RawRow) -> int | float:
        for column, text in zip(self.texts, row.texts, strict=True):
            if not isinstance(text, str) or not (self.blank or text.strip()):
                raise RowError(f"expected a text in column {column!r}, found {text!r}")
        label = row.label.lower() if self.any_case and isinstance(row.label, str) else row.label
        if label in self.codes:
            return self.codes.index(label)
        if self.codes:
            raise RowError(f"expected one of the labels {', '.join(self.codes)}, found {label!r}")
        try:
            score = float(label)
        except (TypeError, ValueError):
            score = np.nan
        lowest, highest = self.scores or (-np.inf, np.inf)
        if not (lowest <= score <= highest and abs(score) <= LARGEST):
            expected = f"a score from {lowest:g} to {highest:g}" if self.scores else "a finite number"
            raise RowError(f"expected {expected}, found {label!r}")
        return float(np.float32(score))


def read_columns(
    split: Dataset, place: str, columns: Sequence[str], names: Sequence[str] = (), codes: Sequence[str] = ()
) -> Iterator[RawRow]:
    """The rows of a split, with the label in the last column.

    names: the expected label names by id, checked if the split has names. codes: the labels of the returned rows by
    id; if empty, the split's names.
    """
    if missing := [column for column in columns if column not in split.column_names]:
        raise UserError(
            f"{place}: expected the columns {', '.join(columns)}, found {', '.join(split.column_names)} without "
            f"{', '.join(missing)}; get the data again"
        )
    feature = split.features[columns[-1]]
    hub_names = getattr(feature, "names", None) or getattr(getattr(feature, "feature", None), "names", None) or ()
    if names and hub_names and tuple(hub_names) != tuple(names):
        expected = f"expected the labels in the order {', '.join(names)}"
        raise UserError(f"{place}: {expected}, found {', '.join(hub_names)}; get the data again")
    codes = codes or hub_names
    for number, (*texts, label) in enumerate(zip(*(split[column][:] for column in columns), strict=True), start=1):
        is_id = isinstance(label, int) and 0 <= label < len(codes)
        yield RawRow(number, tuple(texts), codes[label] if is_id else label)


def open_text(file: Path, newline: str | None = None) -> io.TextIOWrapper:
    """Open a UTF-8 file without its byte-order mark. Invalid bytes are read as surrogates.

    newline: as in `open`; by default, lines end at a newline or carriage return, and not at U+0085.
    """
    return io.TextIOWrapper(open_file(file), encoding="utf-8-sig", errors="surrogateescape", newline=newline)


def without_runaways(records: list[RawRow]) -> list[RawRow]:
    """The rows, with a fault for each record that is so long that it must have an unclosed quote.

    A record may span `MOST_LINES` lines, and less than `MOST_RATIO` times the lines of the next longest one.
    """
    longest, following, *_ = [*sorted((record.lines for record in records), reverse=True), 1, 1]

    def checked(record: RawRow) -> RawRow:
        is_runaway = record.lines > MOST_LINES or record.lines == longest >= MOST_RATIO * following
        if record.fault or not is_runaway:
            return record
        last = record.line + record.lines - 1
        fault = (
            f"expected a record of at most {MOST_LINES} lines and less than {MOST_RATIO} times the next longest, found "
            f"one of {record.lines} lines, up to line {last}: a quote is not closed"
        )
        return record._replace(fault=fault)

    return list(map(checked, records))


def read_lines(file: Path, newline: str | None = None) -> Iterator[tuple[int, str, str]]:
    """Each line of a UTF-8 file: its number, its text without the line end, and any fault in its bytes."""
    with open_text(file, newline) as stream:
        for number, line in enumerate(stream, start=1):
            yield number, line.removesuffix("\n"), utf8_fault(line)


def utf8_fault(text: str) -> str:
    """A fault for the first invalid byte in a text; "" if there is none."""
    stray = "" if text.isascii() else next((mark for mark in text if "\udc80" <= mark <= "\udcff"), "")
    return f"expected text in UTF-8, found the byte 0x{ord(stray) - 0xDC00:02x}" if stray else ""


def sound_rows(
    rows: Iterable[RawRow], check: Callable[[RawRow], T], location: Location, log: Log
) -> Iterator[tuple[RawRow, T]]:
    """The rows that pass a check, with its result; a fault or RowError rejects a row. UserError if no row passes."""
    passed = 0
    for row in rows:
        try:
            if row.fault:
                raise RowError(row.fault)
            checked = check(row)
        except RowError as error:
            log.reject(location, row.line, str(error), row.lines)
        else:
            passed += 1
            yield row, checked
    if not passed:
        raise UserError(
            f"{location.path}: expected at least one example, found none; correct the file, or get it again"
        )
