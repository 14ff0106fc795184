"""Features: a frozen encoder's hidden states as examples to train on, in a file that is never in memory whole."""

from __future__ import annotations

import mmap
import tempfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from fedsim.data import Batch, asked
from fedsim.stored import Numbers

# Shape suffixes: T tokens of all examples, B batch, S tokens, K hidden states, D hidden width.

CHECKSUM = np.dtype("<u4")  # a CRC-32
BITS = {2: torch.int16, 4: torch.int32}  # by bytes of a value: numpy knows no bfloat16, so bits are moved
FORGET_AFTER_BYTES = 2**26  # of rows read: then the pages behind them are given back


@dataclass(frozen=True)
class Layout:
    """Where rows lie in a file: behind `start` bytes, `rows` of them, each [K, D] values of one type.

    blocks: how many checksums, each of a run of rows, follow behind them.
    """

    rows: int
    states: int
    hidden: int
    dtype: torch.dtype
    start: int = 0
    blocks: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.states * self.hidden * self.dtype.itemsize

    @property
    def end(self) -> int:
        """Bytes up to the end of the last row, where checksums begin."""
        return self.start + self.rows * self.row_bytes

    @property
    def file_bytes(self) -> int:
        """Bytes of the whole file."""
        return self.end + self.blocks * CHECKSUM.itemsize

    def write(self, file: IO[bytes], row: int, values: Tensor) -> int:
        """Write consecutive rows [T, K, D] from the given one on; returns their CRC-32."""
        content = values.detach().to("cpu", self.dtype).contiguous().view(torch.uint8).numpy().tobytes()
        file.seek(self.start + row * self.row_bytes)
        file.write(content)
        return zlib.crc32(content)

    def damaged_block(self, file: IO[bytes], lengths: np.ndarray) -> int | None:
        """The first block of consecutive rows, so many in each, that lacks its checksum; None where all are whole.

        One block at a time is in memory.
        """
        file.seek(self.end)
        expected = np.frombuffer(file.read(self.blocks * CHECKSUM.itemsize), CHECKSUM).tolist()
        file.seek(self.start)
        for block, (length, checksum) in enumerate(zip(lengths.tolist(), expected, strict=True)):
            if zlib.crc32(file.read(length * self.row_bytes)) != checksum:
                return block
        return None


class Rows:
    """A file's rows, mapped read-only; it stays readable when its name is removed."""

    def __init__(self, file: IO[bytes], layout: Layout) -> None:
        self.layout = layout
        raw = np.dtype(f"i{layout.dtype.itemsize}")
        self._read_bytes = 0
        shape = (layout.rows, layout.states, layout.hidden)
        if layout.rows == 0:
            self._map, self._values = None, np.empty(shape, raw)
            return
        self._map = mmap.mmap(file.fileno(), layout.end, access=mmap.ACCESS_READ)
        self._values = np.frombuffer(self._map, raw, offset=layout.start).reshape(shape)

    def gather(self, starts: np.ndarray, lengths: np.ndarray, width: int) -> Tensor:
        """Runs of rows as one batch [K, B, width, D], zeros behind each.

        A copy in torch's own memory: on some CPUs a matrix product has other last bits where its input is not aligned.
        """
        gathered = torch.zeros(self.layout.states, len(starts), width, self.layout.hidden, dtype=self.layout.dtype)
        bits = gathered.view(BITS[self.layout.dtype.itemsize]).numpy()
        for place, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            bits[:, place, :length] = self._values[start : start + length].swapaxes(0, 1)
        self._forget(int(lengths.sum()) * self.layout.row_bytes)
        return gathered

    def _forget(self, read_bytes: int) -> None:
        """Give pages back from time to time, or resident memory would grow to the size of the file."""
        self._read_bytes += read_bytes
        if self._map is not None and self._read_bytes > FORGET_AFTER_BYTES and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
            self._read_bytes = 0


@dataclass(frozen=True)
class FeatureExamples:
    """Examples by their hidden states: what `Examples` is by token ids, batch by batch.

    tokens: whether each token of a text has its row, or [CLS] alone. offsets: int64 [n + 1], where the rows of each
    example begin. lengths: tokens of each text, int32 or int64 [n]; they decide who meets whom in a batch.
    """

    rows: Rows
    tokens: bool
    offsets: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray
    targets: Numbers | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        """Hidden states [K, B, S, D], attention_mask [B, S], labels: S as `Examples` pad it, or 1 for [CLS] alone."""
        starts = self.offsets[indices]
        kept = self.offsets[indices + 1] - starts
        padded = (width if self.tokens else None) or int(kept.max())
        return {
            "features": self.rows.gather(starts, kept, padded),
            "attention_mask": torch.from_numpy((np.arange(padded) < kept[:, None]).astype(np.int64)),
            "labels": torch.from_numpy(asked(self, indices, padded)),
        }


class FeatureStore:
    """What a server keeps of the features it received: a file without a name, gone with the process."""

    def __init__(self, folder: Path, states: int, hidden: int, tokens: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it lives as long as the store
        self._layout = Layout(0, states, hidden, torch.float32)
        self._tokens = tokens
        self._lengths: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    def add(self, features: Tensor, masks: Tensor | None, labels: Tensor) -> None:
        """Append examples; of padding nothing is kept.

        features: [K, B, S, D] with masks [B, S], or one row a text without masks; or trimmed, the rows of all texts end
        to end [K, T, D] with masks [B], how many belong to each.
        """
        lengths = torch.ones(len(labels), dtype=torch.int64) if masks is None else masks
        if features.ndim == 4:
            padded = lengths[:, None] if masks is None else lengths
            features, lengths = features[:, padded.bool()], padded.sum(1)
        self._layout.write(self._file, self._layout.rows, features.swapaxes(0, 1))
        self._layout = replace(self._layout, rows=self._layout.rows + features.shape[1])
        self._lengths.append(lengths.cpu().numpy().astype(np.int64))
        self._labels.append(labels.cpu().numpy())

    def examples(self) -> FeatureExamples:
        """All that was added, in its order; nothing is added afterwards."""
        with self._file:
            self._file.flush()
            rows = Rows(self._file, self._layout)
        lengths = np.concatenate(self._lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return FeatureExamples(rows, self._tokens, offsets, lengths, np.concatenate(self._labels))
