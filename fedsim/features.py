"""Features: a frozen encoder's hidden states as training examples, computed once and memory-mapped."""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor, nn

from fedsim.data import Batch, Examples, Subset, targets_of
from fedsim.errors import FederationError, plural
from fedsim.models.model import Model
from fedsim.precision import DTYPES
from fedsim.stored import FileCache, Numbers

# Shape suffixes: T tokens in all examples, B batch, S tokens, K hidden states, D hidden width.

# numpy has no bfloat16, so its bits are stored as integers.
NUMPY_DTYPES: dict[torch.dtype, np.dtype] = {
    torch.float32: np.dtype("<f4"),
    torch.bfloat16: np.dtype("<i2"),
    torch.float16: np.dtype("<f2"),
}
LIMIT_BYTES = 20 * 10**9
SUFFIX = ".npy"
SUMMED_BYTES = 256  # parameter bytes that are summed into one number for the digest
FILE_START = 64  # bytes before a store's first row: an empty file cannot be mapped


def to_bytes(rows: Tensor, dtype: torch.dtype) -> bytes:
    """Rows in a file's format; FederationError if a value is too large for half precision."""
    kept = rows.detach().to("cpu", dtype).contiguous()
    if dtype == torch.float16 and not torch.isfinite(kept).all():
        raise FederationError("features: expected values within half precision (below 65 504), found larger ones")
    return kept.view(torch.uint8).numpy().tobytes()


@dataclass(frozen=True)
class FeatureExamples:
    """Examples as hidden states, with the interface of `Examples`.

    Args:
        layers_TD: One array per hidden state, possibly memory-mapped, in numpy's form of `dtype` or in half precision.
        dtype: The element type of batches.
        tokens: Whether every token has a row, or only [CLS].
        offsets: Where each example's rows begin, int64 [n + 1].
        lengths: Tokens per text, int32 or int64 [n]; they decide which texts share a batch.
    """

    layers_TD: Sequence[np.ndarray]
    dtype: torch.dtype
    tokens: bool
    offsets: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray
    targets: Numbers | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        """Features [K, B, S, D], attention_mask [B, S] and labels; S is padded as in `Examples`, or 1 for only [CLS].

        Features are copied to torch's memory: on some CPUs unaligned inputs change a matrix product's last bits.
        """
        starts, ends = self.offsets[indices], self.offsets[indices + 1]
        padded = (width if self.tokens else None) or int((ends - starts).max())
        hidden = self.layers_TD[0].shape[1]
        features = torch.zeros(len(self.layers_TD), len(indices), padded, hidden, dtype=self.dtype)
        values_KBSD = (features.view(torch.int16) if self.dtype == torch.bfloat16 else features).numpy()
        for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
            for values_BSD, rows_TD in zip(values_KBSD, self.layers_TD, strict=True):
                values_BSD[place, : end - start] = rows_TD[start:end]
        return {
            "features": features,
            "attention_mask": torch.from_numpy((np.arange(padded) < (ends - starts)[:, None]).astype(np.int64)),
            "labels": torch.from_numpy(targets_of(self, indices, padded)),
        }


