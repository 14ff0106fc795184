"""Datasets that come in an official training, development and test set: where the three are, and what each is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.errors import NoDataError, UserError
from benchmarks.tasks.base import DataSource, Examples, Skipped, TaskData
from benchmarks.tasks.hub import load_config
from benchmarks.tasks.rows import Row

if TYPE_CHECKING:
    from datasets import Dataset

FILES = ("train.txt", "dev.txt", "test.txt")
FILES_IN_WORDS = f"{', '.join(FILES[:-1])} and {FILES[-1]}"
SPLITS = ("train", "validation", "test")  # as the hub calls them


class Piece(NamedTuple):
    """A file or split as a source gives it, not yet checked. place and name: it for the user and for records."""

    rows: Iterator[Row]
    place: str
    name: str


@dataclass(frozen=True)
class Official:
    """Where the three sets of a dataset are, and how they are read.

    folders: any of these, in the data directory, or the data directory itself, holds train.txt, dev.txt and test.txt.
    published: where these files can be had. repository, revision: the hub's copy; "" where none is known to hold them.
    read_file, read_split: the rows of a file, and of a split of the hub (with its place, for errors).
    to_examples: the rows of a piece as examples; malformed ones go into the list, or are UserErrors where it is None.
    notes: what a record says of the sets, in the order of the splits.
    """

    name: str
    folders: tuple[str, ...]
    published: str
    repository: str
    revision: str | None
    read_file: Callable[[Path], Iterator[Row]]
    read_split: Callable[[Dataset, str], Iterator[Row]]
    to_examples: Callable[[Piece, list[Skipped] | None], Examples]
    notes: Callable[[tuple[Examples, ...]], tuple[str, ...]] = lambda _: ()

    def load(self, source: DataSource) -> TaskData:
        """The training set as the pool; the development and the test set as central ones, "validation" and "test".

        They come from a folder, else from the hub. A missing file is a UserError, a malformed row too unless the source
        is lenient.
        """
        if source.folder is None:
            pieces, origin = self._hub_pieces(), f"{self.repository}{f'@{self.revision}' if self.revision else ''}"
        else:
            paths = self._find(source.folder)
            pieces = [Piece(self.read_file(path), str(path), f"{path.parent.name}/{path.name}") for path in paths]
            origin = "folder: " + ", ".join(piece.name for piece in pieces)
        skipped: list[Skipped] = []
        train, dev, test = found = tuple(self.to_examples(each, skipped if source.lenient else None) for each in pieces)
        central = {"validation": dev, "test": test}
        return TaskData(pool=train, origin=origin, central=central, skipped=tuple(skipped), notes=self.notes(found))

    def _hub_pieces(self) -> list[Piece]:
        if not self.repository:
            raise NoDataError(
                f"{self.name}: no copy on the Hugging Face hub is known to hold its three sets; set DATA_DIR to a "
                f"folder that holds {self.folders[0]} with {FILES_IN_WORDS}, as published in {self.published}"
            )
        splits = load_config(self.repository, None, self.revision)
        missing = [split for split in SPLITS if split not in splits]
        if missing:
            raise UserError(
                f"{self.repository}: expected the splits {', '.join(SPLITS)}, found {', '.join(splits)}; "
                f"set DATA_DIR to a folder that holds {self.folders[0]} with {FILES_IN_WORDS}"
            )
        names = [f"{self.repository}/{split}" for split in SPLITS]
        return [
            Piece(self.read_split(splits[split], name), name, name) for split, name in zip(SPLITS, names, strict=True)
        ]

    def _find(self, folder: Path) -> list[Path]:
        """The paths of the three files, in the first place that holds one of them."""
        if not folder.is_dir():
            raise UserError(f"the data directory {folder} is no folder; set DATA_DIR to the folder that holds the data")
        itself = [folder] if any(Path(name).name == folder.resolve().name for name in self.folders) else []
        places = [*(folder / name for name in self.folders), *itself]
        for place in places:
            missing = [file for file in FILES if not (place / file).is_file()]
            if not missing:
                return [place / file for file in FILES]
            if len(missing) < len(FILES):
                raise UserError(
                    f"{place}: {self.name} lacks {', '.join(missing)}; add what is missing: the training set is shared "
                    "out, the development set chooses a round, and the test set scores it"
                )
        looked_in = ", ".join(map(str, places))
        elsewhere = ", or leave DATA_DIR unset to load them from the Hugging Face hub" if self.repository else ""
        raise NoDataError(
            f"no data of {self.name}: looked for {FILES_IN_WORDS} in {looked_in}; put the files of {self.published} "
            f"there{elsewhere}"
        )
