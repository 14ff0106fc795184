"""What a cell's training costs in floating-point operations, estimated from shapes and the tokens of the real data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.backbones import KNOWN, architecture, locate
from benchmarks.errors import UserError
from benchmarks.settings import Settings
from benchmarks.spec import Cell

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Effort:
    """Optimiser steps of a cell, and floating-point operations of its training and of its scoring after each round."""

    steps: int
    training_flops: float
    scoring_flops: float

    @property
    def flops(self) -> float:
        """All of them."""
        return self.training_flops + self.scoring_flops

    def hours(self, flops_per_second: float) -> float:
        """Wall time at a sustained rate."""
        return self.flops / flops_per_second / 3600


def estimate_effort(cell: Cell, settings: Settings) -> Effort:
    """Operations of a cell on the data at hand: 2 a matrix weight and token forwards, 4 more backwards.

    Per token of a text of S tokens: 2 P + 4 L S H forwards, with P weights in the encoder's layers, L layers of
    width H; three times that in training. Padding is left out, or counted where training.padding is "fixed".
    UserError where neither the data nor a tokenizer is at hand.
    """
    from benchmarks.federation import build_clients, load_inputs

    if cell.algorithm in ("local_majority", "token_majority"):
        return Effort(0, 0.0, 0.0)
    counted = replace(cell, backbone=_with_same_vocabulary(cell.backbone))
    clients, _ = build_clients(counted, load_inputs(counted, replace(settings, backbone=None)), settings)
    forward = _Forward.of(cell.backbone)
    width = cell.training.max_length if cell.training.padding == "fixed" else None
    training = sum(
        forward.flops(part.examples.lengths[part.indices], width) for part in (client.train for client in clients)
    )
    scoring = sum(
        forward.flops(part.examples.lengths[part.indices], width)
        for client in clients
        for part in client.evaluation.values()
    )
    rounds = cell.training.rounds
    epochs = rounds * cell.training.local_epochs * cell.training.participation
    steps = sum(math.ceil(len(client.train) / cell.training.batch_size) for client in clients)
    return Effort(round(steps * epochs), 3 * training * epochs, scoring * rounds)


@dataclass(frozen=True)
class _Forward:
    """A forward pass through an encoder's layers."""

    weights: int
    layers: int
    hidden: int

    @classmethod
    def of(cls, backbone: str) -> _Forward:
        import torch

        from fedsim.models.anatomy import anatomy
        from fedsim.models.encoder import encoder_from_config

        with torch.device("meta"):
            encoder = encoder_from_config(architecture(backbone))
        config: Any = encoder.config  # its fields differ from family to family
        parameters = {f"encoder.{name}": parameter for name, parameter in encoder.named_parameters()}
        layers = anatomy(parameters).layers
        weights = sum(parameters[name].numel() for layer in layers for name in layer if parameters[name].ndim == 2)
        return cls(weights, len(layers), int(config.hidden_size))

    def flops(self, lengths: np.ndarray, width: int | None) -> float:
        """Operations for texts of these lengths, each padded to `width` if there is one."""
        tokens = lengths.astype(float) if width is None else lengths * 0.0 + width
        return float((tokens * (2 * self.weights + 4 * self.layers * self.hidden * tokens)).sum())


def _with_same_vocabulary(backbone: str) -> str:
    """The backbone, or one of the same vocabulary whose files are here: it cuts texts into the same tokens."""
    size = architecture(backbone)["vocab_size"]
    for name in (backbone, *(known for known, entry in KNOWN.items() if entry.config["vocab_size"] == size)):
        try:
            return locate(name, local_only=True).id
        except UserError:
            continue
    raise UserError(f"no tokenizer of {backbone} on this machine: expected its files, to count tokens; fetch it first")
