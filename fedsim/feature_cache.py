"""The cache of features: the frozen encoder sees each example once, whatever trains on it afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import IO

import numpy as np
import torch
from filelock import FileLock, Timeout
from torch import Tensor

from fedsim.data import Examples, Part
from fedsim.errors import FederationError
from fedsim.features import FeatureExamples, FeatureStore, Layout, Rows
from fedsim.models.resident import Resident
from fedsim.precision import DTYPES

LIMIT_BYTES = 20 * 10**9
HEADER_BYTES = 4096  # says in JSON what the file holds; the rows behind it begin on a page
WHOLE, PARTIAL = ".features", ".partial"
POLL_SECONDS = 1.0


class FeatureCache:
    """A folder of feature files, each named by the digest of all that decides it; the least recently used go first.

    A file gets its name when it is whole, so a kill leaves nothing that is taken for one; a lock a file keeps
    processes from computing it twice. The limit holds for the files in the folder, with those being written; one that
    a running cell still reads keeps its space until that cell ends.

    encoder: identity of the encoder's weights and configuration. Without a folder: a temporary one.
    """

    def __init__(self, folder: Path | None = None, encoder: str = "", limit_bytes: int = LIMIT_BYTES) -> None:
        self._folder = folder
        self.encoder = encoder
        self.limit_bytes = limit_bytes
        self._known: dict[int, tuple[Examples, FeatureExamples]] = {}  # by the examples' id, while they live here

    @property
    def folder(self) -> Path:
        """Where the files are."""
        if self._folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="features-")  # removed with the cache
            self._folder = Path(self._temporary.name)
        return self._folder

    def part(self, model: Resident, part: Part, batch_size: int, width: int | None) -> Part:
        """The same part by its features.

        Each example's features are its own: the encoder runs on texts of one length side by side, without padding; or,
        with `width`, all padded to that. What it computes in batches of the same width is therefore equal to the bit
        (in fp32), and in batches padded otherwise to rounding (1e-6).
        """
        examples = part.examples
        if not isinstance(examples, Examples):
            raise TypeError(f"expected examples of token ids, found {type(examples).__name__}")
        if id(examples) not in self._known:
            self._known[id(examples)] = examples, self._features(model, examples, batch_size, width)
        return Part(self._known[id(examples)][1], part.indices)

    def store(self, model: Resident) -> FeatureStore:
        """A new store for features that a server receives, on the same disk."""
        head = model.model.head
        return FeatureStore(self.folder, head.states, model.hidden, head.tokens)

    def _features(self, model: Resident, examples: Examples, batch_size: int, width: int | None) -> FeatureExamples:
        head = model.model.head
        kept = examples.lengths if head.tokens else np.ones(len(examples), dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(kept)])
        dtype = DTYPES[model.precision.name]
        layout = Layout(int(offsets[-1]), head.states, model.hidden, dtype, HEADER_BYTES)
        if layout.file_bytes > self.limit_bytes:
            raise FederationError(
                f"features of {len(examples)} examples take {layout.file_bytes / 1e9:.2f} GB, the cache in "
                f"{self.folder} holds at most {self.limit_bytes / 1e9:.2f} GB: compute them anew in every epoch "
                "(options.cached=false)"
            )
        header = self._header(model, examples, width, layout)
        name = hashlib.sha256(header).hexdigest()[:24]
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / f"{name}.lock"):
            path = self.folder / f"{name}{WHOLE}"
            file = _open_whole(path, header, layout)
            if file is None:
                with self._reserved(name, layout.file_bytes) as partial:
                    partial.write(header)
                    for indices, features in _computed(model, examples, batch_size, width):
                        for index, rows in zip(indices, features, strict=True):
                            layout.write(partial, int(offsets[index]), rows[: kept[index]])
                    partial.flush()
                    os.fsync(partial.fileno())
                (self.folder / f"{name}{PARTIAL}").replace(path)
                file = path.open("rb")
            with file:
                os.utime(path)
                rows = Rows(file, layout)
        return FeatureExamples(rows, head.tokens, offsets, examples.lengths, examples.labels, examples.targets)

    def _header(self, model: Resident, examples: Examples, width: int | None, layout: Layout) -> bytes:
        """All that decides the file's content, the last bits too."""
        device = model.device
        content = {
            "encoder": self.encoder,
            "examples": _digest(examples),
            "rows": layout.rows,
            "states": layout.states,
            "hidden": layout.hidden,
            "tokens": model.model.head.tokens,
            "width": width,
            "dtype": str(layout.dtype),
            "precision": model.precision.name,
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "transformers": metadata.version("transformers"),
        }
        return json.dumps(content).encode().ljust(HEADER_BYTES)

    def _reserved(self, name: str, size: int) -> IO[bytes]:
        """A new file of that size, once there is room for it: used ones go, those being written are waited for."""
        while True:
            with FileLock(self.folder / "room.lock"):
                for path in self.folder.glob(f"*{PARTIAL}"):
                    self._remove_abandoned(path, name)
                files = sorted(self.folder.glob(f"*{WHOLE}"), key=lambda path: path.stat().st_mtime_ns)
                taken = sum(path.stat().st_size for path in (*files, *self.folder.glob(f"*{PARTIAL}")))
                for path in files:
                    if taken + size > self.limit_bytes:
                        taken -= path.stat().st_size
                        path.unlink()
                if taken + size <= self.limit_bytes:
                    file = (self.folder / f"{name}{PARTIAL}").open("w+b")
                    file.truncate(size)
                    return file
            time.sleep(POLL_SECONDS)

    def _remove_abandoned(self, path: Path, own: str) -> None:
        """Remove what a killed process left half written; who still writes it holds its lock."""
        if path.stem == own:
            path.unlink()
            return
        with suppress(Timeout), FileLock(self.folder / f"{path.stem}.lock", timeout=0):
            path.unlink(missing_ok=True)


def _open_whole(path: Path, header: bytes, layout: Layout) -> IO[bytes] | None:
    """The file, if it holds what its header has to say and nothing was cut off."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    if file.read(HEADER_BYTES) == header and os.fstat(file.fileno()).st_size == layout.file_bytes:
        return file
    file.close()
    return None


def _computed(
    model: Resident, examples: Examples, batch_size: int, width: int | None
) -> Iterator[tuple[np.ndarray, Tensor]]:
    """All examples in batches: their indices, and the features [B, S, K, D] of each."""
    model.model.eval()
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
    state = hashlib.sha256()
    for values in (examples.tokens, examples.types, examples.offsets):
        state.update(np.ascontiguousarray(values).data)
    return state.hexdigest()
