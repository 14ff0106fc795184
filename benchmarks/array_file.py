"""Arrays in a file that is written and read without holding them: safetensors' format, behind a few bytes of another's.

https://huggingface.co/docs/safetensors: eight bytes with the header's length, the header in JSON, then the arrays.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import numpy as np

from fedsim.files import FileError, open_file
from fedsim.stored import Numbers, Stored

DTYPES: dict[str, np.dtype] = {"I32": np.dtype(np.int32), "I64": np.dtype(np.int64), "F32": np.dtype(np.float32)}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
LENGTH_BYTES = 8
LARGE_BYTES = 2**22  # of an array: beyond, it stays on the disk


class _Hashing:
    """A file that hashes what is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.state = hashlib.sha256()

    def write(self, content: bytes) -> int:
        self.state.update(content)
        return self.file.write(content)


def write_arrays(file: IO[bytes], pieces: Iterable[Mapping[str, np.ndarray]], folder: Path) -> str:
    """Write arrays that come piece by piece, each name's end to end; the SHA-256 of what was written.

    folder: for temporary files, which take as much space again.
    """
    with ExitStack() as stack:
        columns: dict[str, IO[bytes]] = {}
        dtypes: dict[str, np.dtype] = {}
        for found in pieces:
            for name, piece in found.items():
                if name not in columns:
                    columns[name] = stack.enter_context(tempfile.TemporaryFile(dir=folder))
                    dtypes[name] = piece.dtype
                columns[name].write(np.ascontiguousarray(piece, dtypes[name]).data.cast("B") if piece.size else b"")
        header, end = {}, 0
        for name, column in columns.items():
            begin, end = end, end + column.tell()
            shape = [(end - begin) // dtypes[name].itemsize]
            header[name] = {"dtype": NAMES[dtypes[name]], "shape": shape, "data_offsets": [begin, end]}
        content = json.dumps(header).encode()
        content += b" " * (-len(content) % LENGTH_BYTES)
        hashing = _Hashing(file)
        hashing.write(len(content).to_bytes(LENGTH_BYTES, "little") + content)
        for column in columns.values():
            column.seek(0)
            shutil.copyfileobj(column, hashing, 2**20)
    return hashing.state.hexdigest()


def read_arrays(path: Path, start: int, stored: Collection[str] = ()) -> dict[str, Numbers]:
    """The arrays in a file that holds them from the byte `start` on.

    stored: names of those that stay in the file where they are large, and are read where they are asked for. FileError
    where the file holds none.
    """
    try:
        return _read(path, start, stored)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError, MemoryError) as error:
        if isinstance(error, FileError):
            raise
        reason = f"{type(error).__name__}: {error}"
        raise FileError(f"{path}: expected arrays, found a header that describes none ({reason})") from None


def _read(path: Path, start: int, stored: Collection[str]) -> dict[str, Numbers]:
    found: dict[str, Numbers] = {}
    with open_file(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(start)
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        if length > size - file.tell():
            raise ValueError(f"{length} bytes of header in {size}")
        for name, entry in json.loads(file.read(length)).items():
            begin, end = (start + LENGTH_BYTES + length + offset for offset in entry["data_offsets"])
            dtype, (count,) = DTYPES[entry["dtype"]], entry["shape"]
            if not start + LENGTH_BYTES + length <= begin <= end <= size or end - begin != count * dtype.itemsize:
                raise ValueError(f"{name}: {count} numbers from byte {begin} to {end} of {size}")
            array = Stored(file, dtype, begin, count)
            found[name] = array if name in stored and end - begin > LARGE_BYTES else array[:].copy()
    return found
