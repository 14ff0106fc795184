"""Concatenated texts, cut into blocks of one length: language models train on them without padding or waste."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch

from fedsim.data import Batch, padded
from fedsim.stored import Numbers


@dataclass(frozen=True)
class Blocks:
    """Blocks of concatenated texts, as examples; a block may begin in one text and end in another.

    tokens: of all texts, int32 [total]; they may be in a file. spans: begin and end in `tokens` of each concatenated
    text, int64 [t, 2]. places: where each text begins in the concatenation, int64 [t + 1]. cuts: begin and end of each
    block in the concatenation, int64 [n, 2]. length: tokens of a whole block. opening: the first of them, such as <s>,
    which precedes each block and is in no text; None without one.
    """

    tokens: Numbers
    spans: np.ndarray
    places: np.ndarray
    cuts: np.ndarray
    length: int
    padding_id: int
    opening: int | None = None
    targets: None = None

    def __len__(self) -> int:
        return len(self.cuts)

    @cached_property
    def labels(self) -> np.ndarray:
        """Zeros, int64 [n]: no text has a label."""
        return np.zeros(len(self), dtype=np.int64)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Tokens of each block, int64 [n]."""
        lengths: np.ndarray = self.cuts[:, 1] - self.cuts[:, 0] + (self.opening is not None)
        return lengths

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        """The batch of some blocks, padded to the longest of them, or to `width` tokens."""
        blocks = [self._block(index) for index in indices]
        ids = padded(blocks, self.padding_id, width)
        return {
            "input_ids": ids,
            "attention_mask": padded([np.ones_like(block) for block in blocks], 0, width),
            "token_type_ids": torch.zeros_like(ids),
            "labels": torch.from_numpy(self.labels[indices]),
        }

    def shared_out(self, parts: Sequence[np.ndarray]) -> tuple[Blocks, list[np.ndarray]]:
        """The blocks of several owners, each with its own texts concatenated, and the indices of each owner's blocks.

        parts: each owner's texts, by their indices in `spans`. An owner's last block is left out if it is not whole,
        unless it is the only one.
        """
        spans = self.spans[np.concatenate([np.empty(0, dtype=np.int64), *parts])]
        places = np.concatenate([[0], np.cumsum(spans[:, 1] - spans[:, 0])])
        ends = places[np.cumsum([len(part) for part in parts], dtype=np.int64)]
        room = self.length - (self.opening is not None)
        cuts = []
        for begin, end in pairwise([0, *ends.tolist()]):
            starts = begin + room * np.arange(max((end - begin) // room, int(end > begin)))
            cuts.append(np.stack([starts, np.minimum(starts + room, end)], axis=1))
        blocks = replace(self, spans=spans, places=places, cuts=np.concatenate([self.cuts[:0], *cuts]))
        firsts = np.cumsum([0, *map(len, cuts)])
        return blocks, [np.arange(first, last) for first, last in pairwise(firsts)]

    def _block(self, index: int) -> np.ndarray:
        begin, end = self.cuts[index]
        first = int(np.searchsorted(self.places, begin, side="right")) - 1
        last = int(np.searchsorted(self.places, end, side="left"))
        pieces = [np.array([] if self.opening is None else [self.opening], dtype=np.int64)]
        for text in range(first, last):
            start = self.spans[text, 0] - self.places[text]
            pieces.append(self.tokens[start + max(begin, self.places[text]) : start + min(end, self.places[text + 1])])
        return np.concatenate(pieces)


def packed(tokens: Numbers, offsets: np.ndarray, length: int, padding_id: int, opening: int | None = None) -> Blocks:
    """All texts in blocks. offsets: where each begins in `tokens`, int64 [n + 1]; the others as in `Blocks`."""
    spans = np.stack([offsets[:-1], offsets[1:]], axis=1)
    no_cuts = np.empty((0, 2), dtype=np.int64)
    whole = Blocks(tokens, spans, offsets - offsets[0], no_cuts, length, padding_id, opening)
    return whole.shared_out([np.arange(len(spans))])[0]
