"""Commands on finished records: report, import."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cli.beside import Beside
from benchmarks.cli.output import warn
from benchmarks.cli.paper import show_audit, show_claims
from benchmarks.cli.select import Selection, selection, settings, tables_of
from benchmarks.cli.sweep_files import sections
from benchmarks.cli.tracked import open_mirror
from benchmarks.dry_run.shapes import derive_client, derive_for
from benchmarks.errors import UserError
from benchmarks.publication import SCALES
from benchmarks.registry import benchmark_ids
from benchmarks.results import RunResult, read_folders, write_result
from benchmarks.run_config import digest
from benchmarks.running.run_options import RunOptions, available_cores, require_writable

if TYPE_CHECKING:
    from reports.evidence.records import Index
    from reports.pages.page import Page


def report_command(args: argparse.Namespace) -> int:
    """Render what has been run of benchmarks, of papers, or of all; every scale that has records."""
    folders = args.records or [args.results_dir / "records"]
    records = read_folders(folders)
    made = RunOptions(results_dir=args.results_dir)
    require_writable(made.results_dir)
    chosen = _with_records(args, records)
    if not chosen:
        places = ", ".join(map(str, folders))
        raise UserError(f"no record in {places} belongs to what was asked for: run it first")
    from reports.pages.files import draw, render_state, update_readme

    with Beside(draw, available_cores()) as drawing:
        pages = [show_report(part, records, made, args.score, notes=args.notes, draw=drawing)[0] for part in chosen]
        readme, pictures = args.readme, args.pictures
        links = _pictures(pages, pictures, readme.parent, drawing) if readme and pictures else {}
        claims: list[str] = []
        audits: list[str] = []
        for paper in dict.fromkeys(part.benchmark.paper.id for part in chosen):
            scales = {part.scale.id: part.scale for part in chosen if part.benchmark.paper.id == paper}
            claims += [show_claims(paper, scale, records, made) for scale in scales.values()]
            audits.append(show_audit(paper, records, made))
    if readme:
        rest = [*sections(_asked_for(args.id), args.scale), *audits]
        update_readme(readme, render_state(pages, links, claims, rest))
        print(f"updated {readme}")
    return 0


def _pictures(pages: Sequence[Page], folder: Path, beside: Path, draw: Callable[..., None]) -> dict[str, str]:
    """Draw the pages' figures into a folder; returns benchmark id -> link from a file that lies `beside`."""
    links = {}
    for page in pages:
        if page.figure is not None:
            path = folder / f"{page.request.benchmark.id}-{page.request.scale.id}.png"
            draw(page.figure, {path: "png"})
            links[page.request.benchmark.id] = Path(os.path.relpath(path, beside)).as_posix()
    return links


def _with_records(args: argparse.Namespace, records: Sequence[RunResult]) -> list[Selection]:
    """Every benchmark at every scale, of those asked for, that some of the records belong to."""
    from reports.evidence.records import indexed

    scales = [args.scale] if args.scale else [scale for scale in SCALES if any(r.cell.scale == scale for r in records)]
    seeds = sorted({record.cell.seed for record in records}) or [0]
    parts = [
        replace(
            selection(argparse.Namespace(**{**vars(args), "scale": scale, "seeds": range(1)}), benchmark_id),
            seeds=seeds,
        )
        for benchmark_id in _asked_for(args.id)
        for scale in scales
    ]
    index = indexed(records)
    return [part for part in parts if _is_run(part, index)]


def _asked_for(names: Sequence[str]) -> list[str]:
    """Ids of benchmarks: for each name the one of that name, or all of the paper of that name; all where none is given.

    Each comes once, in the order of the names.
    """
    return list(dict.fromkeys(table for name in names for table in tables_of(name))) or benchmark_ids()


def _is_run(part: Selection, index: Index) -> bool:
    """Whether some of the records, of any seed and engine, belong to it."""
    from reports.evidence.records import select

    cells = product(part.rows, part.columns)
    return any(select(part.benchmark, part.scale, row, column, index).is_run for row, column in cells)


