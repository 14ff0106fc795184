"""Numbers in a file, read where they are asked for: what is as large as all texts is never in memory whole."""

from __future__ import annotations

import os
import weakref
from typing import IO, Any

import numpy as np

from fedsim.errors import FederationError


class Stored:
    """An array [count] in a file, from the byte `start` on: a slice is read when it is asked for.

    It is a copy in aligned memory of its own. The file may be closed, and its name removed: it stays readable.
    """

    def __init__(self, file: IO[bytes], dtype: np.dtype, start: int, count: int) -> None:
        self.name = file.name
        self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)
        self.dtype = dtype
        self.start = start
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, span: slice) -> np.ndarray:
        begin, end, step = span.indices(self.count)
        if step != 1:
            raise IndexError(f"expected a slice without a step, found {span}")
        size = max(0, end - begin) * self.dtype.itemsize
        content = os.pread(self._descriptor, size, self.start + begin * self.dtype.itemsize)
        if len(content) != size:
            raise FederationError(f"{self.name}: expected {size} bytes of {self}, found {len(content)}; run again")
        return np.frombuffer(content, self.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype, copy=False)

    def __repr__(self) -> str:
        return f"Stored({self.count} {self.dtype}, at byte {self.start})"


Numbers = np.ndarray | Stored
