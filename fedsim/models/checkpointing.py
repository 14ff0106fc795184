"""Activation checkpointing: layers keep only their inputs and recompute the rest for gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint


@contextmanager
def checkpointed(
    encoder: nn.Module, layers: Sequence[nn.Module], autocast: Callable[[], AbstractContextManager[object]]
) -> Iterator[None]:
    """Checkpoint the activations of an encoder's layers in the forward passes of a `with` block.

    Recomputation repeats the same dropout, within `autocast()`. Hooks before a layer run only once, so tensors cross
    the wire once.
    """
    config: Any = encoder.config
    caches = getattr(config, "use_cache", None)  # a second pass would add GPT-2's keys and values again
    config.use_cache = False
    for layer in layers:
        layer.forward = partial(
            checkpoint, layer.forward, use_reentrant=False, context_fn=lambda: (nullcontext(), autocast())
        )
    try:
        yield
    finally:
        config.use_cache = caches
        for layer in layers:
            del layer.forward  # the instance's, not the class's