def _belonging(part: Selection, records: Sequence[RunResult]) -> list[RunResult]:
    asked = {cell.definition_id for _, _, cell in part.cells()}
    return [record for record in records if record.cell.definition_id in asked]


def _stages_of(part: Selection, records: Sequence[RunResult]) -> list[RunResult]:
    """The records of what a part's cells begin from, to whose runs theirs are linked."""
    from benchmarks.running.completed import earlier_stages

    asked = {stage.definition_id for _, _, cell in part.cells() for stage in earlier_stages(cell)}
    return [record for record in records if record.cell.definition_id in asked]


def show_report(
    chosen: Selection,
    records: Sequence[RunResult],
    made: RunOptions,
    score_at: str = "chosen",
    every: Sequence[RunResult] | None = None,
    notes: bool = False,
    short: bool = False,
    draw: Callable[..., None] | None = None,
) -> tuple[Page, list[Path]]:
    """Print what is chosen of a benchmark, and write the files of all of it that has been run; returns page and files.

    every: the records that files show, where others are at hand than those that are printed. Changed settings have a
    folder of their own. notes: whether those under the tables are printed; short: the end of a run for the tables.
    draw: what writes the plots, in place of doing so at once.
    """
    from rich.console import Console
    from rich.text import Text

    from benchmarks.cli.ending import ending
    from reports.pages import files
    from reports.pages.render import print_page

    shown, console = page_of(chosen, records, score_at), Console()
    for line in ending(shown, console.width) if short else ():
        console.print(Text(line))
    print_page(shown, console, tables=not short, notes=notes)
    scale = chosen.scale
    every_row, every_column = chosen.benchmark.rows_at(scale), chosen.benchmark.columns_at(scale)
    whole = replace(chosen, rows=every_row, columns=every_column)
    alike = every is None and tuple(chosen.rows) == every_row and tuple(chosen.columns) == every_column
    written = shown if alike else page_of(whole, records if every is None else every, score_at)
    name = f"{scale.id}-changed-{digest(scale.label, 8)}" if scale.changed else scale.id
    folder = made.results_dir / "reports" / chosen.benchmark.id / name
    paths = files.write_report(written, folder, draw or files.draw)
    unsaid = "" if notes else f"; {len(shown.notes)} notes: in table.md, or with --notes"
    print(f"Written to {folder}: {', '.join(path.name for path in paths)}{unsaid}")
    return shown, paths


def page_of(chosen: Selection, records: Sequence[RunResult], score_at: str = "chosen") -> Page:
    """What a table or figure shows of records; score_at: the "chosen" or the "last" round."""
    from reports.evidence.records import request_for
    from reports.views import page

    derive = derive_for(chosen.benchmark), derive_client
    return page(request_for(chosen.benchmark, chosen.scale, records, chosen.rows, chosen.columns, score_at, *derive))


def import_command(args: argparse.Namespace) -> int:
    """Take in records from a folder, each checked, with what they answered, and bring MLflow up to date.

    A record is whole without that: where the file is not there, it is taken in and named; a later import brings it.
    """
    from benchmarks.predictions import copy_predictions, has_predictions

    records = read_folders([args.folder])
    made = settings(args)
    alone = [record.file_name for record in records if not has_predictions(args.folder, record)]
    known = {path.name for path in made.records_dir.glob("*.json")}
    for record in records:
        copy_predictions(args.folder, record, made.records_dir)
        write_result(made.records_dir, record)
    new = sum(record.file_name not in known for record in records)
    print(f"{new} records taken in, {len(records) - new} were there already")
    if alone:
        print(f"without the predictions beside them, which were not found in {args.folder}: {', '.join(alone)}")
    for part in _with_records(args, records):
        own = _belonging(part, records)
        with open_mirror(part, made, warn) as mirror:
            mirror.sync([*_stages_of(part, records), *own])
    return 0
