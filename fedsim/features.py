"""Features: a frozen encoder's hidden states as examples to train on, in a file that is never in memory whole."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fedsim.data import Batch, asked
from fedsim.stored import MappedFile, Numbers

# Shape suffixes: T tokens of all examples, B batch, S tokens, K hidden states, D hidden width.

# How numpy holds values: it has no bfloat16, so those are moved as bits.
NUMPY_DTYPES: dict[torch.dtype, np.dtype] = {
    torch.float32: np.dtype("<f4"),
    torch.bfloat16: np.dtype("<i2"),
    torch.float16: np.dtype("<f2"),
}
FILE_START = 64  # bytes before a store's first row: an empty file cannot be mapped


def to_bytes(features_TKD: Tensor, dtype: torch.dtype) -> bytes:
    """Rows as a file holds them."""
    return features_TKD.detach().to("cpu", dtype).contiguous().view(torch.uint8).numpy().tobytes()


class Rows:
    """The rows [T, K, D] of a mapped file, up to its end."""

    def __init__(self, file: MappedFile, shape: tuple[int, int, int], dtype: torch.dtype) -> None:
        self.file = file
        self.dtype = dtype
        raw = NUMPY_DTYPES[dtype]
        start = len(file.buffer) - int(np.prod(shape)) * raw.itemsize
        self.values_TKD = np.frombuffer(file.buffer, raw, offset=start).reshape(shape)

    def gather(self, starts: np.ndarray, lengths: np.ndarray, width: int) -> Tensor:
        """Runs of rows as one batch [K, B, width, D], zeros behind each.

        A copy in torch's own memory: on some CPUs a matrix product has other last bits where its input is not aligned.
        """
        _, states, hidden = self.values_TKD.shape
        batch = torch.zeros(states, len(starts), width, hidden, dtype=self.dtype)
        values_KBSD = (batch.view(torch.int16) if self.dtype == torch.bfloat16 else batch).numpy()
        for place, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            values_KBSD[:, place, :length] = self.values_TKD[start : start + length].swapaxes(0, 1)
        self.file.has_read(int(lengths.sum()) * states * hidden * self.dtype.itemsize)
        return batch


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
        self._file.write(bytes(FILE_START))
        self._row = (states, hidden)
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
        self._file.write(to_bytes(features.swapaxes(0, 1), torch.float32))
        self._lengths.append(lengths.cpu().numpy().astype(np.int64))
        self._labels.append(labels.cpu().numpy())

    def examples(self) -> FeatureExamples:
        """All that was added, in its order; nothing is added afterwards."""
        lengths = np.concatenate(self._lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        with self._file:
            self._file.flush()
            rows = Rows(MappedFile(self._file), (int(offsets[-1]), *self._row), torch.float32)
        return FeatureExamples(rows, self._tokens, offsets, lengths, np.concatenate(self._labels))
