"""The tokens of a batch without padding, and the position of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

# Shape suffixes: T tokens of a batch, end to end, and fillers; B texts; S tokens of the longest; D hidden width.

# oneDNN compiles and keeps a kernel for each shape, so there should not be a shape for each batch.
LENGTH_STEP, TOKEN_STEP = 8, 32


def rounded_up(tokens: int) -> int:
    """Tokens with fillers: some sixteen shapes for each doubling, at most a sixteenth more from 512 on."""
    step = max(TOKEN_STEP, 1 << max(0, tokens.bit_length() - 5))
    return -(-tokens // step) * step


@dataclass(frozen=True)
class Packing:
    """How the texts of a batch lie end to end. mask_BS: 1 at real tokens, which come first in every text."""

    mask_BS: Tensor
    _biases: dict[tuple[int, torch.dtype], Tensor] = field(default_factory=dict)  # the same in every layer

    @cached_property
    def lengths(self) -> Tensor:
        """Tokens of each text."""
        return self.mask_BS.sum(1)

    @cached_property
    def longest(self) -> int:
        """Tokens to which texts are padded within attention: those of the longest, rounded up."""
        return -(-int(self.lengths.max()) // LENGTH_STEP) * LENGTH_STEP

    @cached_property
    def real(self) -> Tensor:
        """Whether a place, up to the longest text's end, holds a token, [B, S]."""
        mask_BS = self.mask_BS[:, : self.longest]
        return functional.pad(mask_BS, (0, self.longest - mask_BS.shape[1])) != 0

    @cached_property
    def count(self) -> int:
        """Tokens of all texts."""
        return int(self.lengths.sum())

    @cached_property
    def full(self) -> bool:
        """Whether there is neither padding nor filling."""
        return len(self.places) == self.count == self.real.numel()

    @cached_property
    def places(self) -> Tensor:
        """Of each of T tokens, its place among the B * S padded ones; fillers, at the end, have the first place."""
        places = self.real.flatten().nonzero()[:, 0]
        return functional.pad(places, (0, rounded_up(self.count) - self.count))

    @cached_property
    def sources(self) -> Tensor:
        """Of each padded place, its token; the first token at padding, where any would do."""
        sources = torch.zeros(self.real.numel(), dtype=torch.int64, device=self.mask_BS.device)
        sources[self.places[: self.count]] = torch.arange(self.count, device=sources.device)
        return sources

    @cached_property
    def first(self) -> Tensor:
        """Of each text, its first token."""
        return self.lengths.cumsum(0) - self.lengths

    @cached_property
    def positions(self) -> Tensor:
        """Of each token, its position in its text, from 0."""
        return self.places % self.longest

    def packed(self, values_BS: Tensor) -> Tensor:
        """The values of the tokens, [T]; a filler has those of the first."""
        return values_BS.flatten()[functional.pad(self._rows, (0, len(self.places) - self.count))]

    def padded(self, values_T: Tensor) -> Tensor:
        """Rows [B * S, …] of packed ones; what stands at padding means nothing."""
        return values_T if self.full else values_T.index_select(0, self.sources)

    def gathered(self, values_BS: Tensor) -> Tensor:
        """Packed rows [T, …] of padded ones; fillers' are 0, in gradients too."""
        if self.full:
            return values_BS
        rows = values_BS.index_select(0, self.places)
        rows[self.count :].zero_()
        return rows

    def spread(self, values_T: Tensor) -> Tensor:
        """Rows [B * S, …] of packed ones, 0 at padding."""
        if self.full:
            return values_T
        rows = values_T.new_zeros(self.real.numel(), values_T.shape[1])
        return rows.index_copy_(0, self.places[: self.count], values_T[: self.count])

    def states(self, hidden_TD: Tensor) -> Tensor:
        """Hidden states [B, S, D] as wide as the mask, 0 at padding, for modules that read them so."""
        texts, width = self.mask_BS.shape
        if self.full and width == self.longest:
            return hidden_TD.view(texts, width, -1)
        padded = hidden_TD.new_zeros(texts * width, hidden_TD.shape[1])
        return padded.index_copy(0, self._rows, hidden_TD[: self.count]).view(texts, width, -1)

    def tokens(self, hidden_BSD: Tensor) -> Tensor:
        """Hidden states [T, D] of padded ones, as `states` gives them."""
        rows_TD = hidden_BSD.flatten(0, 1).index_select(0, self._rows)
        return functional.pad(rows_TD, (0, 0, 0, len(self.places) - self.count))

    @cached_property
    def _rows(self) -> Tensor:
        """Of each token, its place among the padded ones, as wide as the mask."""
        return (self.mask_BS != 0).flatten().nonzero()[:, 0]

    def bias(self, query: Tensor) -> Tensor | None:
        """What is added to attention scores [B * H, Q, S] so that padding is not read; None without padding.

        query: [B * H, Q, E].
        """
        if self.full:
            return None
        heads, queries = len(query) // len(self.lengths), query.shape[1]
        if (queries, query.dtype) not in self._biases:
            bias_BS = torch.zeros(self.real.shape, dtype=query.dtype, device=query.device)
            bias_BS.masked_fill_(~self.real, -torch.inf)
            size = (len(bias_BS), heads, queries, self.longest)
            bias = bias_BS[:, None, None].expand(size).reshape(-1, queries, self.longest)
            self._biases[queries, query.dtype] = bias
        return self._biases[queries, query.dtype]
