"""The size of tensors saved as a file, which some papers print as the cost of communication."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import IO, Any, cast

import torch

# The names that the transformers library's masked language models give the encoder and the parts of their heads.
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


class _Discarded(io.RawIOBase):
    """A file that keeps the number of bytes written to it and nothing else."""

    count = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.count += size
        return size


def saved_bytes(tensors: Iterable[tuple[str, Sequence[int]]]) -> int:
    """Bytes of the file that `torch.save` makes of a dict of fp32 tensors, given as names and shapes, in their order.

    That is their values, each aligned in an archive, and names, which some papers print as the cost of communication.
    """
    return _saved(tuple((name, tuple(shape)) for name, shape in tensors))


@lru_cache
def _saved(tensors: tuple[tuple[str, tuple[int, ...]], ...]) -> int:
    file = _Discarded()  # zeros that nobody wrote take no memory
    torch.save({name: torch.zeros(shape) for name, shape in tensors}, cast("IO[bytes]", file))
    return file.count


def library_name(name: str, family: str) -> str:
    """The transformers library's name of a masked language model's parameter; our name in other families.

    family: the model type, such as "bert". Names are part of a saved file.
    """
    for own, theirs in LIBRARY_NAMES.get(family, {}).items():
        if name == own or name.startswith(f"{own}."):
            return theirs + name.removeprefix(own)
    return name
