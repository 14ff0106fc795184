"""Where the files of a dataset are, in a data directory or on the hub, and what each file is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from benchmarks.errors import NoDataError, UserError
from benchmarks.tasks.base import DataSource, Examples, TaskData
from benchmarks.tasks.hub import load_config, load_parquet
from benchmarks.tasks.rows import Log, Place, Row

if TYPE_CHECKING:
    from datasets import Dataset


class Part(NamedTuple):
    """A part of a dataset: a file of the download, a split of the hub."""

    file: str
    split: str
    evaluation: str = ""  # empty: a part of the pool
    central: bool = False  # scored as a whole, not divided among clients


class Reader(Protocol):
    """Makes examples of a text file, or of a split of the hub or a parquet file."""

    def read_file(self, file: Path) -> Iterator[Row]: ...

    def read_split(self, split: Dataset, place: str) -> Iterator[Row]: ...

    def examples(self, rows: Iterable[Row], place: Place, log: Log) -> Examples: ...


OFFICIAL = (  # a training set, and central development and test sets
    Part("train.txt", "train"),
    Part("dev.txt", "validation", "validation", central=True),
    Part("test.txt", "test", "test", central=True),
)


@dataclass(frozen=True)
class Files:
    """A dataset in several files.

    Attributes:
        name: As error messages call it.
        parts: What each file is for.
        layouts: Paths of a part in the data directory, the preferred one first, such as "MRPC/{file}" or
            "mrpc/{split}.parquet". The data directory may also be the folder itself that holds the files.
        wanted: What a data directory must hold, for error messages.
        reader: Makes examples of a file or of a split.
        repository: The hub's copy; "" if there is none that holds all parts.
        config: The copy's configuration.
        revision: The copy's revision; None if it has no tags: then the digest of the examples identifies the data.
        partial: Whether `--lenient` accepts a dataset without some of its parts.
        notes: What a record says of the parts' examples.
    """

    name: str
    parts: tuple[Part, ...]
    layouts: tuple[str, ...]
    wanted: str
    reader: Reader
    repository: str = ""
    config: str | None = None
    revision: str | None = None
    partial: bool = False
    notes: Callable[[list[Examples]], tuple[str, ...]] = lambda _: ()

    def load(self, source: DataSource) -> TaskData:
        """Load all parts; UserError for a missing part or a malformed row.

        A lenient source skips malformed rows, and notes a missing part if the dataset may be partial.
        """
        log, files = Log(source.lenient), dict[Part, Path]()
        if source.folder is None:
            rows = self._splits()
            revision = f"@{self.revision}" if self.revision else ""
            origin = f"{self.repository}{revision}{f', {self.config}' if self.config else ''}"
        else:
            files = self._files(source.folder, source.lenient)
            rows = {
                part: (self._rows(path), Place(str(path), f"{path.parent.name}/{path.name}"))
                for part, path in files.items()
            }
            origin = f"folder: {', '.join(place.name for _, place in rows.values())}"
        examples = {part: self.reader.examples(*each, log) for part, each in rows.items()}
        missing = ", ".join(part.file for part in self.parts if part not in examples)
        return TaskData(
            pool=_merged([each for part, each in examples.items() if not part.evaluation]),
            origin=origin,
            held_out={part.evaluation: each for part, each in examples.items() if part.evaluation and not part.central},
            central={part.evaluation: each for part, each in examples.items() if part.central},
            skipped=tuple(log.skipped),
            notes=((f"partial: {missing} not found",) if missing else ()) + self.notes(list(examples.values())),
            files=tuple(files.values()),
        )

    def _rows(self, path: Path) -> Iterator[Row]:
        if path.suffix == ".parquet":
            return self.reader.read_split(load_parquet(path), str(path))
        return self.reader.read_file(path)

    def _files(self, folder: Path, lenient: bool) -> dict[Part, Path]:
        """The files of the parts, in the first layout that holds a part that the dataset cannot do without."""
        require_folder(folder)
        layouts = [[folder / layout.format(**part._asdict()) for part in self.parts] for layout in self.layouts]
        name = folder.resolve().name
        layouts += [[folder / path.name for path in paths] for paths in layouts if paths[0].parent.name == name]
        pool_only = [
            [path for path, part in zip(paths, self.parts, strict=True) if not part.evaluation] for paths in layouts
        ]
        for paths, pool in zip(layouts, pool_only, strict=True):
            if any(map(Path.is_file, pool if self.partial else paths)):
                missing = ", ".join(path.name for path in paths if not path.is_file())
                if missing and not (self.partial and lenient):
                    accept = ", or accept a partial dataset with --lenient" if self.partial else ""
                    raise UserError(f"{paths[0].parent}: {self.name} lacks {missing}; add what is missing{accept}")
                return {part: path for part, path in zip(self.parts, paths, strict=True) if path.is_file()}
        hub = ", or leave DATA_DIR unset to load them from the Hugging Face hub" if self.repository else ""
        candidates = ", ".join(str(path) for pool in pool_only for path in pool)
        raise NoDataError(f"no data of {self.name}: looked for {candidates}; put {self.wanted} there{hub}")

    def _splits(self) -> dict[Part, tuple[Iterator[Row], Place]]:
        """The rows of each part's split on the hub."""
        if not self.repository:
            raise NoDataError(
                f"{self.name}: no copy on the Hugging Face hub is known to hold all its parts; "
                f"set DATA_DIR to a folder that holds {self.wanted}"
            )
        splits = load_config(self.repository, self.config, self.revision)
        repository = "/".join(filter(None, (self.repository, self.config)))
        if any(part.split not in splits for part in self.parts):
            raise UserError(
                f"{repository}: expected the splits {', '.join(part.split for part in self.parts)}, "
                f"found {', '.join(splits)}; set DATA_DIR to a folder that holds {self.wanted}"
            )
        names = {part: f"{repository}/{part.split}" for part in self.parts}
        return {
            part: (self.reader.read_split(splits[part.split], name), Place(name, name)) for part, name in names.items()
        }


def official(name: str, folders: tuple[str, ...], page: str, reader: Reader, **fields: Any) -> Files:
    """A dataset in train.txt, dev.txt and test.txt. folders: where they may be; page: where they are published."""
    wanted = f"the files of {page}, {folders[0]} with train.txt, dev.txt and test.txt"
    return Files(name, OFFICIAL, tuple(f"{folder}/{{file}}" for folder in folders), wanted, reader, **fields)


def require_folder(folder: Path) -> None:
    """UserError if a data directory is not a folder."""
    if not folder.is_dir():
        raise UserError(f"the data directory {folder} is not a folder; set DATA_DIR to the folder that holds the data")


def _merged(pool: list[Examples]) -> Examples:
    if len(pool) == 1:
        return pool[0]
    texts = tuple(texts for examples in pool for texts in examples.texts)
    return Examples(texts, np.concatenate([examples.labels for examples in pool]))
