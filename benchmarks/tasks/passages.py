"""The passages or articles of a text file, read when they are asked for: memory does not grow with the texts."""

from __future__ import annotations

import codecs
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, overload

import numpy as np

from benchmarks.errors import UserError
from benchmarks.tasks.base import Skipped
from fedsim.files import open_file

LONGEST = 100_000  # bytes of a passage; what is longer becomes several, cut at a blank
BUFFER_BYTES = 2**20
SPANS_AT_ONCE = 8192
HEADING = re.compile(rb"=( .* )=", re.DOTALL)  # " = Title = ", as WikiText marks it
TITLE = re.compile(rb"= (?!= ).*(?<! =) =", re.DOTALL)  # an article's: sections are headed by " = = Section = = "
# A blank behind a full stop, question mark or exclamation mark, before a capital, a digit, a quote or a bracket.
BETWEEN_SENTENCES = re.compile(rb"(?<=[.!?])[ \t]+(?=[A-Z0-9\"'(\[])")


@dataclass(frozen=True, eq=False)
class Passages(Sequence[tuple[str, ...]]):
    """Passages of a file as a task's texts. spans: where each begins and ends in bytes, int64 [n, 2].

    stamp: size and time of change of the file when they were found; UserError where it has changed since.
    """

    file: Path
    spans: np.ndarray
    stamp: tuple[int, int]

    def __len__(self) -> int:
        return len(self.spans)

    @overload
    def __getitem__(self, index: int) -> tuple[str, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> Passages: ...

    def __getitem__(self, index: int | slice) -> tuple[str, ...] | Passages:
        """One passage, or some of them, which are not read yet either."""
        if isinstance(index, slice):
            return replace(self, spans=self.spans[index])
        (found,) = replace(self, spans=self.spans[index][None])
        return found

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        with opened(self.file) as file:
            if stamp_of(self.file) != self.stamp:
                raise UserError(f"{self.file}: has changed since its passages were counted; run again")
            for start in range(0, len(self), SPANS_AT_ONCE):
                for begin, end in self.spans[start : start + SPANS_AT_ONCE].tolist():
                    file.seek(begin)
                    yield (self._text(file.read(end - begin)),)

    def _text(self, content: bytes) -> str:
        return content.decode("utf-8")


class Articles(Passages):
    """Articles of a file: each is its lines, the title's among them, with single blanks and without empty ones."""

    def _text(self, content: bytes) -> str:
        lines = (" ".join(line.decode("utf-8").split()) for line in content.split(b"\n") if not _fault(line))
        return "\n".join(filter(None, lines))


@dataclass(frozen=True)
class Found:
    """What is in a file: its passages, in words what was passed over, and the lines that leniency skipped."""

    passages: Passages
    notes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def find_passages(file: Path, name: str, lenient: bool, headings: bool = False, sentences: bool = False) -> Found:
    """The passages of a UTF-8 file, one a line, without the blanks around it; empty lines are passed over.

    name: the file as records call it. headings: whether lines as ` = Title = ` are passed over, too. sentences:
    whether each sentence is a passage: a line is cut behind a full stop, question or exclamation mark where a blank
    and a capital, a digit, a quote or a bracket follow. UserError where bytes are no text, unless lenient, or where
    there is no passage.
    """
    spans, counts, skipped = array("q"), Counter[str](), list[Skipped]()
    stamp = stamp_of(file)
    for begin, line in _sound_lines(file, name, lenient, counts, skipped):
        text = line.strip()
        if _is_empty(text):
            counts["empty lines"] += 1
        elif headings and HEADING.fullmatch(text):
            counts["headings"] += 1
        else:
            first = begin + line.index(text)
            cuts = [match.span() for match in BETWEEN_SENTENCES.finditer(text)] if sentences else []
            ends = [start for start, _ in cuts] + [len(text)]
            for start, end in zip([0, *(end for _, end in cuts)], ends, strict=True):
                spans.extend((first + start, first + end))
    if not spans:
        raise UserError(f"{file}: expected one passage a line, found none; get the file again")
    passages = Passages(file, np.frombuffer(spans, dtype=np.int64).reshape(-1, 2), stamp)
    return Found(passages, tuple(f"{what}: {count}" for what, count in sorted(counts.items())), tuple(skipped))


def find_articles(file: Path, name: str, lenient: bool) -> Found:
    """The articles of a UTF-8 file, each from its title on, a line as ` = Title = `, to the line before the next one.

    Where an empty line follows the first title, as in WikiText, a title is one behind an empty line alone: formulas
    look like titles, too. name, lenient: as `find_passages` has them. UserError where bytes are no text, unless
    lenient, or where there is no title, or text before the first one.
    """
    begins, skipped = array("q"), list[Skipped]()
    stamp = stamp_of(file)
    set_off: bool | None = None  # whether titles stand between empty lines, once that is known
    before = True  # whether the line before is empty, or there is none
    for begin, line in _sound_lines(file, name, lenient, Counter(), skipped):
        text = line.strip()
        empty = _is_empty(text)
        if begins and set_off is None:
            set_off = empty
        if TITLE.fullmatch(text) and (before or not set_off):
            begins.append(begin)
        elif not (begins or empty):
            raise UserError(
                f'{file}: expected articles, each headed by a line as " = Title = ", found text before the first one; '
                "head it, too"
            )
        before = empty
    if not begins:
        raise UserError(f'{file}: expected articles, each headed by a line as " = Title = ", found none; get it again')
    ends = [*begins[1:], stamp[0]]
    return Found(Articles(file, np.stack([begins, ends], axis=1).astype(np.int64), stamp), (), tuple(skipped))


def _sound_lines(
    file: Path, name: str, lenient: bool, counts: Counter[str], skipped: list[Skipped]
) -> Iterator[tuple[int, bytes]]:
    """A file's lines that are text, each with where it begins; the others are skipped, or a UserError."""
    with opened(file) as stream:
        for number, begin, line in _lines(stream, counts):
            fault = _fault(line)
            if not fault:
                yield begin, line
            elif lenient:
                skipped.append(Skipped(name, number, fault))
            else:
                raise UserError(f"{file}:{number}: {fault}; mend the line, or skip such lines with --lenient")


def _is_empty(text: bytes) -> bool:
    return not text or text.decode().isspace()


def _lines(stream: IO[bytes], counts: Counter[str]) -> Iterator[tuple[int, int, bytes]]:
    """A file's lines, each with its number and where it begins; of a very long one the parts, of the same number."""
    begin, number, goes_on = 0, 1, False
    if stream.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
        begin = len(codecs.BOM_UTF8)
    stream.seek(begin)
    while line := stream.readline(LONGEST):
        whole = len(line) < LONGEST or line.endswith(b"\n")
        if not whole:
            line = line[: line.rfind(b" ") + 1] or _whole_characters(line)
            stream.seek(begin + len(line))
            counts[f"lines longer than {LONGEST} bytes, in several passages"] += not goes_on
        yield number, begin, line
        begin, number, goes_on = begin + len(line), number + whole, not whole


def _whole_characters(line: bytes) -> bytes:
    """Bytes without the last character, which may be cut."""
    end = len(line) - 1
    while end > 1 and line[end] & 0xC0 == 0x80:
        end -= 1
    return line[:end]


def _fault(line: bytes) -> str:
    """Why a line's bytes are no text; "" where they are."""
    if b"\0" in line:
        return "expected text in UTF-8, found the byte 0x00"
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"expected UTF-8, found the byte 0x{line[error.start]:02x}"
    return ""


def opened(file: Path) -> IO[bytes]:
    """The file, for reading; FileError where it cannot be read."""
    return open_file(file)


def stamp_of(file: Path) -> tuple[int, int]:
    """Size and time of change, by which a file is known to be the same."""
    try:
        found = file.stat()
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    return found.st_size, found.st_mtime_ns
