"""The cache of features: the frozen encoder sees each example once, whatever trains on it afterwards."""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor, nn

from fedsim.data import Examples, Subset
from fedsim.errors import FederationError
from fedsim.features import NUMPY_DTYPES, FeatureExamples, FeatureStore, to_bytes
from fedsim.models.model import Model
from fedsim.precision import DTYPES
from fedsim.stored import FileCache

LIMIT_BYTES = 20 * 10**9
SUFFIX = ".npy"
SUMMED_BYTES = 256  # of parameters, for one number of their digest


class FeatureCache:
    """A folder of arrays [T, K, D], each named by the digest of all that decides it, the last bits too.

    encoder: identity of the encoder's configuration; its weights are digested as they are when features are asked for.
    Without a folder it uses a temporary one. See `FileCache` for kills and the limit.
    """

    def __init__(self, folder: Path | None = None, encoder: str = "", limit_bytes: int = LIMIT_BYTES) -> None:
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="features-")  # removed with the cache
            folder = Path(self._temporary.name)
        self.folder = folder
        self.encoder = encoder
        self.limit_bytes = limit_bytes
        # The examples' id, while they are held here -> what was last asked for, and its answer.
        self._last: dict[int, tuple[Examples, tuple[Any, ...], FeatureExamples]] = {}

    def subset(self, model: Model, subset: Subset, batch_size: int, width: int | None) -> Subset:
        """The same subset by the features of the encoder as it now is.

        Texts of one length go through the encoder together, `batch_size` at a time without padding; with `width`, all
        padded to that. Features of the same examples, encoder, batch size and width are equal to the bit on the same
        kind of machine with as many threads. To the encoder's outputs in another batch they are equal to rounding (1e-5
        in fp32), since the number of rows decides how a CPU computes a matrix product.
        """
        examples, head = subset.examples, model.network.head
        if not isinstance(examples, Examples):
            raise TypeError(f"expected examples of token ids, found {type(examples).__name__}")
        weights = digest_of(model.network.encoder)
        asked = (weights, batch_size, width, head.states, head.tokens, model.precision.name)
        _, known, features = self._last.get(id(examples), (None, None, None))
        if features is None or known != asked:
            features = self._features(model, examples, batch_size, width, weights)
            self._last[id(examples)] = examples, asked, features
        return Subset(features, subset.indices)

    def store(self, model: Model) -> FeatureStore:
        """A new store for features that a server receives, on the same disk."""
        head = model.network.head
        return FeatureStore(self.folder, head.states, model.hidden, head.tokens)

    def _features(
        self, model: Model, examples: Examples, batch_size: int, width: int | None, weights: str
    ) -> FeatureExamples:
        head, dtype = model.network.head, DTYPES[model.precision.name]
        kept = examples.lengths if head.tokens else np.ones(len(examples), dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(kept)])
        shape = (int(offsets[-1]), head.states, model.hidden)
        row_bytes = head.states * model.hidden * dtype.itemsize
        if shape[0] * row_bytes > self.limit_bytes:
            raise FederationError(
                f"features of {len(examples)} examples take {shape[0] * row_bytes / 1e9:.2f} GB, the cache in "
                f"{self.folder} holds at most {self.limit_bytes / 1e9:.2f} GB: compute them anew in every epoch "
                "(options.cached=false)"
            )

        def write(file: IO[bytes]) -> None:
            header = {"descr": NUMPY_DTYPES[dtype].str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            start = file.tell()
            for indices, features in _computed(model, examples, batch_size, width):
                for index, rows in zip(indices, features, strict=True):
                    file.seek(start + int(offsets[index]) * row_bytes)
                    file.write(to_bytes(rows[: kept[index]], dtype))

        key = self._key(model, examples, batch_size, width, weights)
        buffer = FileCache(self.folder, SUFFIX, self.limit_bytes).open(key, write).buffer
        raw = np.frombuffer(buffer, NUMPY_DTYPES[dtype], offset=len(buffer) - shape[0] * row_bytes)
        return FeatureExamples(
            raw.reshape(shape), dtype, head.tokens, offsets, examples.lengths, examples.labels, examples.targets
        )

    def _key(self, model: Model, examples: Examples, batch_size: int, width: int | None, weights: str) -> str:
        """A digest of all that decides the features."""
        device, head = model.device, model.network.head
        content = {
            "encoder": self.encoder,
            "weights": weights,
            "examples": _digest(examples),
            "states": head.states,
            "hidden": model.hidden,
            "tokens": head.tokens,
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
    """All examples in batches: their indices, and the features [B, S, K, D] of each."""
    model.network.eval()
    order = np.argsort(examples.lengths, kind="stable")
    lengths = examples.lengths[order]
    groups = [order] if width else np.split(order, np.flatnonzero(np.diff(lengths)) + 1)
    for group in groups:
        for start in range(0, len(group), batch_size):
            indices = group[start : start + batch_size]
            with torch.inference_mode():
                features = model.features(examples.collate(indices, width))
            yield indices, features.permute(1, 2, 0, 3)


def _digest(examples: Examples) -> str:
    state, step = hashlib.sha256(), 2**20
    for values in (examples.tokens, examples.types, examples.offsets):
        for start in range(0, len(values), step):
            state.update(np.ascontiguousarray(values[start : start + step]).data)
    return state.hexdigest()


def digest_of(encoder: nn.Module) -> str:
    """A digest of an encoder's tensors as they now are, cheap enough for every round.

    It hashes sums of the bits of a few neighbours, modulo 2^64, in a fraction of the time of hashing all. torch counts
    changes to a tensor, but not those by fused optimisers.
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
    """The kind of CPU, which decides the last bits: its model, and the instructions that torch uses."""
    model = platform.processor() or platform.machine()
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), model)
    return f"{model}, {torch.backends.cpu.get_cpu_capability()}"
