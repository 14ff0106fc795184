"""The cache of tokenised examples: runs with the same texts and the same tokenizer tokenise them once."""

from __future__ import annotations

import hashlib
import logging
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from benchmarks.encoders.encoding import TARGETS, Encoded, encode, from_batches, record_batches
from benchmarks.errors import UserError
from benchmarks.run_config import canonical_json
from benchmarks.running.run_options import require_writable
from benchmarks.tasks.base import Examples, Task
from fedsim.stored import FileCache

logger = logging.getLogger(__name__)
LIMIT_BYTES = 4 * 10**9
VERSION = 2  # of the tokens that `encode` makes of the same texts


class TokenCache:
    """A folder of Arrow files, each named by the digest of everything that decides its tokens.

    If the disk is full or cannot be written to, examples are tokenised without the cache.
    """

    def __init__(self, folder: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self.folder = folder
        self.files = FileCache(folder, ".arrow", limit_bytes)

    def encode(self, examples: Examples, tokenizer: Any, max_length: int, task: Task | None = None) -> Encoded:
        """The result of `encode`, from the cache if it is there; its tokens stay on the disk."""

        def write(file: IO[bytes]) -> None:
            batches = record_batches(examples, tokenizer, max_length, task)
            first = next(batches)
            with pa.ipc.new_file(file, first.schema) as writer:
                writer.write_batch(first)
                for batch in batches:
                    writer.write_batch(batch)

        try:
            require_writable(self.folder)
            file = self.files.open(key_of(examples, tokenizer, max_length, task), write)
        except (UserError, OSError) as error:
            logger.warning("tokens cannot be kept in %s (%s)", self.folder, error)
            return encode(examples, tokenizer, max_length, task)
        reader = pa.ipc.open_file(pa.py_buffer(file.buffer))
        batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        return from_batches(batches, len(examples), tokenizer, max_length, task, file)


def key_of(examples: Examples, tokenizer: Any, max_length: int, task: Task | None) -> str:
    """A digest of everything that decides the tokens: texts, labels, tags, tokenizer and the task's own choices."""
    state = hashlib.sha256()
    settings = {
        "version": VERSION,
        "libraries": [metadata.version(name) for name in ("tokenizers", "transformers")],
        "class": type(tokenizer).__name__,
        "special": [tokenizer.special_tokens_map, tokenizer.pad_token_id, sorted(tokenizer.all_special_ids)],
        "sides": [tokenizer.truncation_side, tokenizer.model_input_names],
        "max_length": max_length,
        "long_texts": task.long_texts if task is not None else "cut",
        "targets": task.objective if task is not None and task.objective in TARGETS else None,
    }
    # Without the truncation and padding that the tokenizer's last call has set.
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
