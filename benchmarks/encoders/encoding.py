"""From a task's texts to the token arrays that clients train on; each text is tokenised once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.tasks.base import Examples, Task
from fedsim import data
from fedsim.data import IGNORED, Blocks, Subset, packed
from fedsim.objectives import Vocabulary
from fedsim.stored import Chunks, MappedFile, Numbers

AT_ONCE = 8192  # texts: a tokenizer's answer takes a hundred times the memory of the tokens
CHARACTERS_AT_ONCE = 10**6


@dataclass(frozen=True)
class Encoded:
    """A task's texts as examples for a model.

    starts: the first block of each text, int64 [n + 1]; None if a text is one example.
    """

    examples: data.ExampleSet
    starts: np.ndarray | None = None

    def subsets(self, parts: Sequence[np.ndarray]) -> list[Subset]:
        """The examples of each part of the texts, which share one set. parts: indices of texts."""
        if isinstance(self.examples, Blocks):
            blocks, owned = self.examples.shared_out(parts)
            return [Subset(blocks, indices) for indices in owned]
        return [Subset(self.examples, self._of(texts)) for texts in parts]

    def subset(self, texts: np.ndarray) -> Subset:
        """The examples of some texts. texts: their indices."""
        return self.subsets([texts])[0]

    def _of(self, texts: np.ndarray) -> np.ndarray:
        if self.starts is None:
            return texts
        begins, ends = self.starts[texts], self.starts[texts + 1]
        return np.fromiter(chain.from_iterable(map(range, begins, ends)), np.int64, int((ends - begins).sum()))


def encode(examples: Examples, tokenizer: Any, max_length: int, task: Task | None = None) -> Encoded:
    """Tokenise one or two texts an example, or one in words if they are tagged, to at most `max_length` tokens.

    A longer text is cut, of two the longer one. If the task's `long_texts` are in "blocks", the rest of a text becomes
    further examples, of at most that length each with special tokens. If they are "packed", whole texts are put end to
    end, in blocks of exactly that length.
    """
    batches = list(record_batches(examples, tokenizer, max_length, task))
    return from_batches(batches, len(examples), tokenizer, max_length, task)


def record_batches(examples: Examples, tokenizer: Any, max_length: int, task: Task | None) -> Iterator[pa.RecordBatch]:
    """The examples that `encode` returns, a row each, with the columns that `from_batches` reads.

    A few thousand texts are held at a time, and fewer if they are long.
    """
    make = _packed if _is_packed(task) else _encoded
    texts: list[tuple[str, ...]] = []
    first = characters = 0
    for number, text in enumerate(examples.texts):
        length = sum(map(len, text))
        if texts and (len(texts) == AT_ONCE or characters + length > CHARACTERS_AT_ONCE):
            yield make(_part(examples, texts, first), first, tokenizer, max_length, task)
            first, characters, texts = number, 0, []
        texts.append(text)
        characters += length
    yield make(_part(examples, texts, first), first, tokenizer, max_length, task)


def _part(examples: Examples, texts: list[tuple[str, ...]], first: int) -> Examples:
    span = slice(first, first + len(texts))
    return Examples(tuple(texts), examples.labels[span], None if examples.tags is None else examples.tags[span])


def from_batches(
    batches: Sequence[pa.RecordBatch],
    texts: int,
    tokenizer: Any,
    max_length: int,
    task: Task | None,
    file: MappedFile | None = None,
) -> Encoded:
    """The examples of all record batches.

    Args:
        batches: Columns "tokens" and "types", lists of int32; "targets", lists of int64, if the task has some;
            "labels"; and "text", the number of an example's text. Packed texts have only tokens.
        texts: The number of texts.
        tokenizer: Says which token pads, and which opens packed blocks.
        max_length: Of packed blocks.
        task: Decides the form of the examples.
        file: The file that holds the tokens, which stay there; None if they are in memory.
    """

    def flat(name: str) -> Numbers:
        chunks = [batch[name].flatten().to_numpy(zero_copy_only=True) for batch in batches]
        return Chunks(chunks, file) if file is not None else np.concatenate(chunks)

    def column(name: str) -> np.ndarray:
        return np.concatenate([batch[name].to_numpy() for batch in batches])

    lengths = np.concatenate([np.diff(batch["tokens"].offsets.to_numpy()) for batch in batches])
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    padding_id = tokenizer.pad_token_id or 0
    if _is_packed(task):
        return Encoded(packed(flat("tokens"), offsets, max_length, padding_id, tokenizer.cls_token_id))
    examples = data.Examples(
        tokens=flat("tokens"),
        types=flat("types"),
        offsets=offsets,
        labels=column("labels"),
        padding_id=padding_id,
        targets=flat("targets") if "targets" in batches[0].schema.names else None,
    )
    in_blocks = task is not None and task.long_texts == "blocks"
    return Encoded(examples, np.searchsorted(column("text"), np.arange(texts + 1)) if in_blocks else None)


def _is_packed(task: Task | None) -> bool:
    return task is not None and task.long_texts == "packed"


def _packed(examples: Examples, first: int, tokenizer: Any, max_length: int, task: Task | None) -> pa.RecordBatch:
    """Whole texts, each closed by the separator, or by the end token if there is no separator.

    Blocks open with the tokenizer's [CLS] or <s>, if it has one, as fairseq opens the blocks of a masked LM: it is the
    first token in fine-tuning, too.
    """
    closing = tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id
    texts = [text for (text,) in examples.texts]
    rows = tokenizer(texts, add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]
    rows = [[*row, closing] for row in rows]
    return pa.record_batch({"tokens": _lists(_flat(rows), _offsets(rows))})


def _encoded(examples: Examples, first: int, tokenizer: Any, max_length: int, task: Task | None) -> pa.RecordBatch:
    """Texts with special tokens. first: the number of the first text."""
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
    offsets, tokens = _offsets(ids), _flat(ids)
    of_text = np.asarray(encoded.get("overflow_to_sample_mapping", range(len(ids))), dtype=np.int64)
    labels = examples.labels.astype(np.float32 if np.issubdtype(examples.labels.dtype, np.floating) else np.int64)
    types = _lists(_flat(encoded["token_type_ids"]), offsets)
    arrays = {"tokens": _lists(tokens, offsets), "types": types, "labels": labels[of_text]}
    if task is not None and task.objective in TARGETS:
        arrays["targets"] = _lists(TARGETS[task.objective](tokens, offsets, examples, encoded, tokenizer), offsets)
    return pa.record_batch({**arrays, "text": first + of_text})


def vocabulary_of(tokenizer: Any, words: int) -> Vocabulary:
    """A tokenizer's ordinary tokens and its mask; words: rows of the model's word embeddings."""
    special = np.array(sorted(tokenizer.all_special_ids), dtype=np.int64)
    return Vocabulary(words, np.setdiff1d(np.arange(len(tokenizer)), special), tokenizer.mask_token_id)


def _own_tokens(
    tokens: np.ndarray, offsets: np.ndarray, examples: Examples, encoded: Any, tokenizer: Any
) -> np.ndarray:
    """Each token itself, except special tokens: [CLS] and [SEP] are known, and [UNK] is not a word."""
    targets: np.ndarray = np.where(np.isin(tokens, tokenizer.all_special_ids), IGNORED, tokens)
    return targets.astype(np.int64)


def _word_tags(tokens: np.ndarray, offsets: np.ndarray, examples: Examples, encoded: Any, tokenizer: Any) -> np.ndarray:
    """A word's tag at its first token (Devlin et al. 2019, section 5.3); its other tokens have none."""
    targets = np.full(len(tokens), IGNORED, dtype=np.int64)
    rows = range(len(offsets) - 1)
    of_text = encoded.get("overflow_to_sample_mapping", rows)  # blocks may cut a word
    before: tuple[int, int] | None = None
    for row, text in zip(rows, of_text, strict=True):
        for place, word in enumerate(encoded.word_ids(row), start=int(offsets[row])):
            if word is not None and (text, word) != before:
                before = text, word
                targets[place] = (examples.tags or ())[text][word]
    return targets


# Objectives whose targets are in the data; the others draw theirs, or derive them from the ids.
TARGETS: Mapping[str, Callable[[np.ndarray, np.ndarray, Examples, Any, Any], np.ndarray]] = {
    "token_recovery": _own_tokens,
    "token_classification": _word_tags,
}


def _offsets(rows: Sequence[Sequence[int]]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])


def _lists(values: np.ndarray, offsets: np.ndarray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))


def _flat(rows: list[list[int]]) -> np.ndarray:
    return np.fromiter(chain.from_iterable(rows), dtype=np.int32)
