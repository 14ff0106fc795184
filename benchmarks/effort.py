"""What a cell's training costs in floating-point operations, estimated from shapes and the tokens of the real data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.backbones import KNOWN, architecture, locate
from benchmarks.errors import UserError
from benchmarks.settings import Settings
from benchmarks.spec import Cell

if TYPE_CHECKING:
    from fedsim.data import Part
    from fedsim.models.resident import Resident


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
    width H; three times that in training. Padding is left out, or counted where training.padding is "fixed". What is
    trained is found out by one round of the method itself that trains nothing: over a frozen encoder each text counts
    once where its features are kept, and the head's weights count for each token that it reads.
    UserError where neither the data nor a tokenizer is at hand, or where it takes the texts' features.
    """
    from benchmarks.federation import build_clients, load_inputs
    from benchmarks.planned import Features, Forgetful, Untrained
    from benchmarks.planning import counted_setting
    from fedsim.algorithms import build_algorithm
    from fedsim.wire import Channel

    counted = replace(cell, backbone=_with_same_vocabulary(cell.backbone))
    clients, _ = build_clients(counted, load_inputs(counted, replace(settings, backbone=None)), settings)
    asked: list[Part] = []  # for features
    runs: list[tuple[Part, frozenset[str]]] = []
    training = Untrained(
        cell.seed,
        cell.training.learning_rate,
        cell.training.batch_size,
        on_run=lambda part, names: runs.append((part, frozenset(names))),
    )
    features = Features(counted=True, on_part=asked.append)
    setting = counted_setting(cell, cell.backbone, training, features)
    algorithm = build_algorithm(cell.algorithm, setting, cell.options)
    channel = Channel(cell.codec)
    algorithm.round(algorithm.init(clients, channel, Forgetful()), clients, channel)
    if not runs:
        return Effort(0, 0.0, 0.0)

    kept = {part.indices.tobytes(): part for part in asked}
    encoder, head = _Forward.of(cell.backbone), _head_weights(setting.model)
    width = cell.training.max_length if cell.training.padding == "fixed" else None
    everyone = np.concatenate([lengths_of(client.train) for client in clients])
    rounds, epochs = cell.training.rounds, cell.training.local_epochs * cell.training.participation

    def read(lengths: np.ndarray) -> float:
        """The head's operations forwards."""
        tokens = lengths if setting.model.model.head.tokens else np.ones_like(lengths)
        return float(2 * head * tokens.sum())

    once, training_flops, steps = sum(encoder.flops(lengths_of(part), width) for part in kept.values()), 0.0, 0
    for part, names in runs:
        # What a server received are the clients' own texts.
        lengths = lengths_of(part) if hasattr(part.examples, "lengths") else everyone
        passes = 3 if names & setting.model.anatomy.layers[-1] else 0 if kept else 1
        training_flops += passes * encoder.flops(lengths, width) + 3 * read(lengths)
        steps += math.ceil(len(lengths) / cell.training.batch_size)
    scored = [part for client in clients for part in client.evaluation.values()]
    if not algorithm.personal:  # a part that several clients are scored on is answered once
        scored = list({id(part): part for part in scored}.values())
    scoring = sum(encoder.flops(lengths_of(part), width) for part in scored)
    reading = sum(read(lengths_of(part)) for part in scored)
    return Effort(
        round(steps * rounds * epochs),
        once + training_flops * rounds * epochs,
        scoring * (1 if kept else rounds) + reading * rounds,
    )


def lengths_of(part: Part) -> np.ndarray:
    """Tokens of each text of a part."""
    lengths: np.ndarray = part.examples.lengths[part.indices]
    return lengths


def _head_weights(model: Resident) -> int:
    """Weights of the head's matrices."""
    parameters = (model.parameters[name] for name in model.anatomy.head)
    return sum(parameter.numel() for parameter in parameters if parameter.ndim == 2)


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
