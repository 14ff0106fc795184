"""Where the files of a dataset are, in a folder or on the hub, and what each of them is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.errors import NoDataError, UserError
from benchmarks.tasks.base import DataSource, Examples, Skipped, TaskData
from benchmarks.tasks.hub import load_config

if TYPE_CHECKING:
    from datasets import Dataset


class Part(NamedTuple):
    """A part of a dataset: a file of the download, a split of the hub."""

    file: str
    split: str
    evaluation: str = ""  # empty: a part of the pool
    central: bool = False  # scored whole by everyone, not shared out


class Place(NamedTuple):
    """Where rows come from: `path` for the user, `name` for records."""

    path: str
    name: str


@dataclass(frozen=True)
class Files:
    """A dataset in several files.

    layouts: the paths of all parts in a data directory, for each layout of the download, the preferred one first.
    read_file, read_split: the examples of a file or of a split of the hub; malformed rows go into the list, or are
    UserErrors where it is None. wanted: what a data directory has to hold, for messages. repository, config, revision:
    the hub's copy; "" where there is no copy. partial: whether leniency does without some parts. notes: what a record
    says of the parts' examples.
    """

    name: str
    parts: tuple[Part, ...]
    layouts: Callable[[Path], list[list[Path]]]
    read_file: Callable[[Path, Place, list[Skipped] | None], Examples]
    read_split: Callable[[Dataset, Place, list[Skipped] | None], Examples]
    wanted: str
    repository: str = ""
    config: str | None = None
    revision: str | None = None
    partial: bool = False
    notes: Callable[[list[Examples]], tuple[str, ...]] = lambda _: ()

    def load(self, source: DataSource) -> TaskData:
        """All examples, each part's as the pool's, as held out or as central.

        UserError for a missing part or a malformed row; a lenient source skips the rows, and notes a missing part where
        the dataset may be partial.
        """
        skipped: list[Skipped] = []
        malformed = skipped if source.lenient else None
        notes: tuple[str, ...] = ()
        paths: list[Path] = []
        parts = list(self.parts)
        if source.folder is None:
            examples = [self.read_split(split, place, malformed) for split, place in self._splits()]
            revision = f"@{self.revision}" if self.revision else ""
            origin = f"{self.repository}{revision}{f', {self.config}' if self.config else ''}"
        else:
            wanted = self._find(source.folder)
            missing = ", ".join(path.name for path in wanted if not path.is_file())
            if missing and not (self.partial and source.lenient):
                otherwise = (
                    ", or accept a partial dataset with --lenient" if self.partial else ": no part can be spared"
                )
                raise UserError(f"{wanted[0].parent}: {self.name} lacks {missing}; add what is missing{otherwise}")
            notes = (f"partial: {missing} not found",) if missing else ()
            parts = [part for part, path in zip(parts, wanted, strict=True) if path.is_file()]
            paths = [path for path in wanted if path.is_file()]
            names = [f"{path.parent.name}/{path.name}" for path in paths]
            places = [Place(str(path), name) for path, name in zip(paths, names, strict=True)]
            examples = [self.read_file(path, place, malformed) for path, place in zip(paths, places, strict=True)]
            origin = f"folder: {', '.join(names)}"
        of_part = list(zip(parts, examples, strict=True))
        return TaskData(
            pool=_merged([each for part, each in of_part if not part.evaluation]),
            origin=origin,
            held_out={part.evaluation: each for part, each in of_part if part.evaluation and not part.central},
            central={part.evaluation: each for part, each in of_part if part.central},
            skipped=tuple(skipped),
            notes=(*notes, *self.notes(examples)),
            files=tuple(paths),
        )

    def _find(self, folder: Path) -> list[Path]:
        """The path of each part, in the first layout that holds a part which the dataset cannot do without."""
        require_folder(folder)
        layouts = self.layouts(folder)
        needed = [not (self.partial and part.evaluation) for part in self.parts]
        for paths in layouts:
            if any(path.is_file() for path, is_needed in zip(paths, needed, strict=True) if is_needed):
                return paths
        looked_for = [
            path for paths in layouts for path, part in zip(paths, self.parts, strict=True) if not part.evaluation
        ]
        hub = ", or leave DATA_DIR unset to load them from the Hugging Face hub" if self.repository else ""
        raise NoDataError(
            f"no data of {self.name}: looked for {', '.join(map(str, looked_for))}; put {self.wanted} there{hub}"
        )

    def _splits(self) -> Iterator[tuple[Dataset, Place]]:
        if not self.repository:
            raise NoDataError(
                f"{self.name}: no copy on the Hugging Face hub is known to hold all its parts; "
                f"set DATA_DIR to a folder that holds {self.wanted}"
            )
        splits = load_config(self.repository, self.config, self.revision)
        if any(part.split not in splits for part in self.parts):
            raise UserError(
                f"{'/'.join(filter(None, (self.repository, self.config)))}: expected the splits "
                f"{', '.join(part.split for part in self.parts)}, found {', '.join(splits)}; "
                f"set DATA_DIR to a folder that holds {self.wanted}"
            )
        for part in self.parts:
            name = "/".join(filter(None, (self.repository, self.config, part.split)))
            yield splits[part.split], Place(name, name)


OFFICIAL = (
    Part("train.txt", "train"),
    Part("dev.txt", "validation", "validation", central=True),
    Part("test.txt", "test", "test", central=True),
)


def official(name: str, folders: tuple[str, ...], published: str, **fields: Any) -> Files:
    """A dataset in train.txt, dev.txt and test.txt, of which the latter two are central.

    folders: any of these, in the data directory, or the data directory itself, holds the files. published: by whom.
    """

    def layouts(folder: Path) -> list[list[Path]]:
        itself = [folder] if any(Path(each).name == folder.resolve().name for each in folders) else []
        return [[place / part.file for part in OFFICIAL] for place in (*(folder / each for each in folders), *itself)]

    return Files(
        name,
        OFFICIAL,
        layouts,
        wanted=f"the files of {published}, {folders[0]} with train.txt, dev.txt and test.txt",
        **fields,
    )


def require_folder(folder: Path) -> None:
    """UserError where a data directory is not a folder."""
    if not folder.is_dir():
        raise UserError(f"the data directory {folder} is no folder; set DATA_DIR to the folder that holds the data")


def _merged(pool: list[Examples]) -> Examples:
    if len(pool) == 1:
        return pool[0]
    texts = tuple(texts for examples in pool for texts in examples.texts)
    return Examples(texts, np.concatenate([examples.labels for examples in pool]))
