"""An encoder with a head: the one model of every objective, and the heads that checkpoints have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn

from fedsim.data import IGNORED
from fedsim.errors import FederationError
from fedsim.models.heads import Head, States, build_head
from fedsim.models.pretrained import stored_head

# Shape suffixes: P paths, B batch, S tokens, D hidden width, C outputs, K hidden states, N targets of the batch.


class SequenceModel(nn.Module):
    """Encoder and head. Parameters are called "encoder.…" and "head.…".

    An encoder of which nothing is trained is frozen: it runs as in evaluation, without dropout and without gradients.
    """

    def __init__(self, encoder: nn.Module, head: Head) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self._takes_types = getattr(encoder.config, "type_vocab_size", 0) > 1

    @property
    def is_frozen(self) -> bool:
        """Whether nothing of the encoder is trained."""
        return not any(parameter.requires_grad for parameter in self.encoder.parameters())

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self.encoder.train(mode and not self.is_frozen)
        return self

    def forward(self, batch: Mapping[str, Tensor], states: States | None = None) -> Tensor:
        """Path logits [P, N, C] for the texts or targets of a batch, of token ids or of features computed before.

        states: the batch's hidden states, if they have been computed.
        """
        asked_BS = batch["labels"] != IGNORED if self.head.answers_tokens else None
        return self.head(self.states(batch) if states is None else states, batch["attention_mask"], asked_BS)

    def states(self, batch: Mapping[str, Tensor]) -> States:
        """The hidden states that the head reads, of input_ids, attention_mask and token_type_ids, each [B, S].

        A batch that carries "features" [K, B, S, D] has them already.
        """
        if "features" in batch:
            return batch["features"].unbind()
        inputs = self.inputs(batch)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.is_frozen):
            if self.head.states == 1:
                return (self.encoder(**inputs).last_hidden_state,)
            hidden = self.encoder(**inputs, output_hidden_states=True).hidden_states
        return hidden[: -self.head.states - 1 : -1]

    def inputs(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What the encoder takes of a batch."""
        names = ("input_ids", "attention_mask", *(("token_type_ids",) if self._takes_types else ()))
        return {name: batch[name] for name in names}


def with_head(
    encoder: nn.Module, outputs: int, seed: int, folder: Path | None = None, head: str = "pooled"
) -> SequenceModel:
    """The encoder with a head drawn from `seed`, or with the head of the checkpoint in a folder, if that has one.

    FederationError if that one is incomplete or has other sizes.
    """
    made = build_head(head, encoder, outputs, seed)
    config = encoder.config.to_dict()
    stored = {} if folder is None else stored_head(folder, config, made.stored_as)
    with torch.no_grad():
        for name, value in stored.items():
            parameter = made.get_parameter(name)
            if parameter.shape != value.shape:
                raise FederationError(
                    f"{folder}: expected a head whose {name} has the shape {list(parameter.shape)}, found "
                    f"{list(value.shape)}. Fetch the encoder again."
                )
            parameter.copy_(value)
    return SequenceModel(encoder, made)
