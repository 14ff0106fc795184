"""From a task's texts to the token arrays that clients train on; each text is tokenised once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from benchmarks.tasks.base import Examples, Task
from fedsim import data
from fedsim.data import IGNORED, Subset
from fedsim.objectives import Vocabulary

AT_ONCE = 8192  # texts: a tokenizer's answer takes a hundred times the memory of what is kept of it


@dataclass(frozen=True)
class Encoded:
    """A task's texts as the examples that a model reads.

    starts: of texts in blocks, where the blocks of each begin, int64 [n + 1]; None where a text is one example.
    """

    examples: data.ExampleSet
    starts: np.ndarray | None = None

    def subset(self, texts: np.ndarray) -> Subset:
        """The examples of some texts, by the texts' indices."""
        if self.starts is None:
            return Subset(self.examples, texts)
        spans = [np.arange(self.starts[text], self.starts[text + 1]) for text in texts]
        return Subset(self.examples, np.concatenate([np.empty(0, dtype=np.int64), *spans]))


def encode(examples: Examples, tokenizer: Any, max_length: int, task: Task | None = None) -> Encoded:
    """Tokenise one or two texts an example, or one in words where they are tagged, to `max_length` tokens at most.

    A longer text is cut, of two the longer one; or, where the task has `long_texts` "blocks", all of it is kept, as
    examples of its own, of at most that length each, special tokens included.
    """
    parts = [
        _encoded(_some(examples, start, start + AT_ONCE), tokenizer, max_length, task)
        for start in range(0, max(1, len(examples)), AT_ONCE)
    ]
    return parts[0] if len(parts) == 1 else _joined(parts)


def _some(examples: Examples, start: int, end: int) -> Examples:
    tags = None if examples.tags is None else examples.tags[start:end]
    return Examples(examples.texts[start:end], examples.labels[start:end], tags)


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


def _joined(parts: Sequence[Encoded]) -> Encoded:
    """The examples of all parts, one part behind the other."""
    found = [part.examples for part in parts]

    def all_of(name: str) -> np.ndarray:
        return np.concatenate([getattr(each, name) for each in found])

    assert isinstance(found[0], data.Examples)
    examples = data.Examples(
        tokens=all_of("tokens"),
        types=all_of("types"),
        offsets=np.concatenate([[0], np.cumsum(all_of("lengths"))]).astype(np.int64),
        labels=all_of("labels"),
        padding_id=found[0].padding_id,
        targets=None if found[0].targets is None else all_of("targets"),
    )
    if parts[0].starts is None:
        return Encoded(examples)
    blocks = np.concatenate([np.diff(part.starts) for part in parts if part.starts is not None])
    return Encoded(examples, np.concatenate([[0], np.cumsum(blocks)]).astype(np.int64))


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
