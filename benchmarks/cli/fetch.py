"""The command that gathers what a benchmark needs: fetch."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.cli.select import Selection, selection, tables_of
from benchmarks.errors import UserError
from benchmarks.fetched import EXTRACTS, note, places
from benchmarks.registry import benchmark
from benchmarks.settings import require_writable
from benchmarks.spec import Cell


def fetch_command(words: argparse.Namespace) -> int:
    """Fetch data and encoders from the hub into a folder that then is a data directory; status 2 where some lack."""
    words.scale = "lite" if words.scale is None else words.scale
    tables = [name for name in tables_of(words.id) if _has(name, words.scale) or name == words.id]
    chosen = [selection(argparse.Namespace(**{**vars(words), "id": name})) for name in tables]
    require_writable(words.to)
    os.environ.update(places(words.to))  # before the hub's libraries are loaded
    cells = [cell for part in chosen for cell in _needed(part)]
    stood_in = {column.instead_of for part in chosen for column in part.columns if column.instead_of}
    lacking = []
    tasks = list(dict.fromkeys(cell.task for cell in cells if cell.source != "generated"))
    encoders = list(dict.fromkeys(cell.backbone for cell in cells))
    held: dict[str, list[str]] = {"tasks": [], "encoders": []}
    for name in tasks:
        try:
            print(f"ok   task {name}: {_fetch_task(name, words.to)}", flush=True)
            held["tasks"].append(name)
        except UserError as error:
            print(f"none task {name}: {error}", flush=True)
            lacking += [] if name in stood_in else [f"task {name}"]
    note(words.to, held["tasks"], ())  # a vocabulary may be trained on them
    for name in encoders:
        try:
            print(f"ok   encoder {name}: {_fetch_encoder(name, words.to)}", flush=True)
            held["encoders"].append(name)
        except ValueError as error:  # of ours, or of the engine's
            print(f"none encoder {name}: {error}", flush=True)
            lacking.append(f"encoder {name}")
    note(words.to, held["tasks"], held["encoders"])
    print(f"Run it without internet: DATA_DIR={words.to}, and --no-tracking; `import` brings the records home.")
    if lacking:
        print(f"error: not fetched: {', '.join(lacking)}; put their files into {words.to}", file=sys.stderr)
    return 2 if lacking else 0


def _has(table: str, scale: str) -> bool:
    return scale in {known.id for known in benchmark(table).scales}


def _needed(part: Selection) -> list[Cell]:
    """The cells of the first seed, and those from which they begin."""
    from benchmarks.stages import earlier_stages

    return [each for _, _, cell in part.cells() for each in [*earlier_stages(cell), cell]]


def _fetch_task(name: str, folder: Path) -> str:
    from benchmarks.tasks import DataSource, task

    data = task(name).load(DataSource(extracts=folder / EXTRACTS))
    return f"{len(data.pool)} examples ({data.origin})"


def _fetch_encoder(name: str, folder: Path) -> str:
    from benchmarks.backbones import build_tokenizer, locate

    found = locate(name, False, folder, folder / EXTRACTS)
    build_tokenizer(found)  # what is found can be read
    return ", ".join(found.origin.values())
