"""From a task's texts to the token arrays that clients train on; each text is tokenised once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from benchmarks.tasks.base import Examples, Task
from fedsim import data
from fedsim.blocks import Blocks, packed
from fedsim.data import IGNORED, Subset
from fedsim.objectives import Vocabulary
from fedsim.stored import Numbers

AT_ONCE = 8192  # texts: a tokenizer's answer takes a hundred times the memory of what is kept of it
CHARACTERS_AT_ONCE = 10**6
OF_TOKENS = ("tokens", "types", "targets")  # arrays as long as all texts; the others have a number for each example


@dataclass(frozen=True)
class Encoded:
    """A task's texts as the examples that a model reads.

    starts: of texts in blocks, where the blocks of each begin, int64 [n + 1]; None where a text is one example.
    """

    examples: data.ExampleSet
    starts: np.ndarray | None = None

    def subsets(self, parts: Sequence[np.ndarray]) -> list[Subset]:
        """The examples of each part of the texts, all of one set. parts: the texts of each, by their indices."""
        if isinstance(self.examples, Blocks):
            blocks, owned = self.examples.shared_out(parts)
            return [Subset(blocks, indices) for indices in owned]
        return [Subset(self.examples, self._of(texts)) for texts in parts]

    def subset(self, texts: np.ndarray) -> Subset:
        """The examples of some texts, by the texts' indices."""
        return self.subsets([texts])[0]

    def _of(self, texts: np.ndarray) -> np.ndarray:
        if self.starts is None:
            return texts
        begins, ends = self.starts[texts], self.starts[texts + 1]
        return np.fromiter(chain.from_iterable(map(range, begins, ends)), np.int64, int((ends - begins).sum()))


def encode(examples: Examples, tokenizer: Any, max_length: int, task: Task | None = None) -> Encoded:
    """Tokenise one or two texts an example, or one in words where they are tagged, to `max_length` tokens at most.

    A longer text is cut, of two the longer one; or, where the task has `long_texts` "blocks", all of it is kept, as
    examples of its own, of at most that length each, special tokens included. Where it has "packed", texts are kept
    whole, and put end to end, in blocks of exactly that length.
    """
    pieces: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    for found in encoded_pieces(examples, tokenizer, max_length, task):
        for name, piece in found.items():
            pieces[name].append(piece)
    return from_arrays({name: np.concatenate(found) for name, found in pieces.items()})


def encoded_pieces(
    examples: Examples, tokenizer: Any, max_length: int, task: Task | None
) -> Iterator[dict[str, np.ndarray]]:
    """The arrays of what `encode` makes, a few thousand texts at a time: each name's pieces stand end to end.

    Texts are read in order, and none is held once its piece is there.
    """
    if task is not None and task.long_texts == "packed":
        yield from _packed_pieces(examples, tokenizer, max_length)
        return
    tokens = blocks = 0
    for number, some in enumerate(_some_at_once(examples)):
        encoded = _encoded(some, tokenizer, max_length, task)
        found = encoded.examples
        assert isinstance(found, data.Examples)
        pieces = {
            "tokens": np.asarray(found.tokens),
            "types": np.asarray(found.types),
            "offsets": found.offsets[number > 0 :] + tokens,
            "labels": found.labels,
        }
        if found.targets is not None:
            pieces["targets"] = np.asarray(found.targets)
        if encoded.starts is not None:
            pieces["starts"] = encoded.starts[number > 0 :] + blocks
        if number == 0:
            pieces["padding_id"] = np.array([found.padding_id])
        yield pieces
        tokens, blocks = tokens + len(found.tokens), blocks + len(found)


def _packed_pieces(examples: Examples, tokenizer: Any, max_length: int) -> Iterator[dict[str, np.ndarray]]:
    """Whole texts, each closed by the separator, or by the end token where there is none.

    Blocks open with the tokenizer's [CLS] or <s>, where it has one, as fairseq opens those that a masked LM reads: it
    stands first in fine-tuning, too.
    """
    closing = tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id
    opening = tokenizer.cls_token_id
    tokens = 0
    for number, some in enumerate(_some_at_once(examples)):
        texts = [text for (text,) in some.texts]
        rows = tokenizer(texts, add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]
        offsets = tokens + np.concatenate([[0], np.cumsum([len(row) + 1 for row in rows])]).astype(np.int64)
        pieces = {
            "tokens": _flat([[*row, closing] for row in rows], int(offsets[-1]) - tokens),
            "offsets": offsets[number > 0 :],
        }
        if number == 0:
            pieces["padding_id"] = np.array([tokenizer.pad_token_id or 0])
            pieces["block"] = np.array([max_length, -1 if opening is None else opening])
        yield pieces
        tokens = int(offsets[-1])


