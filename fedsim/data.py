"""Tokenised examples, blocks of concatenated texts, and the clients that own them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from fedsim.plan import ClientId
from fedsim.stored import Numbers

# input_ids, attention_mask, token_type_ids: int64 [B, S]; labels: [B], or [B, S] if every token has a target
Batch = dict[str, Tensor]
POOL_BATCHES = 16  # of an epoch's batches, sorted by length together
IGNORED = -100  # marks a token excluded from loss and metrics: PyTorch's convention


class ExampleSet(Protocol):
    """Examples as model inputs: token ids (`Examples`, `Blocks`) or a frozen encoder's features."""

    @property
    def labels(self) -> np.ndarray:
        """Labels of the texts, [n]."""

    @property
    def targets(self) -> Numbers | None:
        """Token targets of all texts, concatenated, int64 [total]; None if each text has one label."""

    @property
    def lengths(self) -> np.ndarray:
        """Tokens per text, int32 or int64 [n]."""

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        """The batch with the given examples, padded to the longest or to `width` tokens."""


@dataclass(frozen=True)
class Examples:
    """Tokenised texts, concatenated; arrays with one value per token may be memory-mapped.

    Args:
        tokens: Token ids, int32 [total].
        types: Token types, int32 [total].
        offsets: Where each text begins, int64 [n + 1].
        labels: One per text, [n]: int64 for classes, float32 for regression scores.
        targets: For token tasks, int64 [total], with IGNORED for tokens without a target.
    """

    tokens: Numbers
    types: Numbers
    offsets: np.ndarray
    labels: np.ndarray
    padding_id: int
    targets: Numbers | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Tokens per example, int32 [n]: there may be millions of examples."""
        lengths = np.empty(len(self), dtype=np.int32)
        return np.subtract(self.offsets[1:], self.offsets[:-1], out=lengths, casting="same_kind")

    def token_ids(self, indices: np.ndarray) -> np.ndarray:
        """The distinct token ids in the given examples and the padding id, ascending."""
        spans = [self.tokens[self.offsets[index] : self.offsets[index + 1]] for index in indices]
        return np.unique(np.concatenate([[self.padding_id], *spans]))

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        """The batch with the given examples, padded to the longest or to `width` tokens."""
        spans = [slice(self.offsets[index], self.offsets[index + 1]) for index in indices]
        ids = padded([self.tokens[span] for span in spans], self.padding_id, width)
        return {
            "input_ids": ids,
            "attention_mask": padded([np.ones(span.stop - span.start, dtype=np.int64) for span in spans], 0, width),
            "token_type_ids": padded([self.types[span] for span in spans], 0, width),
            "labels": torch.from_numpy(targets_of(self, indices, ids.shape[1])),
        }


def padded(rows: Sequence[np.ndarray], filler: int, width: int | None = None) -> Tensor:
    """Rows as one tensor int64 [B, S], each padded to the longest row or to `width`."""
    values = np.full((len(rows), width or max(map(len, rows))), filler, dtype=np.int64)
    for place, row in enumerate(rows):
        values[place, : len(row)] = row
    return torch.from_numpy(values)


def targets_of(examples: ExampleSet, indices: np.ndarray, width: int) -> np.ndarray:
    """Targets for the given texts: labels [B], or token targets int64 [B, width], padded with IGNORED."""
    if examples.targets is None:
        return examples.labels[indices]
    lengths, ends = examples.lengths[indices], np.cumsum(examples.lengths)[indices]
    targets = np.full((len(indices), width), IGNORED, dtype=np.int64)
    for row, (length, end) in enumerate(zip(lengths, ends, strict=True)):
        targets[row, :length] = examples.targets[end - length : end]
    return targets


@dataclass(frozen=True)
class Subset:
    """A view of some examples in a larger set. indices: int64 [n]."""

    examples: ExampleSet
    indices: np.ndarray

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def labels(self) -> np.ndarray:
        """Labels of the subset, [n]."""
        return self.examples.labels[self.indices]

    @property
    def longest(self) -> int:
        """Tokens in the longest text; 0 for an empty subset."""
        return int(self.examples.lengths[self.indices].max(initial=0))

    @property
    def references(self) -> np.ndarray:
        """The subset's targets: labels [n], or token targets [n, longest]."""
        return targets_of(self.examples, self.indices, self.longest)


