"""An encoder with a head: one model for classification and for regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fedsim.rng import SERVER, torch_seeded

# Shape suffixes: B batch, S tokens, D hidden width, C outputs.


class ClassificationHead(nn.Module):
    """BERT's own: pooler (dense and tanh over [CLS]), dropout, linear (Devlin et al. 2019, section 4.1)."""

    def __init__(self, hidden: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.pooler = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(hidden, outputs)

    def forward(self, hidden_BSD: Tensor) -> Tensor:
        """Logits [B, C] from the last hidden states [B, S, D]."""
        return self.classifier(self.dropout(torch.tanh(self.pooler(hidden_BSD[:, 0]))))


class SequenceModel(nn.Module):
    """Encoder and head. Parameters are called "encoder.…" and "head.…"."""

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self._takes_types = getattr(encoder.config, "type_vocab_size", 0) > 1

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Logits [B, C] of a batch of input_ids, attention_mask and token_type_ids, each [B, S]."""
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
        if self._takes_types:
            inputs["token_type_ids"] = batch["token_type_ids"]
        return self.head(self.encoder(**inputs).last_hidden_state)


def with_classifier(
    encoder: nn.Module, outputs: int, seed: int, pooler: Mapping[str, Tensor] | None = None
) -> SequenceModel:
    """The encoder with a classification head drawn from `seed`, the pooler's weights taken over where given."""
    config: Any = encoder.config  # its fields differ from family to family
    dropout: Any = getattr(config, "classifier_dropout", None)
    if dropout is None:
        dropout = getattr(config, "hidden_dropout_prob", 0.1)
    with torch_seeded(seed, 0, SERVER, "layout"):  # modules draw weights when they are made; the head's are drawn below
        head = ClassificationHead(config.hidden_size, outputs, dropout)
    with torch_seeded(seed, 0, SERVER, "head"), torch.no_grad():
        for linear in (head.pooler, head.classifier):
            linear.weight.normal_(std=getattr(config, "initializer_range", 0.02))
            linear.bias.zero_()
        for name, value in (pooler or {}).items():
            head.pooler.get_parameter(name).copy_(value)
    return SequenceModel(encoder, head)
