"""The command `fetch`: copy the data and encoders that a benchmark needs to a folder."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.cli.select import selection, tables_of
from benchmarks.encoders.backbones import KNOWN
from benchmarks.encoders.fetched import EXTRACTS, copied, note, places
from benchmarks.encoders.loading import build_tokenizer, locate
from benchmarks.errors import NoDataError, UserError
from benchmarks.registry import benchmark
from benchmarks.running.completed import earlier_stages
from benchmarks.running.run_options import require_writable
from benchmarks.tasks import DataSource, task


def fetch_command(args: argparse.Namespace) -> int:
    """Copy data and encoders, from the user's data directory or the hub, to a folder; status 2 if some are missing."""
    args.scale = args.scale or "lite"
    tables = [name for name in tables_of(args.id) if name == args.id or _has(name, args.scale)]
    chosen = [selection(args, name) for name in tables]
    require_writable(args.to)
    os.environ.update(places(args.to))  # before the hub's libraries are loaded
    cells = [each for part in chosen for _, _, cell in part.cells() for each in [*earlier_stages(cell), cell]]
    optional = {column.instead_of for part in chosen for column in part.columns if column.instead_of}
    fetched: dict[str, list[str]] = {"task": [], "encoder": []}
    missing = []
    names = dict.fromkeys(("task", cell.task) for cell in cells if cell.source != "generated")
    for kind, name in [*names, *dict.fromkeys(("encoder", cell.backbone) for cell in cells)]:
        try:
            text, is_fetched = _task(name, args) if kind == "task" else _encoder(name, args)
            fetched[kind] += [name] if is_fetched else []
            print(f"ok   {kind} {name}: {text}", flush=True)
        except ValueError as error:  # of the project, or of fedsim
            print(f"none {kind} {name}: {error}", flush=True)
            missing += [] if name in optional else [f"{kind} {name}"]
        note(args.to, fetched["task"], fetched["encoder"])  # a vocabulary may be trained on the tasks before it
    print(f"Run without internet: DATA_DIR={args.to} and --no-tracking; `import` brings the records back.")
    if missing:
        print(f"error: not fetched: {', '.join(missing)}; put their files into {args.to}", file=sys.stderr)
    return 2 if missing else 0


def _has(table: str, scale: str) -> bool:
    return scale in {known.id for known in benchmark(table).scales}


def _task(name: str, args: argparse.Namespace) -> tuple[str, bool]:
    """Copy a task's files from the data directory, or fetch it; returns a description and whether it was fetched.

    UserError if its files are damaged or incomplete: the hub's do not replace them.
    """
    reason = ""
    if args.data_dir is not None:
        try:
            data = task(name).load(DataSource(args.data_dir, args.lenient))
            size = copied(data.files, args.data_dir, args.to)
            files = f"{len(data.files)} files copied, {size / 1e6:.1f} MB"
            return f"{len(data.pool)} examples ({data.origin}: {files})", False
        except NoDataError as error:
            reason = str(error)
    try:
        data = task(name).load(DataSource(extracts=args.to / EXTRACTS))
    except ValueError as error:
        raise UserError("; ".join(filter(None, (reason, str(error))))) from None
    return f"{len(data.pool)} examples ({data.origin})", True


def _encoder(name: str, args: argparse.Namespace) -> tuple[str, bool]:
    """Fetch an encoder, with the tokenizer from the data directory if it has one."""
    folder: Path = args.to
    if args.data_dir is not None and name in KNOWN and KNOWN[name].tokenizer:
        vocabulary = args.data_dir / "vocab" / KNOWN[name].tokenizer
        copied((path for path in vocabulary.glob("*") if path.is_file()), args.data_dir, folder)
    found = locate(name, False, folder, folder / EXTRACTS)
    build_tokenizer(found)  # check that it can be read
    return ", ".join(found.origin.values()), True
