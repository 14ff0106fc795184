"""The cache of tokenised examples: a text is tokenised once for all cells that read it with the same tokenizer."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from benchmarks.encoding import TARGETS, Encoded, encode
from benchmarks.errors import UserError
from benchmarks.record import write_bytes
from benchmarks.settings import require_writable
from benchmarks.spec import canonical_json
from benchmarks.tasks.base import Examples, Task
from fedsim import data

logger = logging.getLogger(__name__)
LIMIT_BYTES = 4 * 10**9
VERSION = 1  # of what `encode` makes of the same texts
SUFFIX = ".tokens"
DIGEST_BYTES = 65  # of a file's beginning: the SHA-256 of the rest, in hexadecimal, and a new line


class TokenCache:
    """A folder of token files, each named by the digest of all that decides it; the least recently used go first.

    A file gets its name when it is whole, and begins with the SHA-256 of the rest: a damaged one is computed anew. A
    lock a file keeps processes from computing it twice. A disk that is full, or may not be written to, costs the cache
    and nothing else.
    """

    def __init__(self, folder: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes

    def encode(self, examples: Examples, tokenizer: Any, max_length: int, task: Task | None = None) -> Encoded:
        """What `encode` makes of the examples, from the file where there is one."""
        from filelock import FileLock

        try:
            require_writable(self.folder)
        except UserError:
            return encode(examples, tokenizer, max_length, task)
        name = key_of(examples, tokenizer, max_length, task)
        path = self.folder / f"{name}{SUFFIX}"
        with FileLock(self.folder / f"{name}.lock"):
            arrays = _read(path)
            if arrays is not None:
                with suppress(OSError):
                    os.utime(path)
                return _encoded(arrays, int(arrays["padding_id"][0]))
            found = encode(examples, tokenizer, max_length, task)
            self._keep(path, _content(found))
        return found

    def _keep(self, path: Path, content: bytes) -> None:
        """Write a file, once there is room for it; one larger than the limit is not kept."""
        from filelock import FileLock

        if len(content) > self.limit_bytes:
            return
        try:
            with FileLock(self.folder / "room.lock"):
                files = sorted(self.folder.glob(f"*{SUFFIX}"), key=lambda file: file.stat().st_mtime_ns)
                taken = sum(file.stat().st_size for file in files if file != path)
                for file in files:
                    if file != path and taken + len(content) > self.limit_bytes:
                        taken -= file.stat().st_size
                        file.unlink()
                write_bytes(path, content)
        except OSError as error:
            logger.warning("tokens could not be kept in %s (%s)", path, error.strerror)


def key_of(examples: Examples, tokenizer: Any, max_length: int, task: Task | None) -> str:
    """A digest of all that decides the tokens: texts, labels, tags, the tokenizer and what the task makes of both."""
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
    state.update(canonical_json(settings).encode())
    state.update(hashlib.sha256(_serialised(tokenizer)).digest())
    state.update(f"{len(examples)} {examples.labels.dtype}".encode())
    state.update(np.ascontiguousarray(examples.labels).data)
    state.update(repr(examples.tags).encode())
    for texts in examples.texts:
        state.update(repr(texts).encode())
    return state.hexdigest()[:32]


def _serialised(tokenizer: Any) -> bytes:
    """The tokenizer itself, without the truncation that its last call has left in it."""
    from tokenizers import Tokenizer

    plain = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    plain.no_truncation()
    plain.no_padding()
    return str(plain.to_str()).encode()


def _content(found: Encoded) -> bytes:
    examples = found.examples
    assert isinstance(examples, data.Examples)
    arrays = {
        "tokens": examples.tokens,
        "types": examples.types,
        "offsets": examples.offsets,
        "labels": examples.labels,
        "targets": examples.targets,
        "starts": found.starts,
        "padding_id": np.array([examples.padding_id]),
    }
    content = safetensors.numpy.save(
        {name: np.ascontiguousarray(array) for name, array in arrays.items() if array is not None}
    )
    return f"{hashlib.sha256(content).hexdigest()}\n".encode() + content


def _read(path: Path) -> Mapping[str, np.ndarray] | None:
    """The arrays in a file; None where there is none, or a damaged one."""
    try:
        content = memoryview(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        logger.warning("tokens in %s cannot be read (%s): they are computed anew", path, error.strerror)
        return None
    digest, rest = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    if bytes(digest) != f"{hashlib.sha256(rest).hexdigest()}\n".encode():
        logger.warning("tokens in %s are damaged: they are computed anew", path)
        return None
    try:
        return {name: array.copy() for name, array in safetensors.numpy.load(bytes(rest)).items()}
    except SafetensorError:  # pragma: no cover - a whole file of another format
        return None


def _encoded(arrays: Mapping[str, np.ndarray], padding_id: int) -> Encoded:
    examples = data.Examples(
        tokens=arrays["tokens"],
        types=arrays["types"],
        offsets=arrays["offsets"],
        labels=arrays["labels"],
        padding_id=padding_id,
        targets=arrays.get("targets"),
    )
    return Encoded(examples, arrays.get("starts"))
