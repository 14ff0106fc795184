"""From a task's texts to the token arrays that clients train on; each text is tokenised once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from benchmarks.tasks.base import Examples
from fedsim import data


def encode(
    examples: Examples, tokenizer: Any, max_length: int, answers: Literal["label", "tokens"] = "label"
) -> data.Examples:
    """Tokenise one or two texts an example, cut to `max_length` tokens by shortening the longer text.

    answers: whether the encoded labels are the examples' own, or the token ids to be recovered from them.
    """
    columns = list(zip(*examples.texts, strict=True))
    encoded = tokenizer(
        *(list(column) for column in columns),
        truncation=True,
        max_length=max_length,
        return_token_type_ids=True,
        return_attention_mask=False,
    )
    ids = encoded["input_ids"]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in ids])]).astype(np.int64)
    tokens = _flat(ids, int(offsets[-1]))
    labels = examples.labels if answers == "label" else _token_answers(tokens, offsets, tokenizer.all_special_ids)
    return data.Examples(
        tokens=tokens,
        types=_flat(encoded["token_type_ids"], int(offsets[-1])),
        offsets=offsets,
        labels=labels.astype(np.float32 if np.issubdtype(labels.dtype, np.floating) else np.int64),
        padding_id=tokenizer.pad_token_id,
    )


def _flat(rows: list[list[int]], total: int) -> np.ndarray:
    return np.fromiter((value for row in rows for value in row), dtype=np.int32, count=total)


def _token_answers(tokens: np.ndarray, offsets: np.ndarray, special_ids: list[int]) -> np.ndarray:
    """Each text's ids, [n, longest]; special tokens are not asked for: [CLS] and [SEP] are known, [UNK] is no word."""
    lengths = np.diff(offsets)
    answers = np.full((len(lengths), lengths.max(initial=0)), data.NOT_ASKED, dtype=np.int64)
    answers[np.arange(answers.shape[1]) < lengths[:, None]] = np.where(
        np.isin(tokens, special_ids), data.NOT_ASKED, tokens
    )
    return answers
