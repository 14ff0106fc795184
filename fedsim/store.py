"""Tensor files, and the store for tensors that stay with each client."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from fedsim.errors import CheckpointError
from fedsim.files import FileError, read_file
from fedsim.plan import ClientId

Params = dict[str, Tensor]


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Create a file's folder for a `with` block that writes the file; failures become CheckpointErrors that name it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"checkpoint file {path} cannot be written ({reason})") from None


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write tensors to a safetensors file and sync it to disk; returns the content's SHA-256.

    The library writes them from their memory without a copy. Raises CheckpointError on failure.
    """
    with writing(path):
        safetensors.torch.save_file({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, path)
        with path.open("rb+") as file:
            os.fsync(file.fileno())
            return hashlib.file_digest(file, "sha256").hexdigest()


def read_tensors(path: Path, sha256: str) -> Params:
    """Read tensors back; raises CheckpointError if the file is missing or does not have this SHA-256."""
    try:
        content = read_file(path)
        actual = hashlib.sha256(content).hexdigest()
        if actual != sha256:
            raise ValueError(f"expected the SHA-256 {sha256[:12]}…, found {actual[:12]}…")
        return safetensors.torch.load(content)
    except (FileError, SafetensorError, KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint file {path} is damaged ({error}). Remove the folder {path.parent} to start this cell from "
            f"its first round; finished cells are not touched."
        ) from None


class ClientStore:
    """The tensors that stay with each client between rounds, in memory or, for many clients, on disk.

    On disk each version is a separate file, so that the last checkpoint stays complete while a round runs.
    """

    def __init__(self, folder: Path | None = None, in_memory: bool = True, prefix: str = "client") -> None:
        """prefix: begins its file names; stores in one folder need different prefixes."""
        if folder is None and not in_memory:
            raise ValueError("a store on disk needs a folder")
        self.folder = folder or Path()
        self.in_memory = in_memory
        self._prefix = prefix
        self._tensors: dict[ClientId, Params] = {}
        self._files: dict[ClientId, tuple[str, str]] = {}  # client -> (file name, SHA-256)

    def with_prefix(self, prefix: str) -> ClientStore:
        """A second store for the same clients, kept in the same way."""
        return type(self)(self.folder, self.in_memory, prefix)

    def get(self, client: ClientId) -> Params:
        """The client's tensors; empty before it first takes part."""
        if client not in self._tensors and client in self._files:
            name, sha256 = self._files[client]
            return read_tensors(self.folder / name, sha256)
        return self._tensors.get(client, {})

    def put(self, client: ClientId, round: int, tensors: Mapping[str, Tensor]) -> None:
        """Keep a client's tensors after `round`."""
        if tensors and self.in_memory:
            self._files.pop(client, None)
            self._tensors[client] = {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
        elif tensors:
            self._write(client, round, tensors)

    def flush(self, round: int) -> dict[str, tuple[str, str]]:
        """Write every client's tensors to disk; returns client -> (file name, SHA-256) for the checkpoint."""
        for client in self._tensors.keys() - self._files.keys():
            self._write(client, round, self._tensors[client])
        return {str(client): self._files[client] for client in sorted(self._files)}

    def restore(self, files: Mapping[str, tuple[str, str]]) -> None:
        """Restore the clients' tensors from a checkpoint, each file checked by its SHA-256."""
        self._files = {int(client): (name, sha256) for client, (name, sha256) in files.items()}
        self._tensors = {}
        tensors = {client: self.get(client) for client in self._files}
        if self.in_memory:
            self._tensors = tensors

    def __iter__(self) -> Iterator[ClientId]:
        return iter(sorted({*self._tensors, *self._files}))

    def _write(self, client: ClientId, round: int, tensors: Mapping[str, Tensor]) -> None:
        name = f"{self._prefix}-{client}-round-{round}.safetensors"
        self._files[client] = (name, write_tensors(self.folder / name, tensors))


def same_device(tensors: Mapping[str, Tensor], device: torch.device) -> Params:
    """Move tensors to a device."""
    return {name: tensor.to(device) for name, tensor in tensors.items()}
