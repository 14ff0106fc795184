"""Read files, with errors that name the file and the expected content, and write them atomically."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, Never

from fedsim.errors import FederationError

LFS_POINTER = b"version https://git-lfs.github.com/spec/"  # what Git stores in place of a large file


class FileError(FederationError):
    """A file is not what was expected; the message names it."""


class UnreadableError(FileError):
    """The system refuses to read a file, as without permission."""


class MissingFileError(FileError):
    """There is no such file."""


def open_file(path: Path, what: str = "a file") -> BufferedReader:
    """Open a file for reading bytes.

    Args:
        path: The file.
        what: The expected content, for the message.

    Raises:
        MissingFileError: It does not exist.
        FileError: It cannot be opened, or is only Git LFS's pointer to the file.
    """
    try:
        file = path.open("rb")
        beginning = file.peek(len(LFS_POINTER))
    except FileNotFoundError:
        raise MissingFileError(f"{path}: expected {what}, found nothing there") from None
    except IsADirectoryError:
        raise FileError(f"{path}: expected {what}, found a folder") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        raise UnreadableError(f"{path}: expected {what}, found one that cannot be read: {_reason(error)}") from None
    if beginning.startswith(LFS_POINTER):
        file.close()
        raise FileError(f"{path}: expected {what}, found a Git LFS pointer; run `git lfs pull` in its repository")
    return file


def read_file(path: Path, what: str = "a file") -> bytes:
    """The content of a file; raises FileError if it cannot be read."""
    with open_file(path, what) as file:
        try:
            return file.read()
        except OSError as error:
            raise UnreadableError(f"{path}: expected {what}, found one that cannot be read: {_reason(error)}") from None


def read_text(path: Path, what: str = "a text in UTF-8") -> str:
    """The text of a UTF-8 file; the FileError names the first byte that is not UTF-8."""
    content = read_file(path, what)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"the byte 0x{content[error.start]:02x} at {error.start}"
        raise FileError(f"{path}: expected {what} in UTF-8, found {byte}") from None


def read_json(path: Path, what: str = "JSON") -> Any:
    """The value of a JSON file; raises FileError if it is not JSON, or has a NaN or an infinity."""
    return parse_json(read_text(path, what), path, what)


def parse_json(text: str, path: Path, what: str = "JSON") -> Any:
    """The value of a JSON text that was read from a file; errors as in `read_json`."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise FileError(f"{path}: expected {what}, found JSON that is nested too deeply") from None
    except ValueError as error:
        raise FileError(f"{path}: expected {what}, found text that is not JSON: {error}") from None


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name a path in an OSError of a `with` block that names none, as that of an open file on a full disk."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically: readers see the old or the new content, never part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with naming(path), os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def require_files(folder: Path, patterns: Iterable[str], what: str = "a file") -> None:
    """Raise FileError if a matching file in a folder cannot be opened, before another library reads it."""
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            open_file(path, what).close()


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a JSON number")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
