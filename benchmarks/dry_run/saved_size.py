"""The size of tensors saved as a file, which some papers publish as the cost of communication."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import IO, Any, cast

import torch

# The transformers library's names of the encoder and of the parts of a masked language model's head.
LIBRARY_NAMES: Mapping[str, Mapping[str, str]] = {
    "bert": {
        "encoder": "bert",
        "head.transform": "cls.predictions.transform.dense",
        "head.norm": "cls.predictions.transform.LayerNorm",
        "head.bias": "cls.predictions.bias",
    },
    "distilbert": {
        "encoder": "distilbert",
        "head.transform": "vocab_transform",
        "head.norm": "vocab_layer_norm",
        "head.bias": "vocab_projector.bias",
    },
}


class _Counted(io.RawIOBase):
    """A file that counts the bytes written to it and keeps none."""

    count = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.count += size
        return size


def saved_bytes(tensors: Iterable[tuple[str, Sequence[int]]]) -> int:
    """Bytes of the file that `torch.save` writes for a dict of fp32 tensors, given as names and shapes in order."""
    return _saved(tuple((name, tuple(shape)) for name, shape in tensors))


@lru_cache
def _saved(tensors: tuple[tuple[str, tuple[int, ...]], ...]) -> int:
    file = _Counted()
    torch.save({name: torch.zeros(shape) for name, shape in tensors}, cast("IO[bytes]", file))
    return file.count


def library_name(name: str, family: str) -> str:
    """The transformers library's name of a masked language model's parameter; our name in other families.

    family: The model type, such as "bert".
    """
    for ours, theirs in LIBRARY_NAMES.get(family, {}).items():
        if name == ours or name.startswith(f"{ours}."):
            return theirs + name.removeprefix(ours)
    return name
