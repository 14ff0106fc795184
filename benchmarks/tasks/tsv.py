"""Tab-separated files as GLUE's download has them: a quote is text, and a tab always ends a field."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.tasks.rows import Row, column_positions
from fedsim.files import read_file


def read_tsv(file: Path, texts: tuple[str, ...], label: str, header: tuple[str, ...] | None = None) -> Iterator[Row]:
    """The rows of a UTF-8 file, nothing stripped; a byte-order mark and blank lines are passed over.

    texts, label: names of the columns to take. header: names of all columns, where the file itself has none.
    """
    content = read_file(file)
    # Unlike text, bytes split at no other separators: GLUE's texts may hold U+0085 or U+2028.
    lines = enumerate(content.removeprefix(codecs.BOM_UTF8).splitlines(), start=1)
    if header is None:
        header = _header(file, next(lines, (1, b""))[1])
    picked = column_positions(file, header, (*texts, label))
    for number, line in lines:
        if line:
            yield _row(number, line, len(header), picked)


def _row(number: int, line: bytes, width: int, picked: list[int]) -> Row:
    try:
        fields = line.decode("utf-8").split("\t")
    except UnicodeDecodeError as error:
        return Row(number, fault=f"expected UTF-8, found the byte 0x{line[error.start]:02x}")
    if len(fields) != width:
        return Row(number, fault=f"expected {width} columns, found {len(fields)}")
    *texts, label = (fields[position] for position in picked)
    return Row(number, tuple(texts), label)


def _header(file: Path, line: bytes) -> tuple[str, ...]:
    try:
        return tuple(line.decode("utf-8").split("\t"))
    except UnicodeDecodeError:
        raise UserError(f"{file}:1: expected a header in UTF-8, found other bytes; get the file again") from None
