"""Finds a dataset's files in the data directory or on the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.parquet

from benchmarks.encoders import fetched
from benchmarks.errors import NoDataError, UserError
from benchmarks.tasks.base import DataSource, TaskData, TextExamples
from benchmarks.tasks.rows import Location, Log, RawRow, Reader
from fedsim.files import open_file

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict


class Part(NamedTuple):
    """A part of a dataset: a file in the download, a split on the hub."""

    file: str
    split: str
    evaluation: str = ""  # "": part of the pool
    central: bool = False  # scored as a whole, not divided among clients


OFFICIAL = (  # a training set, and central development and test sets
    Part("train.txt", "train"),
    Part("dev.txt", "validation", "validation", central=True),
    Part("test.txt", "test", "test", central=True),
)


@dataclass(frozen=True)
class Files:
    """A dataset in several files.

    Args:
        name: The name in error messages.
        parts: The purpose of each file.
        layouts: A part's paths in the data directory, in order of preference, such as "MRPC/{file}" or
            "mrpc/{split}.parquet". The data directory may also be the folder of the files.
        wanted: What a data directory must contain, for error messages.
        reader: Makes examples from a file or split.
        repository: The hub's copy; "" if no copy has all parts.
        config: The copy's configuration.
        revision: The copy's revision; None if it has no tags: then the examples' digest identifies the data.
        partial: Whether `--lenient` accepts a dataset with missing parts.
        notes: Notes on the parts' examples, for records.
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
    notes: Callable[[list[TextExamples]], tuple[str, ...]] = lambda _: ()

    def load(self, source: DataSource) -> TaskData:
        """Load all parts; UserError for a missing part or a malformed row.

        A lenient source skips malformed rows, and notes a missing part if the dataset may be partial.
        """
        log, files = Log(source.lenient), dict[Part, list[Path]]()
        if source.folder is None:
            rows = self._splits()
            revision = f"@{self.revision}" if self.revision else ""
            origin = f"{self.repository}{revision}{f', {self.config}' if self.config else ''}"
        else:
            files = self.find(source)
            locations = {
                part: Location(str(path), f"{path.parent.name}/{path.name}") for part, (path, *_) in files.items()
            }
            rows = {part: (self._rows(paths), locations[part]) for part, paths in files.items()}
            origin = f"folder: {', '.join(location.name for location in locations.values())}"
        examples = {part: self.reader.examples(*each, log) for part, each in rows.items()}
        missing = ", ".join(part.file for part in self.parts if part not in examples)
        return TaskData(
            pool=_merged([each for part, each in examples.items() if not part.evaluation]),
            origin=origin,
            held_out={part.evaluation: each for part, each in examples.items() if part.evaluation and not part.central},
            central={part.evaluation: each for part, each in examples.items() if part.central},
            skipped=tuple(log.skipped),
            notes=(
                *((f"partial: {missing} not found",) if missing else ()),
                *log.notes,
                *self.notes(list(examples.values())),
            ),
            files=tuple(path for paths in files.values() for path in paths),
        )

    def _rows(self, paths: list[Path]) -> Iterator[RawRow]:
        if paths[0].suffix == ".parquet":
            return self.reader.read_split(load_parquet(paths), str(paths[0]))
        return self.reader.read_file(paths[0])

    def find(self, source: DataSource) -> dict[Part, list[Path]]:
        """The parts' files in a data directory, in the first layout with a required part; {} for the hub.

        A part is one file, or the hub's parquet shards. UserError if a shard is missing, even for a lenient source,
        which accepts only wholly absent parts.
        """
        if source.folder is None:
            self._require_repository()
            return {}
        folder = require_folder(source)
        layouts = [{part: folder / layout.format(**part._asdict()) for part in self.parts} for layout in self.layouts]
        name, first = folder.resolve().name, self.parts[0]
        layouts += [
            {part: folder / path.name for part, path in paths.items()}
            for paths in layouts
            if paths[first].parent.name == name
        ]
        pools = [[path for part, path in paths.items() if not part.evaluation] for paths in layouts]
        for paths, pool in zip(layouts, pools, strict=True):
            if any(map(shards_of, pool if self.partial else paths.values())):
                files = {part: shards_of(path) for part, path in paths.items()}
                missing = ", ".join(paths[part].name for part, shards in files.items() if not shards)
                if missing and not (self.partial and source.lenient):
                    accept = ", or accept a partial dataset with --lenient" if self.partial else ""
                    raise UserError(f"{pool[0].parent}: {self.name} lacks {missing}; add it{accept}")
                return {part: shards for part, shards in files.items() if shards}
        hub = ", or leave DATA_DIR unset to load them from the Hugging Face hub" if self.repository else ""
        candidates = ", ".join(dict.fromkeys(str(pool[0].relative_to(folder)) for pool in pools))
        raise NoDataError(f"no {self.name} data: looked in {folder}/ for {candidates}; put {self.wanted} there{hub}")

    def _require_repository(self) -> str:
        instead = f"set DATA_DIR to a folder with {self.wanted.rstrip(',')}"
        if not self.repository:
            raise NoDataError(f"{self.name}: the Hugging Face hub has no complete copy; {instead}")
        return instead

    def _splits(self) -> dict[Part, tuple[Iterator[RawRow], Location]]:
        """The rows of each part's hub split."""
        instead = self._require_repository()
        splits = load_config(self.repository, self.config, self.revision)
        repository = "/".join(filter(None, (self.repository, self.config)))
        if any(part.split not in splits for part in self.parts):
            expected = ", ".join(part.split for part in self.parts)
            raise UserError(f"{repository}: expected the splits {expected}, found {', '.join(splits)}; {instead}")
        names = {part: f"{repository}/{part.split}" for part in self.parts}
        return {
            part: (self.reader.read_split(splits[part.split], name), Location(name, name))
            for part, name in names.items()
        }


