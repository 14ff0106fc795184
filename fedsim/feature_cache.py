"""The cache of features: the frozen encoder sees each example once, whatever trains on it afterwards."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import tempfile
import time
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
from fedsim.features import CHECKSUM, FeatureExamples, FeatureStore, Layout, Rows
from fedsim.files import FileError, MissingFileError, open_file
from fedsim.leases import TakenError, held
from fedsim.models.model import Model
from fedsim.precision import DTYPES

logger = logging.getLogger(__name__)
LIMIT_BYTES = 20 * 10**9
HEADER_BYTES = 4096  # says in JSON what the file holds; the rows behind it begin on a page
WHOLE, PARTIAL = ".features", ".partial"
POLL_SECONDS = 1.0
DIGESTED_AT_ONCE = 2**20  # tokens
SUMMED_BYTES = 256  # of parameters, for one number of their digest


class FeatureCache:
    """A folder of feature files, each named by the digest of all that decides it; the least recently used go first.

    A file gets its name when it is whole and on the disk, so neither a kill nor a power cut leaves anything that is
    taken for one; each example's features have a checksum, and a damaged file is computed anew. A lease a file keeps
    processes from computing it twice. The limit holds for the files in the folder, with those being written; one that
    a running cell still reads keeps its space until that cell ends.

    encoder: identity of the encoder's configuration; its weights are digested as they are when features are asked for.
    Without a folder: a temporary one.
    """

    def __init__(self, folder: Path | None = None, encoder: str = "", limit_bytes: int = LIMIT_BYTES) -> None:
        self._folder = folder
        self.encoder = encoder
        self.limit_bytes = limit_bytes
        # By the examples' id, while they live here: what was asked for last, and its answer.
        self._known: dict[int, tuple[Examples, tuple[Any, ...], FeatureExamples]] = {}

    @property
    def folder(self) -> Path:
        """Where the files are."""
        if self._folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="features-")  # removed with the cache
            self._folder = Path(self._temporary.name)
        return self._folder

    def subset(self, model: Model, subset: Subset, batch_size: int, width: int | None) -> Subset:
        """The same subset by the features of the encoder as it now is.

        Texts of one length go through the encoder side by side, without padding; or, with `width`, all padded to that,
        `batch_size` at a time. Equal to the bit, in whatever batch they are read: features of the same examples,
        encoder, batch size and width, computed again on the same kind of machine with as many threads. Equal to
        rounding (1e-5 in fp32): what the encoder makes of an example in another batch, since the number of rows decides
        how a CPU takes a matrix product.
        """
        examples, head = subset.examples, model.network.head
        if not isinstance(examples, Examples):
            raise TypeError(f"expected examples of token ids, found {type(examples).__name__}")
        weights = digest_of(model.network.encoder)
        asked = (weights, batch_size, width, head.states, head.tokens, model.precision.name)
        _, known, features = self._known.get(id(examples), (None, None, None))
        if features is None or known != asked:
            features = self._features(model, examples, batch_size, width, weights)
            self._known[id(examples)] = examples, asked, features
        return Subset(features, subset.indices)

    def store(self, model: Model) -> FeatureStore:
        """A new store for features that a server receives, on the same disk."""
        head = model.network.head
        return FeatureStore(self.folder, head.states, model.hidden, head.tokens)

    def _features(
        self, model: Model, examples: Examples, batch_size: int, width: int | None, weights: str
    ) -> FeatureExamples:
        head = model.network.head
        kept = examples.lengths if head.tokens else np.ones(len(examples), dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(kept)])
        dtype = DTYPES[model.precision.name]
        layout = Layout(int(offsets[-1]), head.states, model.hidden, dtype, HEADER_BYTES, blocks=len(examples))
        if layout.file_bytes > self.limit_bytes:
            raise FederationError(
                f"features of {len(examples)} examples take {layout.file_bytes / 1e9:.2f} GB, the cache in "
                f"{self.folder} holds at most {self.limit_bytes / 1e9:.2f} GB: compute them anew in every epoch "
                "(options.cached=false)"
            )
        header = self._header(model, examples, batch_size, width, layout, weights)
        name = hashlib.sha256(header).hexdigest()[:24]
        self.folder.mkdir(parents=True, exist_ok=True)
        with held(self.folder / f"{name}.lock"):
            path = self.folder / f"{name}{WHOLE}"
            file = _open_whole(path, header, layout, kept)
            if file is None:
                checksums = np.zeros(len(examples), CHECKSUM)
                with self._reserved(name, layout.file_bytes) as partial:
                    partial.write(header)
                    for indices, features in _computed(model, examples, batch_size, width):
                        for index, rows in zip(indices, features, strict=True):
                            checksums[index] = layout.write(partial, int(offsets[index]), rows[: kept[index]])
                    partial.seek(layout.end)
                    partial.write(checksums.tobytes())
                    partial.flush()
                    os.fsync(partial.fileno())
                (self.folder / f"{name}{PARTIAL}").replace(path)
                _sync_folder(self.folder)
                file = path.open("rb")
            with file:
                os.utime(path)
                rows = Rows(file, layout)
        return FeatureExamples(rows, head.tokens, offsets, examples.lengths, examples.labels, examples.targets)

    def _header(
        self, model: Model, examples: Examples, batch_size: int, width: int | None, layout: Layout, weights: str
    ) -> bytes:
        """All that decides the file's content, the last bits too."""
        device = model.device
        content = {
            "checksums": "crc32 of each example",
            "encoder": self.encoder,
            "weights": weights,
            "examples": _digest(examples),
            "rows": layout.rows,
            "states": layout.states,
            "hidden": layout.hidden,
            "tokens": model.network.head.tokens,
            "batch_size": batch_size,
            "width": width,
            "dtype": str(layout.dtype),
            "precision": model.precision.name,
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "transformers": metadata.version("transformers"),
        }
        return json.dumps(content).encode().ljust(HEADER_BYTES)

    def _reserved(self, name: str, size: int) -> IO[bytes]:
        """A new file of that size, once there is room for it: used ones go, those being written are waited for."""
        while True:
            with held(self.folder / "room.lock"):
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
        """Remove what a killed process left half written; who still writes it holds its lease."""
        if path.stem == own:
            path.unlink()
            return
        with suppress(TakenError), held(self.folder / f"{path.stem}.lock", wait=False):
            path.unlink(missing_ok=True)


