"""Activation checkpointing: layers keep their inputs alone, and compute the rest again when gradients need it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint


@contextmanager
def checkpointed(encoder: nn.Module, layers: Sequence[nn.Module]) -> Iterator[None]:
    """Checkpoint the activations of an encoder's layers in the forward passes of a block.

    Dropout draws the same again. What crosses the wire in front of a layer crosses once: hooks stay outside.
    """
    config: Any = encoder.config
    caches = getattr(config, "use_cache", None)  # GPT-2's keys and values, which a second pass would add once more
    config.use_cache = False
    for layer in layers:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)
    try:
        yield
    finally:
        config.use_cache = caches
        for layer in layers:
            del layer.forward  # the instance's, not the class's
