"""Texts of any size, split into passages once, stored in an Arrow file, and read on demand."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.errors import UserError
from benchmarks.run_config import JSON, digest
from benchmarks.tasks.base import DataSource, Skipped, TaskData, TextExamples
from benchmarks.tasks.rows import BLANKS, Location, Log, read_lines
from benchmarks.tasks.sources import stream_texts
from fedsim.stored import FileCache

VERSION = 3  # raised when the same text gives other passages
AT_ONCE = 100  # passages per batch
HEADING = re.compile("=( .* )=", re.DOTALL)  # " = Title = ", as in WikiText
TITLE = re.compile("= (?!= ).*(?<! =) =", re.DOTALL)  # an article's; section headings are " = = Section = = "
# A space between a full stop, question mark or exclamation mark and a capital, digit, quote or bracket.
BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])[ \t]+(?=[A-Z0-9\"'(\[])")


class Passages(Sequence[tuple[str, ...]]):
    """Texts in a column of a memory-mapped Arrow file."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.column = column

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Passages(self.column[index])
        return (self.column[index].as_py(),)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for chunk in self.column.chunks:
            yield from ((text,) for text in chunk.to_pylist())


class Text(NamedTuple):
    """A text: its place, for messages; JSON values that identify its content; and a function that reads its lines."""

    place: str
    key: JSON
    lines: Callable[[Log], Iterator[str]]


