"""The cache of tokenised examples: a text is tokenised once for all cells that read it with the same tokenizer."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.array_file import read_arrays, write_arrays
from benchmarks.encoding import OF_TOKENS, TARGETS, Encoded, encode, encoded_pieces, from_arrays
from benchmarks.errors import UserError
from benchmarks.settings import require_writable
from benchmarks.spec import canonical_json
from benchmarks.tasks.base import Examples, Task
from fedsim.files import FileError, MissingFileError, open_file
from fedsim.leases import held
from fedsim.stored import Numbers

logger = logging.getLogger(__name__)
LIMIT_BYTES = 4 * 10**9
VERSION = 1  # of what `encode` makes of the same texts
SUFFIX, PARTIAL = ".tokens", ".partial"
DIGEST_BYTES = 65  # of a file's beginning: the SHA-256 of the rest, in hexadecimal, and a new line


class TokenCache:
    """A folder of token files, each named by the digest of all that decides it; the least recently used go first.

    A file gets its name when it is whole, and begins with the SHA-256 of the rest: a damaged one is computed anew. A
    lease a file keeps processes from computing it twice. A disk that is full, or may not be written to, costs the cache
    and nothing else.
    """

    def __init__(self, folder: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes

    def encode(self, examples: Examples, tokenizer: Any, max_length: int, task: Task | None = None) -> Encoded:
        """What `encode` makes of the examples, from the file where there is one; its tokens stay on the disk.

        They are read where a batch asks for them, so memory does not grow with the texts.
        """
        try:
            require_writable(self.folder)
        except UserError:
            return encode(examples, tokenizer, max_length, task)
        name = key_of(examples, tokenizer, max_length, task)
        path = self.folder / f"{name}{SUFFIX}"
        with held(self.folder / f"{name}.lock"):
            if _is_whole(path):
                with suppress(OSError):
                    os.utime(path)
                try:
                    return from_arrays(read_arrays(path, DIGEST_BYTES, OF_TOKENS))
                except (FileError, KeyError) as error:  # its digest fits what is in it, and that is no tokens
                    logger.warning("tokens in %s are damaged (%s): they are computed anew", path, error)
            try:
                return from_arrays(self._kept(path, encoded_pieces(examples, tokenizer, max_length, task)))
            except OSError as error:
                logger.warning("tokens could not be kept in %s (%s)", path, error.strerror)
        return encode(examples, tokenizer, max_length, task)

    def _kept(self, path: Path, pieces: Iterable[Mapping[str, np.ndarray]]) -> dict[str, Numbers]:
        """The pieces' arrays in a file, once there is room for it; one larger than the limit goes with its readers."""
        partial = path.with_suffix(PARTIAL)
        try:
            with partial.open("wb") as file:
                file.write(bytes(DIGEST_BYTES))
                digest = write_arrays(file, pieces, self.folder)
                file.seek(0)
                file.write(f"{digest}\n".encode())
                file.flush()
                os.fsync(file.fileno())
            arrays = read_arrays(partial, DIGEST_BYTES, OF_TOKENS)
            size = partial.stat().st_size
            if size <= self.limit_bytes:
                self._make_room(size, path)
                partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        return arrays

    def _make_room(self, size: int, path: Path) -> None:
        """Remove what was used least recently, until a file of that size has its place."""
        with held(self.folder / "room.lock"):
            files = sorted(self.folder.glob(f"*{SUFFIX}"), key=lambda file: file.stat().st_mtime_ns)
            taken = sum(file.stat().st_size for file in files if file != path)
            for file in files:
                if file != path and taken + size > self.limit_bytes:
                    taken -= file.stat().st_size
                    file.unlink()


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


def _is_whole(path: Path) -> bool:
    """Whether there is a file, and it is what was written."""
    try:
        with open_file(path) as file:
            written = file.read(DIGEST_BYTES)
            whole = written == f"{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode()
    except MissingFileError:
        return False
    except FileError as error:
        logger.warning("tokens cannot be read (%s): they are computed anew", error)
        return False
    if not whole:
        logger.warning("tokens in %s are damaged: they are computed anew", path)
    return whole
