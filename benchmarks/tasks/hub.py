"""Rows from the Hugging Face hub, or from parquet files as a clone of a hub repository has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.errors import NoDataError, UserError
from benchmarks.tasks.base import Skipped
from benchmarks.tasks.rows import Row, text_fault
from fedsim.files import open_file

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict


def load_config(repository: str, config: str | None, revision: str | None) -> DatasetDict:
    """All splits of a dataset's configuration, None being its only one; UserError where they cannot be had."""
    import datasets

    try:
        return datasets.load_dataset(repository, config, revision=revision)
    # What is raised comes from four libraries with no common base, and all of it means the same to the user.
    except Exception as error:
        raise _out_of_reach(repository, config, revision, error) from error


def stream_column(
    repository: str, files: str, revision: str | None, column: str, skipped: list[Skipped] | None
) -> Iterator[str]:
    """A column of texts of some parquet files of a dataset, `files` as a glob has them, row by row: nothing is kept.

    skipped: takes up rows that are no text; None where each is a UserError, as it is where they cannot be had.
    """
    import datasets

    try:
        rows = datasets.load_dataset(
            repository, data_files={"all": files}, split="all", revision=revision, streaming=True
        )
        for number, row in enumerate(rows, start=1):
            if column not in row:
                raise UserError(f"{repository}/{files}: expected a column {column!r}, found {', '.join(row)}")
            text = row[column] or ""
            fault = text_fault(text)
            if not fault:
                yield text
            elif skipped is None:
                raise UserError(f"{repository}/{files}:{number}: {fault}; skip such rows with --lenient")
            else:
                skipped.append(Skipped(f"{repository}/{files}", number, fault))
    except (UserError, GeneratorExit):
        raise
    except Exception as error:
        raise _out_of_reach(repository, files, revision, error) from error


def _out_of_reach(repository: str, what: str | None, revision: str | None, error: Exception) -> NoDataError:
    wanted = f"{f'{what!r} of ' if what else ''}{repository}{f'@{revision}' if revision else ''}"
    return NoDataError(
        f"cannot load {wanted} from the Hugging Face hub ({_first_line(error)}). "
        "Connect to the internet, without HF_HUB_OFFLINE and HF_DATASETS_OFFLINE, "
        "or set DATA_DIR to a folder that holds the data"
    )


def load_parquet(file: Path) -> Dataset:
    """The dataset in one parquet file; UserError where it is not one. Writes no cache."""
    import datasets
    import pyarrow.parquet

    open_file(file, "a parquet file").close()  # a pipe would be waited for
    try:
        return datasets.Dataset(datasets.table.InMemoryTable(pyarrow.parquet.read_table(file)))
    except Exception as error:
        raise UserError(
            f"{file}: expected a parquet file ({_first_line(error)}); get it again. "
            "A clone made without git-lfs holds pointers only: `git lfs pull` fetches the files"
        ) from error


def read_dataset(
    dataset: Dataset, place: str, texts: tuple[str, ...], label: str, label_names: tuple[str, ...] | None
) -> Iterator[Row]:
    """The rows of a split. place: where it comes from, for errors.

    label_names: the names expected of the label ids, checked where the dataset knows them.
    """
    lacking = [column for column in (*texts, label) if column not in dataset.column_names]
    if lacking:
        raise UserError(
            f"{place}: expected the columns {', '.join((*texts, label))}, "
            f"found {', '.join(dataset.column_names)}; get the data again"
        )
    named = getattr(dataset.features[label], "names", None)
    if label_names is not None and named is not None and tuple(named) != label_names:
        raise UserError(
            f"{place}: expected the labels in the order {', '.join(label_names)}, found {', '.join(named)}; "
            "get the data again"
        )
    columns = [dataset[column][:] for column in (*texts, label)]
    for number, (*values, target) in enumerate(zip(*columns, strict=True), start=1):
        yield Row(number, tuple(values), target)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
