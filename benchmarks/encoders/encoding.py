"""Converts a task's texts to token arrays for training, and caches them: each text is tokenised once."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from benchmarks.errors import UserError
from benchmarks.run_config import canonical_json
from benchmarks.running.run_options import require_writable
from benchmarks.tasks.base import Task, TextExamples
from fedsim import data
from fedsim.data import IGNORED, Blocks, Subset, packed
from fedsim.objectives import Vocabulary
from fedsim.stored import Chunks, FileCache, Numbers

logger = logging.getLogger(__name__)
VERSION = 3  # raised when `encode` gives other tokens for the same texts
LIMIT_BYTES = 4 * 10**9  # of the cache
ID_LISTS = pa.list_(pa.int32())
AT_ONCE = 8192  # texts: a tokenizer's output needs a hundred times the tokens' memory
CHARACTERS_AT_ONCE = 10**6


@dataclass(frozen=True)
class Encoded:
    """A task's texts as model inputs.

    starts: the first block of each text, int64 [n + 1]; None if each text is one example.
    cut: whether a text had more tokens than `max_length`, bool [n]; None if no text is cut.
    """

    examples: data.ExampleSet
    starts: np.ndarray | None = None
    cut: np.ndarray | None = None

    def subsets(self, parts: Sequence[np.ndarray]) -> list[Subset]:
        """The examples for each part of the texts, in one shared set. parts: indices of texts."""
        if isinstance(self.examples, Blocks):
            blocks, owned = self.examples.shared_out(parts)
            return [Subset(blocks, indices) for indices in owned]
        return [Subset(self.examples, self._of(texts)) for texts in parts]

    def subset(self, texts: np.ndarray) -> Subset:
        """The examples for the given texts. texts: their indices."""
        return self.subsets([texts])[0]

    def _of(self, texts: np.ndarray) -> np.ndarray:
        if self.starts is None:
            return texts
        begins, ends = self.starts[texts], self.starts[texts + 1]
        return np.fromiter(chain.from_iterable(map(range, begins, ends)), np.int64, int((ends - begins).sum()))


def encode(examples: TextExamples, tokenizer: Any, max_length: int, task: Task) -> Encoded:
    """Tokenise one or two texts per example, or one text in words if it is tagged, to at most `max_length` tokens.

    Longer texts are truncated, in a pair the longer one. If the task's `long_texts` is "blocks", the rest of a text
    becomes further examples of at most that length, with special tokens. If it is "packed", whole texts are joined
    into blocks of exactly that length.
    """
    batches = list(record_batches(examples, tokenizer, max_length, task))
    return from_batches(batches, len(examples), tokenizer, max_length, task)


def record_batches(examples: TextExamples, tokenizer: Any, max_length: int, task: Task) -> Iterator[pa.RecordBatch]:
    """The examples of `encode`, one per row, with the columns for `from_batches`.

    It holds a few thousand texts at a time, fewer if they are long.
    """
    make = _packed if task.long_texts == "packed" else _encoded
    texts: list[tuple[str, ...]] = []
    first = characters = 0

    def part() -> TextExamples:
        span = slice(first, first + len(texts))
        return TextExamples(tuple(texts), examples.labels[span], examples.tags and examples.tags[span])

    for number, text in enumerate(examples.texts):
        length = sum(map(len, text))
        if texts and (len(texts) == AT_ONCE or characters + length > CHARACTERS_AT_ONCE):
            yield make(part(), first, tokenizer, max_length, task)
            first, characters, texts = number, 0, []
        texts.append(text)
        characters += length
    yield make(part(), first, tokenizer, max_length, task)


def from_batches(
    batches: Sequence[pa.RecordBatch],
    texts: int,
    tokenizer: Any,
    max_length: int,
    task: Task,
    on_disk: bool = False,
) -> Encoded:
    """The examples in all record batches.

    Args:
        batches: Columns "tokens" and "types", lists of int32; "targets", lists of int64, if the task has targets;
            "labels"; "cut", if long texts are truncated; and "text", the index of an example's text. Packed texts have
            only tokens.
        texts: The number of texts.
        tokenizer: Gives the padding token, and the first token of packed blocks.
        max_length: The length of packed blocks.
        task: Determines the form of the examples.
        on_disk: Whether the tokens stay in a mapped file.
    """

    def flat(name: str) -> Numbers:
        chunks = [batch[name].flatten().to_numpy(zero_copy_only=True) for batch in batches]
        return Chunks(chunks) if on_disk else np.concatenate(chunks)

    def column(name: str) -> np.ndarray:
        return np.concatenate([batch[name].to_numpy() for batch in batches])

    lengths = np.concatenate([np.diff(batch["tokens"].offsets.to_numpy()) for batch in batches])
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    padding_id = tokenizer.pad_token_id or 0
    if task.long_texts == "packed":
        return Encoded(packed(flat("tokens"), offsets, max_length, padding_id, tokenizer.cls_token_id))
    examples = data.Examples(
        tokens=flat("tokens"),
        types=flat("types"),
        offsets=offsets,
        labels=column("labels"),
        padding_id=padding_id,
        targets=flat("targets") if "targets" in batches[0].schema.names else None,
    )
    if task.long_texts == "blocks":
        return Encoded(examples, np.searchsorted(column("text"), np.arange(texts + 1)))
    return Encoded(examples, cut=np.concatenate([batch["cut"].to_numpy(zero_copy_only=False) for batch in batches]))


def _packed(examples: TextExamples, first: int, tokenizer: Any, max_length: int, task: Task) -> pa.RecordBatch:
    """Whole texts, each ended by the separator, or the end token without a separator.

    Blocks begin with the tokenizer's [CLS] or <s>, if any, as in fairseq's masked LM and in fine-tuning.
    """
    closing = tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id
    texts = [text for (text,) in examples.texts]
    rows = tokenizer(texts, add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]
    return pa.record_batch({"tokens": pa.array([[*row, closing] for row in rows], ID_LISTS)})


def _encoded(examples: TextExamples, first: int, tokenizer: Any, max_length: int, task: Task) -> pa.RecordBatch:
    """Texts with special tokens. first: the number of the first text."""
    blocks = task.long_texts == "blocks"
    is_tagged = examples.tags is not None
    columns = [list(examples.texts)] if is_tagged else [list(column) for column in zip(*examples.texts, strict=True)]
    encoded = tokenizer(
        *columns,
        truncation=True,
        max_length=max_length,
        return_overflowing_tokens=blocks,
        is_split_into_words=is_tagged,
        return_token_type_ids=True,
        return_attention_mask=False,
    )
    tokens, types = (pa.array(encoded[name], ID_LISTS) for name in ("input_ids", "token_type_ids"))
    of_text = np.asarray(encoded.get("overflow_to_sample_mapping", range(len(tokens))), dtype=np.int64)
    labels = examples.labels.astype(np.float32 if np.issubdtype(examples.labels.dtype, np.floating) else np.int64)
    arrays = {"tokens": tokens, "types": types, "labels": labels[of_text]}
    if task.objective in TARGETS:
        targets = TARGETS[task.objective](tokens, of_text, examples, encoded, tokenizer)
        arrays["targets"] = pa.ListArray.from_arrays(tokens.offsets, pa.array(targets))
    if not blocks:
        arrays["cut"] = pa.array([bool(row.overflowing) for row in encoded.encodings], pa.bool_())
    return pa.record_batch({**arrays, "text": first + of_text})


def vocabulary_of(tokenizer: Any, vocab_size: int) -> Vocabulary:
    """A tokenizer's ordinary tokens and its mask; vocab_size: rows of the model's word embeddings."""
    special = np.array(sorted(tokenizer.all_special_ids), dtype=np.int64)
    return Vocabulary(vocab_size, np.setdiff1d(np.arange(len(tokenizer)), special), tokenizer.mask_token_id)


def _ordinary_tokens(
    tokens: pa.ListArray, of_text: np.ndarray, examples: TextExamples, encoded: Any, tokenizer: Any
) -> np.ndarray:
    """The tokens as targets, except special tokens: [CLS] and [SEP] are given, and [UNK] is not a word."""
    ids = tokens.values.to_numpy().astype(np.int64)
    return np.where(np.isin(ids, tokenizer.all_special_ids), IGNORED, ids)


def _word_tags(
    tokens: pa.ListArray, of_text: np.ndarray, examples: TextExamples, encoded: Any, tokenizer: Any
) -> np.ndarray:
    """Each word's tag at its first token (Devlin et al. 2019, section 5.3); other tokens have no tag."""
    targets = np.full(len(tokens.values), IGNORED, dtype=np.int64)
    before: tuple[int, int] | None = None  # blocks may split a word
    for row, (text, start) in enumerate(zip(of_text.tolist(), tokens.offsets.to_pylist()[:-1], strict=True)):
        for place, word in enumerate(encoded.word_ids(row), start=start):
            if word is not None and (text, word) != before:
                before = text, word
                targets[place] = (examples.tags or ())[text][word]
    return targets


