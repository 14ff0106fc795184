"""S2ORC (Lo et al. 2020) as its last static release has it: metadata in JSON lines, gzipped or not.

Its fields: https://github.com/allenai/s2orc, data/v2020-07-05. A structured abstract has `:::` for ends of lines.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from benchmarks.tasks.rows import Log, Place
from fedsim.files import open_file

FOLDER = "s2orc"
ENDINGS = (".jsonl", ".jsonl.gz")
NUMBER = re.compile("([0-9]+)")
PARSES = "pdf_parses"  # the release's other half: full texts without their field


class Paper(BaseModel):
    """What is read of a line of metadata."""

    model_config = ConfigDict(strict=True)
    title: str
    abstract: str | None
    mag_field_of_study: list[str] | None

    @property
    def text(self) -> str:
        """Title and abstract; "" without an abstract."""
        title, abstract = self.title.strip(), (self.abstract or "").replace(":::", " ").strip()
        stop = "" if not title or title.endswith((".", "!", "?")) else "."
        return " ".join(f"{title}{stop} {abstract}".split()) if abstract else ""


def metadata_files(folder: Path) -> list[Path]:
    """The files of metadata in a folder and below, in the order of their numbers."""
    files = [path for path in folder.rglob("*") if path.name.endswith(ENDINGS) and PARSES not in str(path)]
    return sorted(files, key=lambda path: [int(part) if part.isdigit() else part for part in NUMBER.split(str(path))])


def papers(files: Sequence[Path], root: Path, field: str, log: Log) -> Iterator[str]:
    """Title and abstract of each paper of a field of study; papers without an abstract are counted.

    root: the folder by which records name a file. A file that is damaged is read up to the damage, if lenient.
    """
    for path in files:
        place, number = Place(str(path), path.relative_to(root).as_posix()), 0
        try:
            with open_file(path) as plain, gzip.open(plain) if path.suffix == ".gz" else plain as lines:
                for number, line in enumerate(lines, start=1):
                    try:
                        paper = None if line.isspace() else Paper.model_validate_json(line)
                    except ValidationError as error:
                        fault = error.errors()[0]
                        name = f" in {fault['loc'][0]}" if fault["loc"] else ""
                        log.reject(place, number, f"expected a paper of S2ORC, found an error{name}: {fault['msg']}")
                        continue
                    if paper is None or field not in (paper.mag_field_of_study or ()):
                        continue
                    if "\0" in paper.text:
                        log.reject(place, number, "expected text, found U+0000")
                    elif paper.text:
                        yield paper.text
                    else:
                        log.counts["papers without an abstract, left out"] += 1
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            log.reject(place, number + 1, f"expected a gzipped file, found one that ends or is damaged here ({error})")
