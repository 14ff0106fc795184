"""The command that gathers what a benchmark needs: fetch."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.cli.select import Selection, selection, tables_of
from benchmarks.encoders.backbones import KNOWN, build_tokenizer, locate
from benchmarks.encoders.fetched import EXTRACTS, copied, note, places
from benchmarks.errors import NoDataError, UserError
from benchmarks.registry import benchmark
from benchmarks.run_config import RunConfig
from benchmarks.running.run_options import require_writable
from benchmarks.tasks import DataSource, task


def fetch_command(args: argparse.Namespace) -> int:
    """Gather data and encoders, of the user's data directory and the hub, in a folder; status 2 where some lack."""
    args.scale = "lite" if args.scale is None else args.scale
    tables = [name for name in tables_of(args.id) if _has(name, args.scale) or name == args.id]
    chosen = [selection(argparse.Namespace(**{**vars(args), "id": name})) for name in tables]
    require_writable(args.to)
    os.environ.update(places(args.to))  # before the hub's libraries are loaded
    cells = [cell for part in chosen for cell in _needed(part)]
    stood_in = {column.instead_of for part in chosen for column in part.columns if column.instead_of}
    lacking = []
    tasks = list(dict.fromkeys(cell.task for cell in cells if cell.source != "generated"))
    encoders = list(dict.fromkeys(cell.backbone for cell in cells))
    held: dict[str, list[str]] = {"tasks": [], "encoders": []}
    for name in tasks:
        try:
            said, own = _copy_task(name, args)
            if not said:
                said = _fetch_task(name, args.to, own)
                held["tasks"].append(name)
            print(f"ok   task {name}: {said}", flush=True)
        except ValueError as error:  # of ours, or of the engine's
            print(f"none task {name}: {error}", flush=True)
            lacking += [] if name in stood_in else [f"task {name}"]
    note(args.to, held["tasks"], ())  # a vocabulary may be trained on them
    for name in encoders:
        try:
            _copy_vocabulary(name, args.data_dir, args.to)
            print(f"ok   encoder {name}: {_fetch_encoder(name, args.to)}", flush=True)
            held["encoders"].append(name)
        except ValueError as error:  # of ours, or of the engine's
            print(f"none encoder {name}: {error}", flush=True)
            lacking.append(f"encoder {name}")
    note(args.to, held["tasks"], held["encoders"])
    print(f"Run it without internet: DATA_DIR={args.to}, and --no-tracking; `import` brings the records home.")
    if lacking:
        print(f"error: not fetched: {', '.join(lacking)}; put their files into {args.to}", file=sys.stderr)
    return 2 if lacking else 0


def _has(table: str, scale: str) -> bool:
    return scale in {known.id for known in benchmark(table).scales}


def _needed(part: Selection) -> list[RunConfig]:
    """The cells of the first seed, and those from which they begin."""
    from benchmarks.running.completed import earlier_stages

    return [each for _, _, cell in part.cells() for each in [*earlier_stages(cell), cell]]


def _copy_task(name: str, args: argparse.Namespace) -> tuple[str, str]:
    """Copy the files of a task that the data directory has: what was copied, or why nothing could be, in words.

    UserError where its files are damaged or incomplete: the hub's are not put in their place.
    """
    if args.data_dir is None:
        return "", ""
    try:
        data = task(name).load(DataSource(args.data_dir, args.lenient))
    except NoDataError as error:
        return "", str(error)
    size = copied(data.files, args.data_dir, args.to)
    return f"{len(data.pool)} examples ({data.origin}: {len(data.files)} files copied, {size / 1e6:.1f} MB)", ""


def _copy_vocabulary(name: str, data_dir: Path | None, folder: Path) -> None:
    """Copy the tokenizer of a known encoder that a data directory has."""
    if data_dir is not None and name in KNOWN and KNOWN[name].tokenizer:
        own = data_dir / "vocab" / KNOWN[name].tokenizer
        copied((path for path in own.glob("*") if path.is_file()), data_dir, folder)


def _fetch_task(name: str, folder: Path, lacks: str) -> str:
    """Fetch a task from the hub. lacks: why the data directory's own files are none, in words."""
    try:
        data = task(name).load(DataSource(extracts=folder / EXTRACTS))
    except ValueError as error:
        raise UserError("; ".join(filter(None, (lacks, str(error))))) from None
    return f"{len(data.pool)} examples ({data.origin})"


def _fetch_encoder(name: str, folder: Path) -> str:
    found = locate(name, False, folder, folder / EXTRACTS)
    build_tokenizer(found)  # what is found can be read
    return ", ".join(found.origin.values())
