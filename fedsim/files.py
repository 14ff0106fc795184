"""The one way to read a file that this process did not just write: what is no plain, bounded file is refused by name.

Folders, named pipes, sockets and devices are never opened: a pipe would be waited for, a device may have no end.
"""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Never, TypeVar

from fedsim.errors import FederationError

_NOTED: ContextVar[list[Path] | None] = ContextVar("files that were read", default=None)
MOST_BYTES = 16 * 2**30  # of a file that is read whole: more than any encoder here
MOST_JSON_BYTES = 2**28
T = TypeVar("T")
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class FileError(FederationError):
    """A file is not what was expected: says which, and what was found in its place."""


class MissingFileError(FileError):
    """There is no such file."""


class _Source(io.FileIO):
    """Says of which file it is where that cannot be read on, whoever reads it."""

    expected = ""

    def readinto(self, buffer: Any) -> Any:
        return self._read(lambda: super(_Source, self).readinto(buffer))

    def readall(self) -> Any:
        return self._read(lambda: super(_Source, self).readall())

    def _read(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except OSError as error:
            raise FileError(f"{self.expected}, found one that cannot be read: {_reason(error)}") from None


@contextmanager
def noting() -> Iterator[list[Path]]:
    """The files that are opened meanwhile, in this thread, in the order in which they were."""
    found: list[Path] = []
    token = _NOTED.set(found)
    try:
        yield found
    finally:
        _NOTED.reset(token)


def open_file(path: Path, what: str = "a file", buffering: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader[Any]:
    """A plain file, open for reading bytes; FileError where it is something else or cannot be read.

    what: it was expected to be, in words. buffering: bytes that are read at once.
    """
    try:
        _require_plain(path, what, path.stat())  # before it is opened: opening a device can do something
        raw = _Source(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)))
        raw.expected = f"{path}: expected {what}"
        file: io.BufferedReader[Any] = io.BufferedReader(raw, buffering)
    except FileNotFoundError:
        raise MissingFileError(f"{path}: expected {what}, found nothing there") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: expected {what}, found one that cannot be read: {_reason(error)}") from None
    try:
        _require_plain(path, what, os.fstat(file.fileno()))  # the same path may name something else by now
    except FileError:
        file.close()
        raise
    if (noted := _NOTED.get()) is not None:
        noted.append(path)
    return file


def read_file(path: Path, what: str = "a file", most: int = MOST_BYTES) -> bytes:
    """The content of a plain file of at most so many bytes; FileError where it is none, longer, or cannot be read."""
    with open_file(path, what) as file:
        if os.fstat(file.fileno()).st_size > most:
            _too_long(path, what, most)
        content = file.read(most + 1)
    if len(content) > most:  # one that grows while it is read
        _too_long(path, what, most)
    return content


def read_text(path: Path, what: str = "a text in UTF-8", most: int = MOST_BYTES) -> str:
    """The text of a plain UTF-8 file; FileError names the first byte that is none."""
    content = read_file(path, what, most)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"the byte 0x{content[error.start]:02x} at {error.start}"
        raise FileError(f"{path}: expected {what} in UTF-8, found {found}") from None


def read_json(path: Path, what: str = "JSON", most: int = MOST_JSON_BYTES) -> Any:
    """The value of a plain JSON file; FileError where it is none, is nested too deep, or has a NaN or an infinity."""
    return parse_json(read_text(path, what, most), path, what)


def require_files(folder: Path, patterns: Iterable[str], what: str = "a file") -> None:
    """FileError where something of these names in a folder is no plain file that can be read: for other readers."""
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            open_file(path, what).close()


def parse_json(text: str, path: Path, what: str = "JSON") -> Any:
    """The value of a text that comes from a file, as `read_json` has it."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise FileError(f"{path}: expected {what}, found JSON that is nested too deep") from None
    except ValueError as error:
        raise FileError(f"{path}: expected {what}, found no JSON that can be read: {error}") from None


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is no number of JSON")


def _require_plain(path: Path, what: str, found: os.stat_result) -> None:
    for is_kind, name in _KINDS:
        if is_kind(found.st_mode):
            raise FileError(f"{path}: expected {what}, found {name}")


def _too_long(path: Path, what: str, most: int) -> Never:
    raise FileError(f"{path}: expected {what} of at most {most:,} bytes, found a longer file")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