def from_arrays(arrays: Mapping[str, Numbers]) -> Encoded:
    """What `encode` made, from its whole arrays; those OF_TOKENS may be in a file."""
    in_memory = {name: np.asarray(array) for name, array in arrays.items() if name not in OF_TOKENS}
    if "block" in in_memory:
        length, opening = in_memory["block"].tolist()
        padding_id = int(in_memory["padding_id"][0])
        return Encoded(
            packed(arrays["tokens"], in_memory["offsets"], length, padding_id, None if opening < 0 else opening)
        )
    examples = data.Examples(
        tokens=arrays["tokens"],
        types=arrays["types"],
        offsets=in_memory["offsets"],
        labels=in_memory["labels"],
        padding_id=int(in_memory["padding_id"][0]),
        targets=arrays.get("targets"),
    )
    return Encoded(examples, in_memory.get("starts"))


def _some_at_once(examples: Examples) -> Iterator[Examples]:
    """The examples, a few thousand at a time, and fewer where texts are long."""

    def some() -> Examples:
        span = slice(start, start + len(texts))
        return Examples(tuple(texts), examples.labels[span], None if examples.tags is None else examples.tags[span])

    texts: list[tuple[str, ...]] = []
    start = characters = 0
    for text in examples.texts:
        length = sum(map(len, text))
        if texts and (len(texts) == AT_ONCE or characters + length > CHARACTERS_AT_ONCE):
            yield some()
            start, characters, texts = start + len(texts), 0, []
        texts.append(text)
        characters += length
    yield some()


def _encoded(examples: Examples, tokenizer: Any, max_length: int, task: Task | None) -> Encoded:
    blocks = task is not None and task.long_texts == "blocks"
    in_words = examples.tags is not None
    columns = [list(examples.texts)] if in_words else [list(column) for column in zip(*examples.texts, strict=True)]
    encoded = tokenizer(
        *columns,
        truncation=True,
        max_length=max_length,
        return_overflowing_tokens=blocks,
        is_split_into_words=in_words,
        return_token_type_ids=True,
        return_attention_mask=False,
    )
    ids = encoded["input_ids"]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in ids])]).astype(np.int64)
    found = data.Examples(
        tokens=_flat(ids, int(offsets[-1])),
        types=_flat(encoded["token_type_ids"], int(offsets[-1])),
        offsets=offsets,
        labels=examples.labels.astype(np.float32 if np.issubdtype(examples.labels.dtype, np.floating) else np.int64),
        padding_id=tokenizer.pad_token_id or 0,
    )
    if task is not None and task.objective in TARGETS:
        found = replace(found, targets=TARGETS[task.objective](found, examples, encoded, tokenizer))
    if not blocks:
        return Encoded(found)
    of_text = np.asarray(encoded["overflow_to_sample_mapping"], dtype=np.int64)
    starts = np.searchsorted(of_text, np.arange(len(examples) + 1))
    return Encoded(replace(found, labels=found.labels[of_text]), starts)


def vocabulary_of(tokenizer: Any, words: int) -> Vocabulary:
    """A tokenizer's ordinary tokens and its mask; words: rows of the model's word embeddings."""
    special = np.array(sorted(tokenizer.all_special_ids), dtype=np.int64)
    return Vocabulary(words, np.setdiff1d(np.arange(len(tokenizer)), special), tokenizer.mask_token_id)


def _own_tokens(found: data.Examples, examples: Examples, encoded: Any, tokenizer: Any) -> np.ndarray:
    """Each token itself; special tokens are not asked for: [CLS] and [SEP] are known, [UNK] is no word."""
    targets: np.ndarray = np.where(np.isin(found.tokens, tokenizer.all_special_ids), IGNORED, found.tokens)
    return targets.astype(np.int64)


def _word_tags(found: data.Examples, examples: Examples, encoded: Any, tokenizer: Any) -> np.ndarray:
    """A word's tag at its first token (Devlin et al. 2019, section 5.3); nothing is asked of its other tokens."""
    targets = np.full(len(found.tokens), IGNORED, dtype=np.int64)
    rows = range(len(found.offsets) - 1)
    of_text = encoded.get("overflow_to_sample_mapping", rows)  # where texts are in blocks, which may cut a word
    before: tuple[int, int] | None = None
    for row, text in zip(rows, of_text, strict=True):
        for place, word in enumerate(encoded.word_ids(row), start=int(found.offsets[row])):
            if word is not None and (text, word) != before:
                before = text, word
                targets[place] = (examples.tags or ())[text][word]
    return targets


# Objectives whose targets stand in the data: the others draw theirs, or follow from the ids.
TARGETS: Mapping[str, Callable[[data.Examples, Examples, Any, Any], np.ndarray]] = {
    "token_recovery": _own_tokens,
    "token_classification": _word_tags,
}


def _flat(rows: list[list[int]], total: int) -> np.ndarray:
    return np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=total)
