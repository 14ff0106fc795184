"""The commands on finished records: `report` and `import`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.cli.ending import ending
from benchmarks.cli.output import warn
from benchmarks.cli.paper import audited, judged, name_of
from benchmarks.cli.select import Selection, selection, settings, tables_of
from benchmarks.cli.sweep_files import sections
from benchmarks.cli.tracked import open_mirror
from benchmarks.dry_run.shapes import derive_client, derive_for, keep_in
from benchmarks.errors import UserError
from benchmarks.experiment import Scale
from benchmarks.predictions import copy_predictions, has_predictions
from benchmarks.publication import SCALES
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.results import RunResult, read_folders, write_result, write_text
from benchmarks.run_config import digest
from benchmarks.running.completed import earlier_stages
from benchmarks.running.run_options import RunOptions, available_cores, require_writable
from reports import views
from reports.audit.statements import audit_markdown
from reports.audit.statements import summary as audit_summary
from reports.claims.tables import claims_markdown, print_claims
from reports.claims.tables import summary as claims_summary
from reports.evidence.records import Index, indexed, request_for, select
from reports.pages import files
from reports.pages.page import Page
from reports.pages.render import print_page

REFERENCES = ("local-majority", "fedavg")  # rows that a run is shown with, where they have records
WIDTH = 150  # characters of the summary in a file: nine tasks with one seed
Drawing = tuple[Callable[..., Any], Mapping[Path, str]]  # a figure, and path -> kind
_drawings: list[Drawing] = []  # in a process that draws some of them


def report_command(args: argparse.Namespace) -> int:
    """Show what has been run of some benchmarks or papers, or of all, at each scale that has records."""
    folders = args.records or [args.results_dir / "records"]
    records, made = read_folders(folders), RunOptions(results_dir=args.results_dir)
    require_writable(made.results_dir)
    keep_in(made.results_dir)
    chosen = _with_records(args, records)
    if not chosen:
        raise UserError(f"no record in {', '.join(map(str, folders))} belongs to what was asked for: run it first")
    drawings: list[Drawing] = []
    pages, links = [], {}  # links: benchmark id -> link to its picture
    for part in chosen:
        page, folder, _ = write_table(part, records, made, args.score, lambda *drawing: drawings.append(drawing))
        if args.tasks or args.methods:
            page = page_of(part, records, args.score)
        if len(chosen) == 1 and not args.tables:
            print(*ending(page, _width()), sep="\n")
        print_page(page, Console(), tables=args.tables, notes=args.notes)
        print(f"{part.title}: {page.run} of {page.cells} cells run; {folder}/table.md")
        pages.append(page)
        if args.readme and args.pictures and page.figure is not None:
            picture = args.pictures / f"{part.benchmark.id}-{part.scale.id}.png"
            drawings.append((page.figure, {picture: "png"}))
            links[part.benchmark.id] = Path(os.path.relpath(picture, args.readme.parent)).as_posix()
    _draw_all(drawings)
    claims: list[str] = []
    audits: list[str] = []
    for paper in dict.fromkeys(part.benchmark.paper.id for part in chosen):
        scales = {part.scale.id: part.scale for part in chosen if part.benchmark.paper.id == paper}
        claims += [_claims(paper, scale, records, made, args.tables) for scale in scales.values()]
        audits.append(_audit(paper, records, made))
    if args.readme:
        rest = [*sections(_asked_for(args.id), args.scale), *audits]
        files.update_readme(args.readme, files.render_state(pages, links, claims, rest))
        print(f"updated {args.readme}")
    return 0


def _draw_all(drawings: Sequence[Drawing]) -> None:
    """Write figures, in parallel where processes can be forked: they have the records in memory."""
    workers = min(len(drawings), available_cores())
    if sys.platform != "linux" or workers < 2:
        for drawing in drawings:
            files.draw(*drawing)
    else:
        with ProcessPoolExecutor(workers, get_context("fork"), _drawings.extend, (drawings,)) as pool:
            list(pool.map(_draw, range(len(drawings))))


def _draw(number: int) -> None:
    files.draw(*_drawings[number])


def _asked_for(names: Sequence[str]) -> list[str]:
    """The ids of benchmarks that names of benchmarks or papers mean, each once; no names mean all."""
    return list(dict.fromkeys(table for name in names for table in tables_of(name))) or benchmark_ids()


def _with_records(args: argparse.Namespace, records: Sequence[RunResult]) -> list[Selection]:
    """Each benchmark that was asked for at each scale that has some of the records.

    A scale that was named is skipped for benchmarks without it, unless none of them has it.
    """
    at = {record.cell.scale for record in records}
    scales = [args.scale] if args.scale else [scale for scale in SCALES if scale in at]
    places = list(product(_asked_for(args.id), scales))
    existing = [place for place in places if place[1] in {scale.id for scale in benchmark(place[0]).scales}]
    seeds, index = sorted({record.cell.seed for record in records}) or [0], indexed(records)
    parts = [
        selection(argparse.Namespace(**{**vars(args), "id": table, "scale": scale}))
        for table, scale in existing or places
    ]
    return [replace(part, seeds=seeds) for part in parts if _is_run(part, index)]


def _is_run(part: Selection, index: Index) -> bool:
    places = product(part.rows, part.columns)
    return any(select(part.benchmark, part.scale, row, column, index).is_run for row, column in places)


def _width() -> int:
    console = Console()
    return console.width if console.is_terminal else WIDTH


def write_table(
    chosen: Selection, records: Sequence[RunResult], made: RunOptions, score_at: str = "chosen", draw: Any = files.draw
) -> tuple[Page, Path, list[Path]]:
    """Write the files of the whole table of a selection; returns its page, the folder and the files.

    Changed settings have a folder of their own. draw: writes the plots, or remembers them.
    """
    scale = chosen.scale
    whole = replace(chosen, rows=chosen.benchmark.rows_at(scale), columns=chosen.benchmark.columns_at(scale))
    shown = page_of(whole, records, score_at)
    name = f"{scale.id}-changed-{digest(scale.label, 8)}" if scale.changed else scale.id
    folder = made.results_dir / "reports" / chosen.benchmark.id / name
    return shown, folder, files.write_report(shown, folder, draw)


def show_run(
    chosen: Selection, records: Sequence[RunResult], every: Sequence[RunResult], made: RunOptions, notes: bool
) -> list[Path]:
    """Print the results of a run, and write the whole table; returns its files.

    every: all records, for the table and for reference rows of the same tasks and seeds.
    """
    names = {row.id for row in chosen.rows}
    references = [row for row in chosen.benchmark.rows_at(chosen.scale) if row.id in REFERENCES and row.id not in names]
    rows, more = list(chosen.rows), list[RunResult]()
    for row in reversed(references):
        cells = {cell.spec_id for _, _, cell in replace(chosen, rows=[row]).cells()}
        if found := [record for record in every if record.cell.spec_id in cells]:
            rows, more = [row, *rows], [*more, *found]
    shown = page_of(replace(chosen, rows=rows), [*records, *more])
    print(*ending(shown, _width()), sep="\n")
    print_page(shown, Console(), tables=False, notes=notes)
    _, folder, paths = write_table(chosen, every, made)
    print(f"Tables, plots and {len(shown.notes)} notes (--notes): {folder}")
    return paths


def page_of(chosen: Selection, records: Sequence[RunResult], score_at: str = "chosen") -> Page:
    """What a table or figure shows of records. score_at: the round of a score, "chosen", "last" or "best"."""
    derive = derive_for(chosen.benchmark), derive_client
    return views.page(
        request_for(chosen.benchmark, chosen.scale, records, chosen.rows, chosen.columns, score_at, *derive)
    )


def _claims(paper: str, at: Scale, records: Sequence[RunResult], made: RunOptions, whole: bool) -> str:
    """Judge a paper's claims at a scale, print and write them; returns Markdown, "" without claims."""
    judgements = judged(paper, at, records)
    if not judgements:
        return ""
    path = made.results_dir / "reports" / paper / f"claims-{at.id}.md"
    text = claims_markdown(judgements)
    write_text(path, text)
    if whole:
        print_claims(judgements)
    print(f"{claims_summary(judgements)} {path}")
    return text


