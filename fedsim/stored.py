"""Files that are computed once and then memory-mapped."""

from __future__ import annotations

import bisect
import logging
import mmap
import os
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import accumulate
from pathlib import Path
from typing import IO

import numpy as np

from fedsim.files import naming
from fedsim.locks import TakenError, held

logger = logging.getLogger(__name__)
LOCK, PARTIAL, SUM = ".lock", ".partial", ".crc32"


class Chunks:
    """Arrays of one type in a mapped file, read as one array; a slice is a copy."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.arrays = arrays
        self.dtype = arrays[0].dtype
        self._ends = list(accumulate(map(len, arrays)))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, span: slice) -> np.ndarray:
        begin, end, _ = span.indices(len(self))
        pieces = [np.empty(0, self.dtype)]
        for number in range(bisect.bisect_right(self._ends, begin), bisect.bisect_left(self._ends, end) + 1):
            start = self._ends[number] - len(self.arrays[number])
            pieces.append(self.arrays[number][max(0, begin - start) : max(0, end - start)])
        return np.concatenate(pieces)

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype, copy=False)


Numbers = np.ndarray | Chunks


class FileCache:
    """A folder of files that are computed once; the least recently used are removed beyond `limit_bytes`.

    A complete file is renamed into place. Its CRC-32 is stored next to it; a damaged file causes a warning and is
    computed again. Two processes never compute the same file at once. An open file stays readable even if it is
    replaced or removed.
    """

    def __init__(self, folder: Path, suffix: str, limit_bytes: int) -> None:
        self.folder, self.suffix, self.limit_bytes = folder, suffix, limit_bytes

    def open(self, name: str, write: Callable[[IO[bytes]], None]) -> mmap.mmap:
        """Map the named file; `write` first computes its content if it is missing or damaged."""
        (mapped,) = self.open_all([name], lambda files: write(files[name]))
        return mapped

    def open_all(self, names: Sequence[str], write: Callable[[Mapping[str, IO[bytes]]], None]) -> list[mmap.mmap]:
        """Map files that are computed together; `write` receives the missing or damaged ones, by name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = {name: self.folder / f"{name}{self.suffix}" for name in names}
        with ExitStack() as locks:
            for path in sorted(paths.values()):  # sorted, so that no two processes wait for each other
                locks.enter_context(held(path.with_suffix(LOCK)))
            if missing := {name: path for name, path in paths.items() if not _is_whole(path)}:
                self._compute(missing, write)
            return [_mapped(path) for path in paths.values()]

    def _compute(self, paths: Mapping[str, Path], write: Callable[[Mapping[str, IO[bytes]]], None]) -> None:
        partials = {name: path.with_suffix(PARTIAL) for name, path in paths.items()}
        try:
            with naming(self.folder), ExitStack() as opened:
                files = {name: opened.enter_context(partial.open("w+b")) for name, partial in partials.items()}
                write(files)
                for file in files.values():
                    file.flush()
                    os.fsync(file.fileno())
            self._make_room(partials.values())
            for name, partial in partials.items():
                paths[name].with_suffix(SUM).write_text(_checksum(partial), encoding="utf-8")
                partial.replace(paths[name])
        finally:
            for partial in partials.values():
                partial.unlink(missing_ok=True)

    def _make_room(self, newest: Collection[Path]) -> None:
        """Remove partial files left by killed processes, then the least recently used files above the limit.

        Locked files stay, including those locked by this process.
        """
        files = sorted(self.folder.glob(f"*{self.suffix}"), key=lambda path: path.stat().st_mtime_ns)
        total = sum(path.stat().st_size for path in (*newest, *files))
        for path in (*self.folder.glob(f"*{PARTIAL}"), *files):
            if path in newest or (path.suffix != PARTIAL and total <= self.limit_bytes):
                continue
            with suppress(TakenError, FileNotFoundError), held(path.with_suffix(LOCK), wait=False):
                total -= path.stat().st_size if path.suffix != PARTIAL else 0
                path.unlink()
                path.with_suffix(SUM).unlink(missing_ok=True)


def _mapped(path: Path) -> mmap.mmap:
    """Map a file for reading and update its time of use; it stays readable after it is removed."""
    os.utime(path)
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _is_whole(path: Path) -> bool:
    """Whether the file exists and matches its checksum; a damaged file causes a warning."""
    checksum = path.with_suffix(SUM)
    if not path.exists():
        return False
    if checksum.exists() and checksum.read_text(encoding="utf-8", errors="replace") == _checksum(path):
        return True
    logger.warning("%s is damaged (checksum mismatch): computing it again", path)
    return False


def _checksum(path: Path) -> str:
    """The CRC-32 of a file in hexadecimal: three times as fast as SHA-256."""
    checksum = 0
    with path.open("rb") as file:
        while content := file.read(2**20):
            checksum = zlib.crc32(content, checksum)
    return f"{checksum:08x}\n"