def stamp(file: Path, name: str) -> JSON:
    """A file's name, size and modification times, which identify its content on this machine."""
    status = file.stat()
    return [name, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def text_of_file(file: Path, name: str) -> Text:
    """A UTF-8 file, whose lines end only at a newline. name: for records."""

    def lines(log: Log) -> Iterator[str]:
        for number, line, fault in read_lines(file, newline="\n"):
            if fault := fault or ("expected text in UTF-8, found the byte 0x00" if "\0" in line else ""):
                log.reject(Location(str(file), name), number, fault)
            else:
                yield line

    return Text(str(file), ["file", stamp(file, name)], lines)


def text_of_hub(repository: str, revision: str | None, files: str, limit: int | None = None) -> Text:
    """The column "text" of a dataset's parquet files, split into lines with single spaces.

    limit: the most non-empty lines; None: each row is one line, without a limit.
    """

    def lines(log: Log) -> Iterator[str]:
        rows = stream_texts(repository, files, revision, log)
        if limit is None:
            return (" ".join(row.split()) for row in rows)
        return first_lines((" ".join(line.split()) for row in rows for line in row.split("\n")), limit, log)

    return Text(repository, ["hub", repository, revision, files, limit], lines)


def first_lines(lines: Iterable[str], limit: int, log: Log) -> Iterator[str]:
    """The first non-empty lines; the log notes if there are more."""
    filled = filter(None, lines)
    yield from islice(filled, limit)
    if next(filled, None) is not None:
        log.notes.append(f"the first {limit} passages alone")


def load_texts(
    texts: Sequence[Text],
    kind: Literal["passages", "sentences", "articles"],
    source: DataSource,
    origin: str,
    files: Sequence[Path] = (),
    evaluations: Sequence[str] = (),
    headings: bool = False,
) -> TaskData:
    """Texts as an unlabelled task; they are written to disk once, and not held in memory.

    Args:
        texts: The pool's text, and the central sets' texts.
        kind: "passages" are lines; "sentences" are lines split after full stops, question and exclamation marks;
            "articles" begin at a title, a line such as ` = Title = `, and end before the next title.
        source: Whether to skip malformed lines, and the folder for the passages.
        origin: The texts' source, for records.
        files: The files in the data directory.
        evaluations: Names of the central sets.
        headings: Whether passages omit lines such as ` = Title = `.

    Raises:
        UserError: A line is malformed, a text has no passages, or the folder cannot be written.
    """
    parts = [_load_text(text, kind, headings, source) for text in texts]
    pool, *central = (unlabelled(passages) for passages, _ in parts)
    return TaskData(
        pool=pool,
        origin=origin,
        central=dict(zip(evaluations, central, strict=False)),
        skipped=tuple(Skipped(**row) for _, log in parts for row in log["skipped"]),
        notes=tuple(parts[0][1]["notes"]),
        files=tuple(files),
    )


def _load_text(text: Text, kind: str, headings: bool, source: DataSource) -> tuple[Passages, dict[str, Any]]:
    """A text's passages, and the log's notes and skipped rows from reading it."""
    schema = pa.schema({"text": pa.string()})

    def write(file: IO[bytes]) -> None:
        log = Log(source.lenient)
        lines = text.lines(log)
        cut = articles(lines, text.place) if kind == "articles" else passages(lines, log, headings, kind == "sentences")
        with pa.ipc.new_file(file, schema) as writer:
            if not (batch := list(islice(cut, AT_ONCE))):
                raise UserError(f"{text.place}: expected {kind}, found none; get the text again")
            while batch:
                writer.write_batch(pa.record_batch([batch], schema=schema))
                batch = list(islice(cut, AT_ONCE))
            counts = [f"{name}: {count}" for name, count in sorted(log.counts.items())]
            kept = {"notes": counts + log.notes, "skipped": [asdict(row) for row in log.skipped]}
            writer.write_batch(pa.record_batch([[]], schema=schema), custom_metadata={"log": json.dumps(kept)})

    folder = source.extracts or Path(_temporary().name)
    key = {"version": VERSION, "text": text.key, "kind": kind, "headings": headings, "lenient": source.lenient}
    try:
        file = FileCache(folder, ".arrow", sys.maxsize).open(digest(key, 24), write)
    except OSError as error:
        raise UserError(
            f"{folder}: passages cannot be stored there ({error.strerror or error}). Set RESULTS_DIR to a folder that "
            "you may write to, with enough space"
        ) from None
    reader = pa.ipc.open_file(pa.py_buffer(file))
    *batches, last = (reader.get_batch_with_custom_metadata(number) for number in range(reader.num_record_batches))
    column = pa.chunked_array([batch.column(0) for batch, _ in batches])
    return Passages(column), json.loads(last.custom_metadata[b"log"])


def unlabelled(texts: Sequence[tuple[str, ...]]) -> TextExamples:
    """Texts without labels, as examples."""
    return TextExamples(texts, np.zeros(len(texts), dtype=np.int64))


def passages(lines: Iterable[str], log: Log, headings: bool, sentences: bool) -> Iterator[str]:
    """The stripped lines, or their sentences; empty lines and headings are only counted."""
    for line in lines:
        text = line.strip(BLANKS)
        if not text or text.isspace():
            log.counts["empty lines"] += 1
        elif headings and HEADING.fullmatch(text):
            log.counts["headings"] += 1
        else:
            yield from BETWEEN_SENTENCES.split(text) if sentences else [text]


def articles(lines: Iterable[str], place: str) -> Iterator[str]:
    """Articles: the title and all other non-empty lines, with single spaces. place: for error messages.

    If an empty line follows the first title, as in WikiText, later titles must follow an empty line, too, as formulas
    look like titles.
    """
    article: list[str] = []
    set_off: bool | None = None  # whether titles are between empty lines; None: unknown
    after_empty = True
    for line in lines:
        text = " ".join(line.split())
        if article and set_off is None:
            set_off = not text
        if TITLE.fullmatch(line.strip(BLANKS)) and (after_empty or not set_off):
            if article:
                yield "\n".join(article)
            article = []
        elif text and not article:
            raise UserError(
                f'{place}: expected articles, each after a line such as " = Title = ", found text before the first '
                "one; add its title"
            )
        article += [text] if text else []
        after_empty = not text
    if article:
        yield "\n".join(article)


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="passages-")
