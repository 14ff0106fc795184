"""Check that runs have their data and encoders, before loading torch and MLflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.encoders import fetched
from benchmarks.encoders.backbones import BACKBONES, is_folder
from benchmarks.encoders.files import find_files, require_tokenizer
from benchmarks.errors import NoDataError, UserError
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import IsFinished, by_stage
from benchmarks.running.run_options import ELSEWHERE, RunOptions
from benchmarks.tasks import task
from fedsim.errors import FederationError
from fedsim.models.families import weight_files
from partitions import PartitionError

Kinds = tuple[type[ValueError], ...]


def require_inputs(cells: Sequence[RunConfig], options: RunOptions, is_finished: IsFinished) -> None:
    """Raise one UserError that lists all missing datasets and encoders of unfinished runs and their earlier runs.

    It looks in folders first, then on the hub. If the hub does not answer one short request, its libraries go offline,
    so that not every run tries again. If all are there, it checks the names in the runs' settings.
    """
    problems = missing_inputs(cells, options, is_finished)
    needed = [] if problems else _unfinished(cells, is_finished)
    problems += [*dict.fromkeys(filter(None, (problem(partial(check_names, cell)) for cell in needed)))]
    if problems:
        raise UserError("\n".join(problems))


def check_names(cell: RunConfig) -> None:
    """Raise FederationError if a run names a codec, a head, a method or an option that does not exist."""
    from fedsim.algorithms import require_options  # torch
    from fedsim.codecs import build_codec
    from fedsim.models.heads import require_head

    build_codec(cell.codec)
    require_head(cell.head)
    require_options(cell.algorithm, cell.options)


def _unfinished(cells: Sequence[RunConfig], is_finished: IsFinished) -> list[RunConfig]:
    """The runs without a result, with their earlier runs."""
    unfinished = [cell for cell in cells if not is_finished(cell, False)]
    return [cell for stage in by_stage(unfinished, is_finished) for cell in stage]


def missing_inputs(
    cells: Sequence[RunConfig], options: RunOptions, is_finished: IsFinished, named_only: bool = False
) -> list[str]:
    """A message for each dataset and encoder that unfinished runs and their earlier runs lack.

    named_only: check only the folders that the options name, without the hub and its cache.
    """
    needed = _unfinished(cells, is_finished)
    elsewhere = options.executor in ELSEWHERE  # other machines may have other caches, and access to the hub
    tasks = dict.fromkeys(cell.task for cell in needed if cell.source != "generated")
    encoders = dict.fromkeys(cell.backbone for cell in needed)
    if named_only:
        tasks = tasks if options.data_dir else {}
        encoders = {name: None for name in encoders if is_folder(options.requested(name))}
    checks = [partial(check_data, name, options, elsewhere or named_only) for name in tasks]
    checks += [partial(check_encoder, name, options) for name in ([] if elsewhere else encoders)]
    return list(filter(None, map(problem, checks)))


def problem(check: Callable[[], object], kinds: Kinds = (UserError, FederationError, PartitionError)) -> str:
    """The message of the check's error of these kinds; "" if it passes."""
    try:
        check()
    except kinds as error:
        return str(error)
    return ""


def why_absent(task_id: str, options: RunOptions) -> str:
    """Why a task has no data; "" if it has data. UserError if they are damaged."""
    return problem(partial(check_data, task_id, options), (NoDataError,))


def check_data(task_id: str, options: RunOptions, local_only: bool = False) -> None:
    """Raise UserError if a task's data are missing from the folder and from the hub.

    local_only: do not ask the hub.
    """
    of, extracts = task(task_id), options.results_dir / "corpora"
    source = fetched.source_of(task_id, options.data_dir, options.lenient, extracts)
    if of.find is not None:
        of.find(source)
    if source.folder is None and not local_only and not fetched.hub_answers():
        of.load(source)


def check_encoder(backbone: str, options: RunOptions, local_only: bool = False) -> None:
    """Raise UserError if an encoder's files are missing and the hub does not deliver them now.

    local_only: do not ask the hub.
    """
    requested = options.requested(backbone)
    preset = BACKBONES.get(requested)
    if preset is None or preset.has_files or is_folder(requested):
        folder, _ = find_files(requested, local_only, options.data_dir)
        weight_files(folder)
        require_tokenizer(folder)
    elif preset.bpe:  # its vocabulary is trained here
        check_data("wikitext", options, local_only)