# Objectives with targets in the data; others draw targets, or derive them from the ids.
TARGETS: Mapping[str, Callable[[pa.ListArray, np.ndarray, TextExamples, Any, Any], np.ndarray]] = {
    "token_recovery": _ordinary_tokens,
    "token_classification": _word_tags,
}


class TokenCache:
    """A folder of Arrow files, named by the digest of everything that determines their tokens.

    If the disk is full or not writable, texts are tokenised without the cache.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def encode(self, examples: TextExamples, tokenizer: Any, max_length: int, task: Task) -> Encoded:
        """The result of `encode`, from the cache if possible; its tokens stay on disk."""

        def write(file: IO[bytes]) -> None:
            batches = record_batches(examples, tokenizer, max_length, task)
            first = next(batches)
            with pa.ipc.new_file(file, first.schema) as writer:
                writer.write_batch(first)
                for batch in batches:
                    writer.write_batch(batch)

        try:
            require_writable(self.folder)
            files = FileCache(self.folder, ".arrow", LIMIT_BYTES)
            file = files.open(key_of(examples, tokenizer, max_length, task), write)
        except (UserError, OSError) as error:
            logger.warning("tokens cannot be kept in %s (%s)", self.folder, error)
            return encode(examples, tokenizer, max_length, task)
        reader = pa.ipc.open_file(pa.py_buffer(file))
        batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        return from_batches(batches, len(examples), tokenizer, max_length, task, on_disk=True)


def key_of(examples: TextExamples, tokenizer: Any, max_length: int, task: Task) -> str:
    """A digest of everything that determines the tokens: texts, labels, tags, tokenizer and the task's settings."""
    state = hashlib.sha256()
    settings = {
        "version": VERSION,
        "libraries": [metadata.version(name) for name in ("tokenizers", "transformers")],
        "class": type(tokenizer).__name__,
        "special": [tokenizer.special_tokens_map, tokenizer.pad_token_id, sorted(tokenizer.all_special_ids)],
        "sides": [tokenizer.truncation_side, tokenizer.model_input_names],
        "max_length": max_length,
        "long_texts": task.long_texts,
        "targets": task.objective if task.objective in TARGETS else None,
    }
    # Without the truncation and padding from the tokenizer's last call.
    plain = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    plain.no_truncation()
    plain.no_padding()
    state.update(canonical_json(settings).encode())
    state.update(hashlib.sha256(plain.to_str().encode()).digest())
    state.update(f"{len(examples)} {examples.labels.dtype}".encode())
    state.update(np.ascontiguousarray(examples.labels).data)
    state.update(repr(examples.tags).encode())
    for texts in examples.texts:
        state.update(repr(texts).encode())
    return state.hexdigest()[:32]
