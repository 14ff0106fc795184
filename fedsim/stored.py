"""Files that are computed once, checked when they are opened, and read without being held in memory."""

from __future__ import annotations

import bisect
import logging
import mmap
import os
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import IO

import numpy as np
from filelock import SoftFileLease, Timeout

from fedsim.errors import FederationError

logger = logging.getLogger(__name__)
FORGET_AFTER_BYTES = 2**26  # read from a mapped file: then its pages are given back
READ_AT_ONCE = 2**20  # bytes
LOCK, PARTIAL, SUM = ".lock", ".partial", ".crc32"


class MappedFile:
    """A file mapped into memory, read-only; it stays readable when its name is removed."""

    def __init__(self, file: IO[bytes]) -> None:
        self.buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._read_bytes = 0

    def has_read(self, size: int) -> None:
        """Count bytes that were read; from time to time give pages back, so that resident memory stays flat."""
        self._read_bytes += size
        if self._read_bytes > FORGET_AFTER_BYTES and hasattr(mmap, "MADV_DONTNEED"):
            self.buffer.madvise(mmap.MADV_DONTNEED)
            self._read_bytes = 0


class Chunks:
    """Arrays of one type in a mapped file, read as one array: a slice is a copy in memory of its own."""

    def __init__(self, arrays: Sequence[np.ndarray], file: MappedFile) -> None:
        self.arrays = arrays
        self.dtype = arrays[0].dtype
        self._ends = list(accumulate(map(len, arrays)))
        self._file = file

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, span: slice) -> np.ndarray:
        begin, end, _ = span.indices(len(self))
        pieces = [np.empty(0, self.dtype)]
        for number in range(bisect.bisect_right(self._ends, begin), bisect.bisect_left(self._ends, end) + 1):
            start = self._ends[number] - len(self.arrays[number])
            pieces.append(self.arrays[number][max(0, begin - start) : max(0, end - start)])
        self._file.has_read((end - begin) * self.dtype.itemsize)
        return np.concatenate(pieces)

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype, copy=False)


Numbers = np.ndarray | Chunks


class FileCache:
    """A folder of files that are computed once; the least recently used go first where they exceed `limit_bytes`.

    A file takes its name when it is whole and on the disk. Its CRC-32 is in a file next to it: a damaged file is named
    in a warning and computed again. A lock for each file keeps two processes from computing it at once. A reader keeps
    the file that it has opened, whatever happens to the name.
    """

    def __init__(self, folder: Path, suffix: str, limit_bytes: int) -> None:
        self.folder = folder
        self.suffix = suffix
        self.limit_bytes = limit_bytes

    def open(self, name: str, write: Callable[[IO[bytes]], None]) -> MappedFile:
        """Map the file of that name, after `write` has computed its content where it is missing or damaged."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}{self.suffix}"
        if path.is_dir():
            raise FederationError(f"{path}: expected a file, found a folder; move it away")
        with SoftFileLease(path.with_suffix(LOCK)):
            if not _is_whole(path):
                self._compute(path, write)
            os.utime(path)
            with path.open("rb") as file:
                return MappedFile(file)

    def _compute(self, path: Path, write: Callable[[IO[bytes]], None]) -> None:
        partial = path.with_suffix(PARTIAL)
        try:
            with partial.open("w+b") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
                file.seek(0)
                checksum = _checksum(file)
            self._make_room(partial)
            path.with_suffix(SUM).write_text(checksum, encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    def _make_room(self, newest: Path) -> None:
        """Remove what killed processes left half written, then the least recently used files above the limit."""
        files = sorted(self.folder.glob(f"*{self.suffix}"), key=_last_used)
        taken = sum(map(_size, (newest, *files)))
        for path in (*self.folder.glob(f"*{PARTIAL}"), *files):
            if path.stem == newest.stem or (path.suffix != PARTIAL and taken <= self.limit_bytes):
                continue
            with suppress(Timeout, FileNotFoundError), SoftFileLease(path.with_suffix(LOCK), timeout=0):
                taken -= _size(path) if path.suffix != PARTIAL else 0
                path.unlink()
                path.with_suffix(SUM).unlink(missing_ok=True)


def _checksum(file: IO[bytes]) -> str:
    """The CRC-32 of a file from its position on, in hexadecimal: three times as fast as SHA-256."""
    checksum = 0
    while content := file.read(READ_AT_ONCE):
        checksum = zlib.crc32(content, checksum)
    return f"{checksum:08x}\n"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _last_used(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def _is_whole(path: Path) -> bool:
    """Whether there is a file, and its content has its checksum; a damaged one is named in a warning."""
    if not path.exists():
        return False
    try:
        expected = path.with_suffix(SUM).read_text(encoding="utf-8")
        with path.open("rb") as file:
            damage = "" if _checksum(file) == expected else "it does not have its checksum"
    except (OSError, UnicodeDecodeError) as error:
        damage = str(error)
    if damage:
        logger.warning("%s is damaged (%s): it is computed again", path, damage)
    return not damage