def _open_whole(path: Path, header: bytes, layout: Layout, lengths: np.ndarray) -> IO[bytes] | None:
    """The file, if it holds what its header has to say and each example's rows, so many, have their checksum."""
    try:
        file = open_file(path, "features")
    except MissingFileError:
        return None
    except FileError as error:
        if path.is_dir():  # no file can take its place
            raise
        logger.warning("features cannot be read (%s): they are computed anew", error)
        return None
    found = os.fstat(file.fileno()).st_size
    if file.read(HEADER_BYTES) != header:
        damage = "its header is another's"
    elif found != layout.file_bytes:
        damage = f"expected {layout.file_bytes} bytes, found {found}"
    elif (example := layout.damaged_block(file, lengths)) is not None:
        damage = f"the features of example {example} do not have their checksum"
    else:
        return file
    file.close()
    logger.warning("features in %s are damaged (%s): they are computed anew", path, damage)
    return None


def _sync_folder(folder: Path) -> None:
    """Bring a folder's names to the disk: a file that is there may else have no name after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
    state = hashlib.sha256()
    for values in (examples.tokens, examples.types, examples.offsets):
        for start in range(0, len(values), DIGESTED_AT_ONCE):
            state.update(np.ascontiguousarray(values[start : start + DIGESTED_AT_ONCE]).data)
    return state.hexdigest()


def digest_of(encoder: nn.Module) -> str:
    """A digest of an encoder's tensors as they now are, cheap enough to be asked for in every round.

    Hashed are sums of the bits of a few neighbours, modulo 2^64, which takes a fraction of the time of hashing all.
    torch's counts of changes to a tensor would not do: fused optimisers do not raise them.
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
