"""Comma-separated files as RFC 4180 describes them: a quoted field may hold commas, quotes and ends of lines."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.tasks.rows import Row, column_positions
from fedsim.files import read_file


def read_csv(file: Path, texts: tuple[str, ...], label: str) -> Iterator[Row]:
    """The rows of a UTF-8 file with a header, nothing stripped; a byte-order mark and blank lines are passed over.

    texts, label: names of the columns to take. A row's line is that on which it begins.
    """
    content = read_file(file)
    # Bytes that are no UTF-8 become lone surrogates, which UTF-8 itself cannot hold: so the fault has its row.
    text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    records = _records(text)
    header = next(records, Row(1))
    if header.fault:
        raise UserError(f"{file}:1: expected a CSV header in UTF-8; {header.fault}; get the file again")
    picked = column_positions(file, header.texts, (*texts, label))
    for record in records:
        if record.fault:
            yield record
        elif len(record.texts) != len(header.texts):
            yield Row(record.line, fault=f"expected {len(header.texts)} columns, found {len(record.texts)}")
        else:
            *chosen, target = (record.texts[position] for position in picked)
            yield Row(record.line, tuple(chosen), target)


def _records(text: str) -> Iterator[Row]:
    """Every record with all its fields as texts, or its fault."""
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
        stray = next((mark for field in fields for mark in field if "\udc80" <= mark <= "\udcff"), None)
        if stray:
            yield Row(line, fault=f"expected UTF-8, found the byte 0x{ord(stray) - 0xDC00:02x}")
        elif fields:
            yield Row(line, tuple(fields))
