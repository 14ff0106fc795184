"""A batch's tokens without padding, and their positions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

# Shape suffixes: T concatenated tokens and fillers; B texts; S tokens in the longest text; D hidden width.

# oneDNN compiles and keeps one kernel per shape, so batches should share shapes.
LENGTH_STEP, TOKEN_STEP = 8, 32


def rounded_up(tokens: int) -> int:
    """Tokens with fillers: about sixteen shapes per doubling, at most a sixteenth more from 512 on."""
    step = max(TOKEN_STEP, 1 << max(0, tokens.bit_length() - 5))
    return -(-tokens // step) * step


@dataclass(frozen=True)
class Packing:
    """The layout of a batch's concatenated texts. mask_BS: 1 at real tokens, which come first in every text."""

    mask_BS: Tensor
    _biases: dict[tuple[int, torch.dtype], Tensor] = field(default_factory=dict)  # the same in every layer

    @cached_property
    def lengths(self) -> Tensor:
        """Tokens per text."""
        return self.mask_BS.sum(1)

    @cached_property
    def longest(self) -> int:
        """Padded length in attention: the longest text's tokens, rounded up."""
        return -(-int(self.lengths.max()) // LENGTH_STEP) * LENGTH_STEP

    @cached_property
    def real(self) -> Tensor:
        """Whether each padded place holds a token, [B, S]."""
        mask_BS = self.mask_BS[:, : self.longest]
        return functional.pad(mask_BS, (0, self.longest - mask_BS.shape[1])) != 0

    @cached_property
    def count(self) -> int:
        """Tokens in all texts."""
        return int(self.lengths.sum())

    @cached_property
    def full(self) -> bool:
        """Whether there are neither padding nor fillers."""
        return len(self.places) == self.count == self.real.numel()

    @cached_property
    def places(self) -> Tensor:
        """Each token's place among the B * S padded ones, [T]; fillers, at the end, have the first place."""
        places = self.real.flatten().nonzero()[:, 0]
        return functional.pad(places, (0, rounded_up(self.count) - self.count))

    @cached_property
    def sources(self) -> Tensor:
        """Each padded place's token, [B * S]; the first token at padding, where any token would do."""
        sources = torch.zeros(self.real.numel(), dtype=torch.int64, device=self.mask_BS.device)
        sources[self.places[: self.count]] = torch.arange(self.count, device=sources.device)
        return sources

    @cached_property
    def first(self) -> Tensor:
        """Each text's first token."""
        return self.lengths.cumsum(0) - self.lengths

    @cached_property
    def positions(self) -> Tensor:
        """Each token's position in its text, from 0."""
        return self.places % self.longest

    def packed(self, values_BS: Tensor) -> Tensor:
        """The tokens' values, [T]; a filler has the first token's."""
        return values_BS.flatten()[functional.pad(self._rows, (0, len(self.places) - self.count))]

    def padded(self, values_T: Tensor) -> Tensor:
        """Padded rows [B * S, …] from packed ones; rows at padding are arbitrary."""
        return values_T if self.full else values_T.index_select(0, self.sources)

    def gathered(self, values_BS: Tensor) -> Tensor:
        """Packed rows [T, …] from padded ones; fillers' are 0, also in gradients."""
        if self.full:
            return values_BS
        rows = values_BS.index_select(0, self.places)
        rows[self.count :].zero_()
        return rows

    def spread(self, values_T: Tensor) -> Tensor:
        """Padded rows [B * S, …] from packed ones, 0 at padding."""
        if self.full:
            return values_T
        rows = values_T.new_zeros(self.real.numel(), values_T.shape[1])
        return rows.index_copy_(0, self.places[: self.count], values_T[: self.count])

    def states(self, hidden_TD: Tensor) -> Tensor:
        """Hidden states [B, S, D] as wide as the mask, 0 at padding, for modules that read padded states."""
        texts, width = self.mask_BS.shape
        if self.full and width == self.longest:
            return hidden_TD.view(texts, width, -1)
        padded = hidden_TD.new_zeros(texts * width, hidden_TD.shape[1])
        return padded.index_copy(0, self._rows, hidden_TD[: self.count]).view(texts, width, -1)

    def tokens(self, hidden_BSD: Tensor) -> Tensor:
        """Hidden states [T, D] from padded ones in the form of `states`."""
        rows_TD = hidden_BSD.flatten(0, 1).index_select(0, self._rows)
        return functional.pad(rows_TD, (0, 0, 0, len(self.places) - self.count))

    @cached_property
    def _rows(self) -> Tensor:
        """Each token's place among padded ones as wide as the mask."""
        return (self.mask_BS != 0).flatten().nonzero()[:, 0]

    def bias(self, query: Tensor) -> Tensor | None:
        """A bias for attention scores [B * H, Q, S] that masks padding; None without padding.

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
