"""Rows of text files: tab-separated as in GLUE's download, or comma-separated as RFC 4180 describes it."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.tasks.rows import Row
from fedsim.files import read_file

BLANKS = " \t\r\n\x0b\x0c"


def read_lines(file: Path) -> Iterator[tuple[int, str, str]]:
    """Each line of a UTF-8 file: its number, its text, and what is wrong with its bytes; without a byte-order mark.

    A line ends at a newline or a carriage return alone: GLUE's texts may hold U+0085 or U+2028.
    """
    content = read_file(file).removeprefix(codecs.BOM_UTF8)
    for number, line in enumerate(content.splitlines(), start=1):
        text = line.decode("utf-8", "surrogateescape")
        yield number, text, utf8_fault(text)


def utf8_fault(text: str) -> str:
    """The first byte that was no UTF-8, of a text decoded with surrogates in place of such bytes; "" for none."""
    stray = next((mark for mark in text if "\udc80" <= mark <= "\udcff"), "") if not text.isascii() else ""
    return f"expected UTF-8, found the byte 0x{ord(stray) - 0xDC00:02x}" if stray else ""


def read_tsv(file: Path, texts: tuple[str, ...], label: str, header: tuple[str, ...] | None = None) -> Iterator[Row]:
    """The rows of a file in which a tab always ends a field and a quote is text; blank lines are passed over.

    texts, label: names of the columns to take. header: names of all columns, where the file itself has none.
    """
    lines = read_lines(file)
    if header is None:
        _, line, fault = next(lines, (1, "", ""))
        if fault:
            raise UserError(f"{file}:1: expected a header in UTF-8, found other bytes; get the file again")
        header = tuple(line.split("\t"))
    records = (Row(number, tuple(line.split("\t")), fault=fault) for number, line, fault in lines if line)
    return _pick(file, header, records, texts, label)


def read_csv(file: Path, texts: tuple[str, ...], label: str) -> Iterator[Row]:
    """The rows of a file with a header, in which a quoted field may hold commas, quotes and ends of lines.

    texts, label: names of the columns to take. A row's line is that on which it begins. Blank lines are passed over.
    """
    text = read_file(file).removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    records = _csv_records(text)
    header = next(records, Row(1))
    if header.fault:
        raise UserError(f"{file}:1: expected a CSV header in UTF-8; {header.fault}; get the file again")
    return _pick(file, header.texts, records, texts, label)


def _csv_records(text: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Row(line, fault=f"expected CSV, found a record up to line {reader.line_num} that is none ({error})")
            continue
        if fields:
            yield Row(line, tuple(fields), fault=next(filter(None, map(utf8_fault, fields)), ""))


def _pick(
    file: Path, header: tuple[str, ...], records: Iterator[Row], texts: tuple[str, ...], label: str
) -> Iterator[Row]:
    """The wanted columns of records that hold all columns as texts."""
    columns = (*texts, label)
    if any(header.count(column) != 1 for column in columns):
        raise UserError(
            f"{file}:1: expected a header with each of the columns {', '.join(columns)} once, "
            f"found {', '.join(map(repr, header))}; get the file again"
        )
    picked = [header.index(column) for column in columns]
    for record in records:
        if record.fault:
            yield record
        elif len(record.texts) != len(header):
            yield Row(record.line, fault=f"expected {len(header)} columns, found {len(record.texts)}")
        else:
            *chosen, target = (record.texts[position] for position in picked)
            yield Row(record.line, tuple(chosen), target)