def _audit(paper: str, records: Sequence[RunResult], made: RunOptions) -> str:
    """Check a paper's published numbers against each other, print and write the findings.

    Returns Markdown for the paper's page, folded; "" for a paper without an audit.
    """
    findings = audited(paper, records)
    if not findings:
        return ""
    path = made.results_dir / "reports" / paper / "audit.md"
    write_text(path, audit_markdown(findings))
    print(f"{audit_summary(findings)} {path}")
    whole = audit_markdown(findings, level=4).partition("\n\n")[2].strip()
    folded = f"<details><summary>Every finding</summary>\n\n{whole}\n\n</details>"
    return f"### {name_of(paper)}, consistency of the published numbers\n\n{audit_summary(findings)}\n\n{folded}"


def import_command(args: argparse.Namespace) -> int:
    """Add the records of a folder with their predictions, each checked, and update MLflow.

    A record without its predictions is added and named; a later import can add them.
    """
    records, made = read_folders([args.folder]), settings(args)
    alone = [record.file_name for record in records if not has_predictions(args.folder, record)]
    before = {path.name for path in made.records_dir.glob("*.json")}
    for record in records:
        copy_predictions(args.folder, record, made.records_dir)
        write_result(made.records_dir, record)
    new = sum(record.file_name not in before for record in records)
    print(f"{new} records taken in, {len(records) - new} were there already")
    if alone:
        print(f"without predictions, which are not in {args.folder}: {', '.join(alone)}")
    for part in _with_records(args, records):
        cells = [cell for _, _, cell in part.cells()]
        stages = {stage.definition_id for cell in cells for stage in earlier_stages(cell)}
        ids = {cell.definition_id for cell in cells}
        with open_mirror(part, made, warn) as mirror:  # earlier runs come first, as later ones link to them
            mirror.sync([record for of in (stages, ids) for record in records if record.cell.definition_id in of])
    return 0
