"""Data from the Hugging Face hub, and the parquet files of a clone of a hub repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow.parquet

from benchmarks.errors import NoDataError, UserError
from benchmarks.tasks.rows import Log, Place
from fedsim.files import open_file

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict


def load_config(repository: str, config: str | None, revision: str | None) -> DatasetDict:
    """All splits of a dataset's configuration; None is its only one. NoDataError if the hub cannot give them."""
    try:
        return _library().load_dataset(repository, config, revision=revision)
    except Exception as error:  # of four libraries without a common base; all mean the same to the user
        raise _unavailable(repository, config, revision, error) from error


def stream_texts(repository: str, files: str, revision: str | None, log: Log) -> Iterator[str]:
    """The column "text" of some parquet files of a dataset, row by row; nothing is kept. files: a glob.

    NoDataError if the hub cannot give them.
    """
    place = Place(f"{repository}/{files}", f"{repository}/{files}")
    try:
        rows = _library().load_dataset(
            repository, data_files={"all": files}, split="all", revision=revision, streaming=True
        )
        for number, row in enumerate(rows, start=1):
            if "text" not in row:
                raise UserError(f"{place.path}: expected a column 'text', found {', '.join(row)}")
            text = row["text"] or ""
            if "\0" in text:
                log.reject(place, number, "expected text, found U+0000")
            else:
                yield text
    except (UserError, GeneratorExit):
        raise
    except Exception as error:
        raise _unavailable(repository, files, revision, error) from error


def load_parquet(file: Path) -> Dataset:
    """The rows of a parquet file, without a cache on the disk; UserError if it is not a parquet file."""
    datasets = _library()
    open_file(file, "a parquet file").close()
    try:
        return datasets.Dataset(datasets.table.InMemoryTable(pyarrow.parquet.read_table(file)))
    except Exception as error:
        raise UserError(
            f"{file}: expected a parquet file ({_first_line(error)}); get it again. "
            "A clone made without git-lfs holds pointers only: `git lfs pull` fetches the files"
        ) from error


def _library() -> ModuleType:
    import datasets  # takes half a second, and reads the environment that `fetch` sets

    return datasets


def _unavailable(repository: str, part: str | None, revision: str | None, error: Exception) -> NoDataError:
    wanted = f"{f'{part!r} of ' if part else ''}{repository}{f'@{revision}' if revision else ''}"
    return NoDataError(
        f"cannot load {wanted} from the Hugging Face hub ({_first_line(error)}). "
        "Connect to the internet, without HF_HUB_OFFLINE and HF_DATASETS_OFFLINE, "
        "or set DATA_DIR to a folder that holds the data"
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