class FeatureStore:
    """The features received by a server, in an unnamed file that disappears with the process."""

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

        features: [K, B, S, D] with masks [B, S], or one row per text without masks; or trimmed: all texts' rows
        concatenated, [K, T, D], with their number per text in masks [B].
        """
        masks = torch.ones(len(labels), 1, dtype=torch.int64) if masks is None else masks
        is_trimmed = features.ndim == 3
        lengths = masks if is_trimmed else masks.sum(1)
        features = features if is_trimmed else features[:, masks.bool()]
        self._file.write(to_bytes(features.swapaxes(0, 1), torch.float32))
        self._lengths.append(lengths.cpu().numpy().astype(np.int64))
        self._labels.append(labels.cpu().numpy())

    def examples(self) -> FeatureExamples:
        """All added examples, in order; nothing can be added afterwards."""
        lengths = np.concatenate(self._lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        with self._file:
            self._file.flush()
            rows_TKD = np.memmap(self._file, np.float32, "r", FILE_START, (int(offsets[-1]), *self._row))
        layers_TD = [rows_TKD[:, state] for state in range(self._row[0])]
        return FeatureExamples(layers_TD, torch.float32, self._tokens, offsets, lengths, np.concatenate(self._labels))


class FeatureCache:
    """A folder of feature arrays [T, D], one per layer, named by a digest of everything that determines their bits.

    encoder: identity of the encoder's configuration; each request also digests its weights. Without a folder a
    temporary one is used. See `FileCache` for interruptions and the limit.
    """

    def __init__(self, folder: Path | None = None, encoder: str = "", limit_bytes: int = LIMIT_BYTES) -> None:
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="features-")  # removed with the cache
            folder = Path(self._temporary.name)
        self.folder = folder
        self.encoder = encoder
        self.limit_bytes = limit_bytes
        # id of the examples -> the examples, the last request's key, and its features.
        self._last: dict[int, tuple[Examples, tuple[Any, ...], FeatureExamples]] = {}

    def subset(self, model: Model, subset: Subset, batch_size: int, width: int | None, half: bool = False) -> Subset:
        """The same subset as features, computed with the encoder's current weights.

        half: store fp32 features in half precision, which rounds them; bf16 features stay unchanged.

        The encoder reads texts of equal length together, `batch_size` at a time, without padding; with `width`, all
        texts are padded to it. The same examples, encoder, batch size and width give bitwise equal features on the same
        kind of machine with the same number of threads. Outputs in another batch agree up to rounding (1e-5 in fp32),
        because a CPU computes matrix products differently for another number of rows.
        """
        examples, head = subset.examples, model.network.head
        if not isinstance(examples, Examples):
            raise TypeError(f"expected examples of token ids, found {type(examples).__name__}")
        weights = digest_of(model.network.encoder)
        key = (weights, batch_size, width, half, head.states, head.tokens, model.precision.name)
        _, last_key, features = self._last.get(id(examples), (None, None, None))
        if features is None or last_key != key:
            features = self._features(model, examples, batch_size, width, half, weights)
            self._last[id(examples)] = examples, key, features
        return Subset(features, subset.indices)

    def store(self, model: Model) -> FeatureStore:
        """A new store for features that a server receives, on the same disk."""
        head = model.network.head
        return FeatureStore(self.folder, head.states, model.hidden, head.tokens)

    def _features(
        self, model: Model, examples: Examples, batch_size: int, width: int | None, half: bool, weights: str
    ) -> FeatureExamples:
        head, dtype = model.network.head, DTYPES[model.precision.name]
        stored = torch.float16 if half and dtype == torch.float32 else dtype
        kept = examples.lengths if head.tokens else np.ones(len(examples), dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(kept)])
        shape = (int(offsets[-1]), model.hidden)
        row_bytes = model.hidden * stored.itemsize
        size = shape[0] * row_bytes * head.states
        if size > self.limit_bytes:
            raise FederationError(
                f"features: expected at most {self.limit_bytes / 1e9:.2f} GB, the limit of the cache in {self.folder}, "
                f"found {size / 1e9:.2f} GB for {plural(len(examples), 'example')}; recompute them in every epoch "
                "(options.cached=false)"
            )

        digest = self._digest(model, examples, batch_size, width, stored, weights)
        names = [f"{digest}-{state}" for state in range(head.states)]  # the last layer first, as heads read them

        def write(files: Mapping[str, IO[bytes]]) -> None:
            header = {"descr": NUMPY_DTYPES[stored].str, "fortran_order": False, "shape": shape}
            for file in files.values():
                np.lib.format.write_array_header_1_0(file, header)
            starts = {name: file.tell() for name, file in files.items()}
            for indices, features in _computed(model, examples, batch_size, width):
                for state, name in enumerate(names):
                    if name in files:
                        file = files[name]
                        for index, rows in zip(indices, features[state], strict=True):
                            file.seek(starts[name] + int(offsets[index]) * row_bytes)
                            file.write(to_bytes(rows[: kept[index]], stored))

        layers_TD = []
        for file in FileCache(self.folder, SUFFIX, self.limit_bytes).open_all(names, write):
            start = len(file) - shape[0] * row_bytes
            layers_TD.append(np.frombuffer(file, NUMPY_DTYPES[stored], offset=start).reshape(shape))
        return FeatureExamples(
            layers_TD, dtype, head.tokens, offsets, examples.lengths, examples.labels, examples.targets
        )

    def _digest(
        self,
        model: Model,
        examples: Examples,
        batch_size: int,
        width: int | None,
        stored: torch.dtype,
        weights: str,
    ) -> str:
        """A digest of everything that determines the features."""
        device, head = model.device, model.network.head
        content = {
            "encoder": self.encoder,
            "weights": weights,
            "examples": _digest(examples),
            "hidden": model.hidden,
            "tokens": head.tokens,
            "stored": str(stored),
            "batch_size": batch_size,
            "width": width,
            "precision": model.precision.name,
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "transformers": metadata.version("transformers"),
        }
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]


def _computed(
    model: Model, examples: Examples, batch_size: int, width: int | None
) -> Iterator[tuple[np.ndarray, Tensor]]:
    """Yield all examples in batches: indices, and features [K, B, S, D]."""
    model.network.eval()
    order = np.argsort(examples.lengths, kind="stable")
    lengths = examples.lengths[order]
    groups = [order] if width else np.split(order, np.flatnonzero(np.diff(lengths)) + 1)
    for group in groups:
        for start in range(0, len(group), batch_size):
            indices = group[start : start + batch_size]
            with torch.inference_mode():
                features = model.features(examples.collate(indices, width))
            yield indices, features


def _digest(examples: Examples) -> str:
    state, step = hashlib.sha256(), 2**20
    for values in (examples.tokens, examples.types, examples.offsets):
        for start in range(0, len(values), step):
            state.update(np.ascontiguousarray(values[start : start + step]).data)
    return state.hexdigest()


def digest_of(encoder: nn.Module) -> str:
    """A digest of an encoder's current tensors, cheap enough for every round.

    It hashes sums of neighbouring 64-bit integers, modulo 2^64, which is much faster than hashing all bytes. torch's
    version counter would miss changes by fused optimisers.
    """
    state = hashlib.sha256()
    for name, tensor in chain(encoder.named_parameters(), encoder.named_buffers()):
        bits = tensor.detach().contiguous().view(-1).view(torch.uint8)
        if len(bits) % SUMMED_BYTES == 0:
            bits = bits.view(torch.int64).view(-1, SUMMED_BYTES // 8).sum(1)
        state.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        state.update(bits.cpu().numpy().data)
    return state.hexdigest()


@cache
def _processor() -> str:
    """The CPU's model and the instruction set that torch uses, both of which affect the last bits."""
    model = platform.processor() or platform.machine()
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), model)
    return f"{model}, {torch.backends.cpu.get_cpu_capability()}"
