"""Features: a frozen encoder's hidden states as examples to train on, in a file that is never in memory whole."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fedsim.data import Batch, asked
from fedsim.stored import Numbers

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


@dataclass(frozen=True)
class FeatureExamples:
    """Examples by their hidden states: what `Examples` is by token ids, batch by batch.

    rows_TKD: of the element type `dtype`, as numpy holds it; they may be in a file. tokens: whether each token of a
    text has its row, or [CLS] alone. offsets: int64 [n + 1], where the rows of each example begin. lengths: tokens of
    each text, int32 or int64 [n]; they decide which texts share a batch.
    """

    rows_TKD: np.ndarray
    dtype: torch.dtype
    tokens: bool
    offsets: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray
    targets: Numbers | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        """Hidden states [K, B, S, D], attention_mask [B, S], labels: S as `Examples` pad it, or 1 for [CLS] alone.

        Copies in torch's own memory: on some CPUs a matrix product has other last bits if its input is not aligned.
        """
        starts, ends = self.offsets[indices], self.offsets[indices + 1]
        padded = (width if self.tokens else None) or int((ends - starts).max())
        _, states, hidden = self.rows_TKD.shape
        features = torch.zeros(states, len(indices), padded, hidden, dtype=self.dtype)
        values_KBSD = (features.view(torch.int16) if self.dtype == torch.bfloat16 else features).numpy()
        for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
            values_KBSD[:, place, : end - start] = self.rows_TKD[start:end].swapaxes(0, 1)
        return {
            "features": features,
            "attention_mask": torch.from_numpy((np.arange(padded) < (ends - starts)[:, None]).astype(np.int64)),
            "labels": torch.from_numpy(asked(self, indices, padded)),
        }


class FeatureStore:
    """What a server keeps of the features that it received: a file without a name, removed with the process."""

    def __init__(self, folder: Path, states: int, hidden: int, tokens: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it lives as long as the store
        self._file.write(bytes(FILE_START))
        self._row = (states, hidden)
        self._tokens = tokens
        self._lengths: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    def add(self, features: Tensor, masks: Tensor | None, labels: Tensor) -> None:
        """Append examples, without padding.

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
        """All added examples in their order; nothing can be added afterwards."""
        lengths = np.concatenate(self._lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        with self._file:
            self._file.flush()
            rows_TKD = np.memmap(self._file, np.float32, "r", FILE_START, (int(offsets[-1]), *self._row))
        return FeatureExamples(rows_TKD, torch.float32, self._tokens, offsets, lengths, np.concatenate(self._labels))
