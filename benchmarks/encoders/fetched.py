"""A folder filled by `fetch`: a benchmark's data and encoders, for nodes without access to the hub.

It is a data directory. Its hub copies are read through the hub's libraries, offline, so that data and encoders have the
same digests; other tasks are read from their files in it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread

from pydantic import BaseModel, ValidationError

from benchmarks.errors import UserError
from benchmarks.results import write_text
from benchmarks.tasks.base import DataSource
from fedsim.files import MissingFileError, read_json

FILE = "fetched.json"
EXTRACTS = "extracts"  # large texts' passages
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
PATIENCE = 3  # seconds for the hub to answer; HF_HUB_ETAG_TIMEOUT overrides it


class Contents(BaseModel):
    """The names of a folder's fetched tasks and encoders."""

    tasks: list[str] = []
    encoders: list[str] = []


def places(folder: Path) -> dict[str, str]:
    """Environment variables that set the cache folders of the hub's libraries, which read them at import."""
    hub = folder.resolve() / "hub"
    return {"HF_HOME": str(hub), "HF_HUB_CACHE": str(hub / "hub"), "HF_DATASETS_CACHE": str(hub / "datasets")}


def contents(folder: Path | None) -> Contents:
    """The names in a folder's list, if any; UserError if it is damaged."""
    try:
        listed = read_json(folder / FILE, "a list of fetched tasks and encoders") if folder and folder.is_dir() else {}
        return Contents.model_validate(listed, strict=True)
    except MissingFileError:
        return Contents()
    except ValidationError as error:
        fault = error.errors()[0]["msg"]
        raise UserError(
            f"{folder}/{FILE}: expected lists of tasks and encoders, found {fault!r}; fetch them again"
        ) from None


def note(folder: Path, tasks: Iterable[str], encoders: Iterable[str]) -> None:
    """Add names to a folder's list."""
    old = contents(folder)
    new = {"tasks": sorted({*old.tasks, *tasks}), "encoders": sorted({*old.encoders, *encoders})}
    write_text(folder / FILE, json.dumps(new, indent=1) + "\n")


def use(folder: Path | None) -> None:
    """Make the hub's libraries, in this process and its children, read a folder filled by `fetch`."""
    if folder is not None and contents(folder) != Contents():
        os.environ.update(places(folder) | OFFLINE)


@cache
def hub_answers() -> bool:
    """Whether the Hugging Face hub answers; this process and its children send one short request.

    If not, its libraries go offline: they read their caches, and fail at once instead of retrying for minutes.
    """
    if any(os.environ.get(name, "0").upper() in ("1", "ON", "YES", "TRUE") for name in OFFLINE):
        return False
    from huggingface_hub import constants  # reads the environment, which `use` sets

    answers: list[int] = []
    thread = Thread(target=_request, args=[answers], daemon=True)  # a name lookup may take longer than its timeout
    thread.start()
    thread.join(float(os.environ.get("HF_HUB_ETAG_TIMEOUT") or PATIENCE))
    if not answers:
        os.environ.update(OFFLINE)
        constants.HF_HUB_OFFLINE = True
        if config := sys.modules.get("datasets.config"):
            config.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]
    return bool(answers)


def _request(answers: list[int]) -> None:
    from huggingface_hub import constants, get_session

    with suppress(Exception):  # any failure means that the hub does not answer
        answers.append(get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT).status_code)


def copied(paths: Iterable[Path], data_dir: Path, folder: Path) -> int:
    """Copy files from a data directory to the same paths in a folder, each atomically; returns their bytes."""
    size = 0
    for path in dict.fromkeys(paths):
        size += path.stat().st_size
        copy = folder / path.relative_to(data_dir) if path.is_relative_to(data_dir) else path
        if copy.exists() and copy.samefile(path):
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        partial = copy.with_name(f".{copy.name}")
        try:
            shutil.copyfile(path, partial)
            partial.replace(copy)
        finally:
            partial.unlink(missing_ok=True)
    return size


def source_of(task_id: str, folder: Path | None, lenient: bool = False, extracts: Path | None = None) -> DataSource:
    """The source of a task's data: files in the data directory, or hub copies that `fetch` put there."""
    if folder is not None and task_id in contents(folder).tasks:
        return DataSource(None, lenient, folder / EXTRACTS)
    return DataSource(folder, lenient, extracts)
