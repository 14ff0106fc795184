"""What a head is: from the encoder's last hidden states to answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from fedsim.models.pretrained import Names

# Shape suffixes: P paths, B batch, S tokens, D hidden width, C outputs, H attention heads, E a head's width, N targets:
# the texts of a batch, or the tokens of it that are asked for.

# The encoder's last hidden states [B, S, D], the last one first; features may be half precision, sums are not.
States = Sequence[Tensor]


class Head(nn.Module):
    """From hidden states to path logits [P, N, C]: losses of paths are summed, their logits averaged.

    Made from an encoder's configuration and a number of outputs.
    states: how many of the last hidden states it reads. tokens: whether of all tokens, or of [CLS] alone.
    answers_tokens: whether it puts something out for each token that `asked_BS` marks, or for each text.
    pretrained: of a head that checkpoints have, its parameters -> how their names end there.
    """

    states: ClassVar[int] = 1
    tokens: ClassVar[bool] = False
    answers_tokens: ClassVar[bool] = False
    pretrained: ClassVar[Names] = {}

    def forward(self, states: States, mask_BS: Tensor, asked_BS: Tensor | None = None) -> Tensor:
        raise NotImplementedError

    def attach(self, encoder: nn.Module) -> None:
        """Take up what the head shares with its encoder, such as word embeddings; most share nothing."""
