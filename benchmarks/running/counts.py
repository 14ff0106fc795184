"""Counts clients' texts, once per state of the data files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.dry_run.cache import kept
from benchmarks.encoders.backbones import BACKBONES, TRAINED
from benchmarks.encoders.fetched import source_of
from benchmarks.encoders.files import find_files
from benchmarks.errors import UserError
from benchmarks.run_config import JSON, SCALES, RunConfig, digest
from benchmarks.running.run_options import RunOptions
from benchmarks.tasks import task
from benchmarks.tasks.passages import stamp


@dataclass(frozen=True)
class Counted:
    """A run's numbers of texts.

    Args:
        examples: Training texts of each client.
        scored: All evaluation texts; a set that clients share counts once.
        error: The relative error at 95 %; 0 if all texts are counted.
        published: Whether the numbers are the published ones, because data are missing.
    """

    examples: list[int]
    scored: int
    error: float = 0.0
    published: bool = False


def counted(cell: RunConfig, settings: RunOptions) -> Counted:
    """A run's numbers of texts; texts are tokenised only if they are packed into blocks.

    UserError if data are missing or malformed.
    """

    def count() -> Counted:
        from benchmarks.running.counting import count  # loads torch

        return Counted(*count(cell, settings))

    key = _key(cell, settings)
    return kept(key, count, Counted) if key else count()


def counted_or_published(cell: RunConfig, settings: RunOptions) -> Counted:
    """As `counted`; without data, equal shares of the published number of texts.

    UserError if that is unknown too, or if texts are packed into blocks, whose number it does not determine.
    """
    of, is_central = task(cell.task), cell.test_share == 0
    try:
        return counted(cell, settings)
    except UserError:
        sizes = next((each for each in of.sizes if ("test" in each) == is_central), None)
        if sizes is None or of.long_texts == "packed":
            raise
    trained = round(sizes["pool"] * (1 - cell.test_share) * (1 - cell.validation_share) / cell.clients)
    return Counted([trained] * cell.clients, sum(sizes.values()) - cell.clients * trained, published=True)


def stand_ins(stages: Sequence[RunConfig], settings: RunOptions) -> list[str]:
    """Data in the data directory that replace published data of runs at paper scale."""

    def stand_in(stage: RunConfig) -> str:
        from benchmarks.running.federation import stand_in_at  # loads torch

        return stand_in_at(stage, settings)

    texts: dict[str, None] = {}
    for stage in stages if stages[-1].scale == SCALES[-1] and settings.data_dir else ():
        with suppress(UserError):  # missing or malformed, which `run` reports
            key = f"stand-in-{digest([stage.task, _stamps(_files(stage, settings)), settings.lenient])}"
            texts[kept(key, partial(stand_in, stage), str)] = None
    return [*filter(None, texts)]


# ---- kept counts -------------------------------------------------------------------------------------------------


def _key(cell: RunConfig, settings: RunOptions) -> str:
    """The key for everything that determines a run's numbers of texts; "" if data files are missing."""
    files, long_texts = _files(cell, settings), task(cell.task).long_texts
    if not files and (long_texts == "packed" or cell.source != "generated"):
        return ""
    preset, is_tokenised = BACKBONES.get(cell.backbone), long_texts != "cut"
    if is_tokenised and preset and preset.bpe == TRAINED:
        files += _files(replace(cell, task="wikitext"), settings)  # the tokenizer is trained on these texts
    elif is_tokenised:
        with nullcontext() if long_texts == "packed" else suppress(UserError):  # blocks can be counted as rows
            files += sorted(find_files(cell.backbone, True, settings.data_dir)[0].glob("*"))
    seed = cell.seed if cell.data_seed is None else cell.data_seed
    split = (cell.clients, cell.partition, seed, cell.test_share, cell.holdout, cell.validation_share, cell.grouped)
    texts = cell.central_share, cell.independent, settings.lenient, cell.training.max_length
    backbone = cell.backbone if is_tokenised else ""
    return f"texts-{digest([cell.task, cell.task_version, cell.source, *split, *texts, backbone, _stamps(files)])}"


def _files(cell: RunConfig, settings: RunOptions) -> list[Path]:
    """A run's data files in the data directory; may be []."""
    find = task(cell.task).find
    if cell.source == "generated" or find is None or settings.data_dir is None:
        return []
    return [*_paths(find(source_of(cell.task, settings.data_dir, settings.lenient, None)))]


def _stamps(files: Sequence[Path]) -> list[JSON]:
    return [stamp(file, str(file)) for file in files]


def _paths(files: Any) -> Iterator[Path]:
    """The paths in the result of a task's `find`."""
    if isinstance(files, Path):
        yield files
    elif isinstance(files, Mapping):
        yield from _paths(list(files.values()))
    elif isinstance(files, Sequence) and not isinstance(files, str):
        for each in files:
            yield from _paths(each)
