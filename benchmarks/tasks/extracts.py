"""Texts out of archives and streams, written once into a plain file: one passage a line."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.run_config import JSON, digest
from benchmarks.tasks.base import Skipped
from fedsim.files import open_file, read_json
from fedsim.locks import held

VERSION = 2  # of what is written of the same sources


@dataclass(frozen=True)
class Notes:
    """What a source's reader says of it while it reads: rows that leniency skipped, and counts of what it left out."""

    skipped: list[Skipped] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Extract:
    """A file of passages, and what was said when it was written."""

    file: Path
    notes: tuple[str, ...]
    skipped: tuple[Skipped, ...]


def extract(
    folder: Path | None, key: JSON, read: Callable[[Notes], Iterator[str]], limit: int, empty: bool = False
) -> Extract:
    """The first `limit` passages of a source, out of the file where they were written before.

    key: plain values of all that decides the passages. Each is written on a line of its own, with single blanks; empty:
    also where nothing is left of it. A file counts once its notes are there, with its SHA-256; a damaged one is written
    anew.
    folder None: a temporary one, which goes with the process. UserError where the folder cannot be written.
    """
    folder = folder or Path(_temporary().name)
    name = digest({"version": VERSION, "limit": limit, "of": key}, 24)
    file = folder / f"{name}.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held(folder / f"{name}.lock"):
            return _found(file) or _written(file, read, limit, empty)
    except OSError as error:
        raise UserError(
            f"{folder}: passages cannot be kept there ({error.strerror or error}). Set RESULTS_DIR to a folder that "
            "you may write to, with room for them"
        ) from None


def _written(file: Path, read: Callable[[Notes], Iterator[str]], limit: int, empty: bool) -> Extract:
    said, state, partial = Notes(), hashlib.sha256(), file.with_suffix(".partial")
    passages = (passage for text in read(said) if (passage := " ".join(text.split())) or empty)
    with partial.open("wb") as output:
        for passage in islice(passages, limit):
            line = f"{passage}\n".encode()
            state.update(line)
            output.write(line)
        cut = next(passages, None) is not None
        output.flush()
        os.fsync(output.fileno())
    notes = [f"{what}: {count}" for what, count in sorted(said.counts.items())]
    notes += [f"the first {limit} passages alone"] if cut else []
    content = {"sha256": state.hexdigest(), "notes": notes, "skipped": [asdict(row) for row in said.skipped]}
    partial.replace(file)
    partial.write_text(json.dumps(content), encoding="utf-8")
    partial.replace(file.with_suffix(".json"))
    return Extract(file, tuple(notes), tuple(said.skipped))


def _found(file: Path) -> Extract | None:
    """What was written before, if it is whole."""
    try:
        content = read_json(file.with_suffix(".json"))
        with open_file(file) as written:
            if hashlib.file_digest(written, "sha256").hexdigest() != content["sha256"]:
                return None
    except (ValueError, KeyError, TypeError):  # not there, or damaged
        return None
    return Extract(file, tuple(content["notes"]), tuple(Skipped(**row) for row in content["skipped"]))


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="passages-")