@dataclass(frozen=True)
class Client:
    """One participant with its training and evaluation examples. evaluation: "test", … -> examples."""

    id: ClientId
    train: Subset
    evaluation: Mapping[str, Subset]


def training_batches(
    subset: Subset, batch_size: int, width: int | None, generator: np.random.Generator
) -> Iterator[Batch]:
    """One epoch of shuffled batches with every example once; the last batch may be smaller.

    width: None batches texts by length. The shuffled epoch is cut into pools of POOL_BATCHES batches, each pool is
    sorted by length and cut into batches, and the batches are shuffled. This needs little padding, and batches differ
    between epochs. An integer follows the papers literally: a plain shuffle with every batch padded to that width.
    """
    order = subset.indices[generator.permutation(len(subset))]
    if width is None:
        lengths = subset.examples.lengths
        for chunk in _cut(order, POOL_BATCHES * batch_size):
            chunk[:] = chunk[np.argsort(lengths[chunk], kind="stable")]
        batches = _cut(order, batch_size)
        batches = [batches[index] for index in generator.permutation(len(batches))]
    else:
        batches = _cut(order, batch_size)
    for indices in batches:
        yield subset.examples.collate(indices, width)


def evaluation_batches(subset: Subset, batch_size: int, width: int | None) -> Iterator[tuple[np.ndarray, Batch]]:
    """Batches of texts with similar lengths, each with its positions in the subset."""
    positions = np.argsort(subset.examples.lengths[subset.indices], kind="stable")
    for chosen in _cut(positions, batch_size):
        yield chosen, subset.examples.collate(subset.indices[chosen], width)


def _cut(values: np.ndarray, size: int) -> list[np.ndarray]:
    return [values[start : start + size] for start in range(0, len(values), size)]


@dataclass(frozen=True)
class Blocks:
    """Blocks of concatenated texts, as examples; a block may begin in one text and end in another.

    Args:
        tokens: All texts' tokens, int32 [total]; may be memory-mapped.
        spans: Where each concatenated text begins and ends in `tokens`, int64 [t, 2].
        places: Where each text begins in the concatenation, int64 [t + 1].
        cuts: Where each block begins and ends in the concatenation, int64 [n, 2].
        length: Tokens in a full block.
        opening: A token before each block, such as <s>, which counts in its length; None: no such token.
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
        """Zeros, int64 [n]: blocks have no labels."""
        return np.zeros(len(self), dtype=np.int64)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Tokens per block, int64 [n]."""
        lengths: np.ndarray = self.cuts[:, 1] - self.cuts[:, 0] + (self.opening is not None)
        return lengths

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        """The batch with the given blocks, padded to the longest or to `width` tokens."""
        blocks = [self._block(index) for index in indices]
        ids = padded(blocks, self.padding_id, width)
        return {
            "input_ids": ids,
            "attention_mask": padded([np.ones_like(block) for block in blocks], 0, width),
            "token_type_ids": torch.zeros_like(ids),
            "labels": torch.from_numpy(self.labels[indices]),
        }

    def shared_out(self, parts: Sequence[np.ndarray]) -> tuple[Blocks, list[np.ndarray]]:
        """Cut each owner's texts into blocks; returns all blocks and each owner's block indices.

        parts: each owner's texts, as indices into `spans`. An owner's incomplete last block is dropped unless it is the
        only one.
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
    """Cut all texts into blocks. offsets: where each text begins in `tokens`, int64 [n + 1]; others as in `Blocks`."""
    spans = np.stack([offsets[:-1], offsets[1:]], axis=1)
    no_cuts = np.empty((0, 2), dtype=np.int64)
    whole = Blocks(tokens, spans, offsets - offsets[0], no_cuts, length, padding_id, opening)
    return whole.shared_out([np.arange(len(spans))])[0]
