"""The size of tensors saved as a file, which some papers print as the cost of communication."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import IO, Any, cast

import torch

Shapes = Iterable[tuple[str, Sequence[int]]]  # a tensor's name and its sizes

# What the transformers library's masked language models call the parts of their heads, and the encoder beneath.
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


class _Counter(io.RawIOBase):
    """A file that keeps nothing of what is written to it but how much it was."""

    def __init__(self) -> None:
        self.count = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.count += size
        return size


def saved_bytes(tensors: Shapes) -> int:
    """Bytes of the file that `torch.save` makes of a dict of fp32 tensors, in the order in which they are given.

    That is their values, each aligned in an archive, and names; the file is written, and thrown away as it is.
    """
    return _saved(tuple((name, tuple(sizes)) for name, sizes in tensors))


@lru_cache
def _saved(tensors: tuple[tuple[str, tuple[int, ...]], ...]) -> int:
    file = _Counter()  # zeros that nobody wrote take no memory
    torch.save({name: torch.zeros(sizes) for name, sizes in tensors}, cast("IO[bytes]", file))
    return file.count


def library_name(name: str, family: str) -> str:
    """What the transformers library calls a parameter of a masked language model; its own name in other families.

    family: the model type, such as "bert". Names are part of a saved file.
    """
    for own, theirs in LIBRARY_NAMES.get(family, {}).items():
        if name == own or name.startswith(f"{own}."):
            return theirs + name.removeprefix(own)
    return name
