"""A folder that `fetch` has filled: what a benchmark needs from the hub, for nodes that do not reach it.

It is a data directory. What it holds of the hub is read as from the hub, offline, so that data and encoders have the
same digests; tasks that it does not hold are looked for in it as in any data directory.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.results import write_text
from benchmarks.tasks import DataSource
from fedsim.files import MissingFileError, read_json

FILE = "fetched.json"
EXTRACTS = "extracts"  # what was taken out of streams
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def places(folder: Path) -> dict[str, str]:
    """Where the hub's libraries keep what they fetch, as they read it from the environment when they are loaded."""
    hub = folder.resolve() / "hub"
    named = {"HF_HOME": hub, "HF_HUB_CACHE": hub / "hub", "HF_DATASETS_CACHE": hub / "datasets"}
    return {name: str(path) for name, path in named.items()}


def contents(folder: Path | None) -> dict[str, list[str]]:
    """Tasks and encoders that `fetch` has put into a folder, if it has; UserError where the note of them is damaged."""
    found: Mapping[str, list[str]] = {}
    if folder is not None and folder.is_dir():
        try:
            found = read_json(folder / FILE, "what was fetched")
            if not all(isinstance(name, str) for kind in ("tasks", "encoders") for name in found[kind]):
                raise TypeError("expected names")
        except MissingFileError:
            found = {}
        except (KeyError, TypeError) as error:
            raise UserError(
                f"{folder / FILE}: expected what was fetched, found something else ({error}); fetch it again"
            ) from None
    return {kind: list(found.get(kind, ())) for kind in ("tasks", "encoders")}


def note(folder: Path, tasks: Iterable[str], encoders: Iterable[str]) -> None:
    """Say in a folder what it holds, besides what it held."""
    held = contents(folder)
    new = {"tasks": sorted({*held["tasks"], *tasks}), "encoders": sorted({*held["encoders"], *encoders})}
    write_text(folder / FILE, json.dumps(new, indent=1) + "\n")


def use(folder: Path | None) -> None:
    """Have the hub's libraries, in this process and those that it starts, read a folder that holds what was fetched."""
    if folder is not None and any(contents(folder).values()):
        os.environ.update(places(folder) | OFFLINE)


def copied(paths: Iterable[Path], data_dir: Path, folder: Path) -> int:
    """Copy files of a data directory into the same places of a folder; returns their bytes.

    Each appears whole or not at all; what lies elsewhere is left out.
    """
    sizes = 0
    for path in dict.fromkeys(paths):
        place = folder / path.relative_to(data_dir) if path.is_relative_to(data_dir) else path
        sizes += path.stat().st_size
        if place == path or (place.exists() and place.samefile(path)):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_name(f".{place.name}")
        try:
            shutil.copyfile(path, partial)
            partial.replace(place)
        finally:
            partial.unlink(missing_ok=True)
    return sizes


def source_of(task_id: str, folder: Path | None, lenient: bool = False, extracts: Path | None = None) -> DataSource:
    """Where a task's data come from: the data directory, or what was fetched from the hub into it."""
    if folder is not None and task_id in contents(folder)["tasks"]:
        return DataSource(None, lenient, folder / EXTRACTS)
    return DataSource(folder, lenient, extracts)
