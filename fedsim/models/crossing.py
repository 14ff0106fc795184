"""A model whose parts are on both sides of the wire: what leaves a layer crosses before the next one reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from fedsim.errors import FederationError
from fedsim.models.groups import LAYER
from fedsim.models.model import Model


@contextmanager
def crossing(model: Model, layer: int, through: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Hand the hidden states [B, S, D] that leave a layer to a function, and what it returns to the next layer.

    layer: 0 of the embeddings, then the encoder's from 1; the last one's states go to the head. through: given states
    with their graph; one that returns a detached copy cuts the graph there, and whoever cut it carries the gradient
    back by hand (split learning, Gupta and Raskar 2018). Several crossings may be open at once.
    FederationError where there is no such layer, or where the head reads a layer below it past the crossing.
    """
    layers, head = encoder_layers(model), model.network.head
    if not 0 <= layer <= len(layers):
        raise FederationError(f"crossing: expected a layer from 0 to {len(layers)}, found {layer}")
    if head.states > 1 and layer > len(layers) - head.states:
        raise FederationError(
            f"crossing behind layer {layer}: the head {type(head).__name__} reads the last {head.states} of "
            f"{len(layers)} layers; cross behind a lower layer, or choose a head that reads the last one alone"
        )
    if layer < len(layers):
        hook = layers[layer].register_forward_pre_hook(lambda _, inputs: (through(inputs[0]), *inputs[1:]))
    else:
        hook = head.register_forward_pre_hook(lambda _, inputs: ((through(inputs[0][0]),), *inputs[1:]))
    try:
        yield
    finally:
        hook.remove()


def encoder_layers(model: Model) -> list[nn.Module]:
    """The encoder's layers from the bottom."""
    names = [(f".{name}.", module) for name, module in model.network.encoder.named_modules()]
    return [module for name, module in names if (match := LAYER.search(name)) and match.end() == len(name)]
