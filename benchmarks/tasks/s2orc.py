"""S2ORC (Lo et al. 2020) as its last static release has it: metadata in JSON lines, gzipped or not.

Its fields: https://github.com/allenai/s2orc, data/v2020-07-05. A structured abstract has `:::` for ends of lines.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import UserError
from benchmarks.tasks.base import Skipped
from benchmarks.tasks.extracts import Notes
from benchmarks.tasks.rows import RowError, text_fault
from fedsim.files import open_file

FOLDER = "s2orc"
FIELDS = ("title", "abstract", "mag_field_of_study")
ENDINGS = (".jsonl", ".jsonl.gz")
NUMBER = re.compile("([0-9]+)")
PARSES = "pdf_parses"  # the release's other half: full texts without their field


def metadata_files(folder: Path) -> list[Path]:
    """The files of metadata in a folder and below, in the order of their numbers."""
    files = [path for path in folder.rglob("*") if path.name.endswith(ENDINGS) and PARSES not in str(path)]
    return sorted(files, key=lambda path: [int(part) if part.isdigit() else part for part in NUMBER.split(str(path))])


def papers(files: Sequence[Path], root: Path, field: str, lenient: bool, notes: Notes) -> Iterator[str]:
    """Title and abstract of each paper of a field of study; one without words as its abstract is left out, and counted.

    root: the folder by which records name a file. UserError for a line that is no paper, or a file that ends in the
    middle, unless lenient: then it is skipped, and the rest of that file is read where there is one.
    """
    for path in files:
        number = 0
        lines = _lines(path)
        while True:
            number += 1
            try:
                line = next(lines, None)
                if line is None:
                    break
                if line.isspace():
                    continue
                paper = _paper(line)
            except RowError as error:
                if not lenient:
                    raise UserError(
                        f"{path}:{number}: {error}; get the file again, or skip such lines with --lenient"
                    ) from None
                notes.skipped.append(Skipped(path.relative_to(root).as_posix(), number, str(error)))
                continue
            if field not in (paper["mag_field_of_study"] or ()):
                continue
            title, abstract = paper["title"].strip(), (paper["abstract"] or "").replace(":::", " ").strip()
            if not abstract:
                notes.counts["papers without an abstract, left out"] += 1
                continue
            ended = not title or title.endswith((".", "!", "?"))
            yield f"{title}{'' if ended else '.'} {abstract}"


def _lines(path: Path) -> Iterator[bytes]:
    """A file's lines; RowError where what is compressed is damaged, UserError where it cannot be read."""
    try:
        with open_file(path) as plain, gzip.open(plain) if path.suffix == ".gz" else plain as file:
            yield from file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise RowError(f"expected a gzipped file, found one that ends or is damaged here ({error})") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def _paper(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except UnicodeDecodeError as error:
        raise RowError(f"expected UTF-8, found the byte 0x{line[error.start]:02x}") from None
    except (ValueError, RecursionError):
        raise RowError("expected a JSON object, found a line that is cut or is none") from None
    lacking = [name for name in FIELDS if name not in found] if isinstance(found, dict) else FIELDS
    if lacking:
        raise RowError(f"expected the fields {', '.join(FIELDS)}, found none called {', '.join(lacking)}")
    title, abstract, fields = (found[name] for name in FIELDS)
    if not isinstance(title, str) or not isinstance(abstract, str | None) or not isinstance(fields, list | None):
        raise RowError("expected a title in words, and an abstract and a list of fields or null")
    if fault := text_fault(title) or text_fault(abstract or ""):
        raise RowError(fault)
    return found
