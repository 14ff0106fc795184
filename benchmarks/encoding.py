"""From a task's texts to the token arrays that clients train on; each text is tokenised once."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.tasks.base import Examples
from fedsim import data


def encode(examples: Examples, tokenizer: Any, max_length: int) -> data.Examples:
    """Tokenise one or two texts an example, cut to `max_length` tokens by shortening the longer text."""
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
    labels = examples.labels
    return data.Examples(
        tokens=_flat(ids, int(offsets[-1])),
        types=_flat(encoded["token_type_ids"], int(offsets[-1])),
        offsets=offsets,
        labels=labels.astype(np.float32 if np.issubdtype(labels.dtype, np.floating) else np.int64),
        padding_id=tokenizer.pad_token_id,
    )


def _flat(rows: list[list[int]], total: int) -> np.ndarray:
    return np.fromiter((value for row in rows for value in row), dtype=np.int32, count=total)