def official(name: str, folders: tuple[str, ...], page: str, reader: Reader, **fields: Any) -> Files:
    """A dataset in train.txt, dev.txt and test.txt. folders: candidates; page: where it is published."""
    wanted = f"the files of {page}, {folders[0]} with train.txt, dev.txt and test.txt"
    return Files(name, OFFICIAL, tuple(f"{folder}/{{file}}" for folder in folders), wanted, reader, **fields)


def require_folder(source: DataSource) -> Path:
    """The data directory; UserError if it is not a folder."""
    if source.folder is None or not source.folder.is_dir():
        raise UserError(f"the data directory {source.folder} is not a folder; set DATA_DIR to the folder with the data")
    return source.folder


def load_config(repository: str, config: str | None, revision: str | None) -> DatasetDict:
    """All splits of a dataset's configuration (None: its only one). NoDataError if the hub does not deliver them."""
    try:
        return _hub().load_dataset(repository, config, revision=revision)
    except Exception as error:  # four libraries' errors, without a common base but with one meaning for the user
        raise _unavailable(repository, config, revision, error) from error


def stream_texts(repository: str, files: str, revision: str | None, log: Log) -> Iterator[str]:
    """Stream the column "text" of a dataset's parquet files by row, without storing them. files: a glob.

    NoDataError if the hub does not deliver them.
    """
    place = f"{repository}/{files}"
    try:
        rows = _hub().load_dataset(
            repository, data_files={"all": files}, split="all", revision=revision, streaming=True
        )
        for number, row in enumerate(rows, start=1):
            if "text" not in row:
                raise UserError(f"{place}: expected a column 'text', found {', '.join(row)}")
            text = row["text"] or ""
            if "\0" in text:
                log.reject(Location(place, place), number, "expected text, found U+0000")
            else:
                yield text
    except (UserError, GeneratorExit):
        raise
    except Exception as error:
        raise _unavailable(repository, files, revision, error) from error


def shards_of(file: Path) -> list[Path]:
    """A file, or its parquet shards ("train-00000-of-00002.parquet", …); [] if absent; UserError if one is missing."""
    if file.is_file():
        return [file]
    stem, divided, _ = file.name.partition("-00000-of-")
    shards = sorted(file.parent.glob(f"{stem}-?????-of-?????.parquet")) if divided else []
    if shards:
        count = shards[0].stem.rpartition("-of-")[2]
        names = [f"{stem}-{number:05}-of-{count}.parquet" for number in range(int(count))]
        shard_names = [shard.name for shard in shards]
        if shard_names != names:
            missing = ", ".join(name for name in names if name not in shard_names) or "one count of files"
            raise UserError(
                f"{file.parent}: expected {', '.join(names)}, found {', '.join(shard_names)}; add {missing}"
            )
    return shards


def load_parquet(files: Sequence[Path]) -> Dataset:
    """The rows of parquet files, without a disk cache; UserError if one is not a parquet file."""
    datasets, tables = _library(), []
    for file in files:
        open_file(file, "a parquet file").close()
        try:
            tables.append(datasets.Dataset(datasets.table.InMemoryTable(pyarrow.parquet.read_table(file))))
        except Exception as error:
            raise UserError(f"{file}: expected a parquet file ({_first_line(error)}); get it again") from error
    return datasets.concatenate_datasets(tables)


def _library() -> ModuleType:
    import datasets  # takes half a second, and reads the environment that `fetched.use` sets

    return datasets


def _hub() -> ModuleType:
    fetched.hub_answers()  # if not, the library only reads its cache
    return _library()


def _unavailable(repository: str, part: str | None, revision: str | None, error: Exception) -> NoDataError:
    wanted = f"{f'{part!r} of ' if part else ''}{repository}{f'@{revision}' if revision else ''}"
    return NoDataError(
        f"cannot load {wanted} from the Hugging Face hub ({_first_line(error)}). If it does not answer, or is switched "
        "off (HF_HUB_OFFLINE), set DATA_DIR to a folder with the data; `python -m benchmarks fetch ID --scale SCALE "
        "--to FOLDER` fills one on a machine with internet, and `python -m benchmarks data` lists the files"
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _merged(pool: list[TextExamples]) -> TextExamples:
    if len(pool) == 1:
        return pool[0]
    texts = tuple(texts for examples in pool for texts in examples.texts)
    return TextExamples(texts, np.concatenate([examples.labels for examples in pool]))
