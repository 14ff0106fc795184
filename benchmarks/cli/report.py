"""The commands on finished records: `report` and `import`."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import api
from benchmarks.campaign.protocol import RESULTS
from benchmarks.cli.arguments import machine, seeds_of, selection
from benchmarks.cli.summary import summary, write_table
from benchmarks.cli.tracked import open_mirror
from benchmarks.dry_run.cache import keep_in
from benchmarks.errors import UserError
from benchmarks.experiment import Row, Scale
from benchmarks.papers import audited, judged, tables_by_paper
from benchmarks.predictions import copy_record, has_predictions
from benchmarks.publication import Paper
from benchmarks.registry import benchmark, benchmark_ids, folder_of, tables_named
from benchmarks.results import RunResult, read_folders, read_result, write_text
from benchmarks.run_config import SCALES, RunConfig
from benchmarks.running.completed import earlier_stages
from benchmarks.running.run_options import RunOptions, available_cores, require_writable
from benchmarks.selection import Selection, of_seeds, part_of
from benchmarks.sweeps.tuning import read_sweep
from fedsim.errors import plural
from fedsim.files import read_text
from reports.audit.statements import Finding, audit_markdown
from reports.audit.statements import summary as audit_summary
from reports.claims.judge import Judgement
from reports.claims.tables import claims_markdown, print_claims
from reports.claims.tables import summary as claims_summary
from reports.evidence.records import by_place, select
from reports.front.readme import FOLDER, write_paper
from reports.pages import files
from reports.pages.render import print_page
from reports.pages.text import span
from reports.sweeps import SECTION, section

Drawing = tuple[Callable[..., Any], Mapping[Path, str]]  # draws a figure; path -> kind
_drawings: list[Drawing] = []  # set before the fork of the processes that draw


def report_command(args: argparse.Namespace) -> int:
    """Show the results of the given benchmarks or papers (default: all), at each scale with records."""
    folders = _with_committed(args.records) or [args.results_dir / "records"]
    if not args.records and not folders[0].is_dir():
        raise UserError(
            f"{folders[0]}: expected records of your runs, found none. Run a benchmark first, such as `make demo`. "
            "README.md shows the committed results; `--records benchmarks/fedsplitbert/records` reads a paper's."
        )
    every, results_dir = read_folders(folders), args.results_dir
    wanted = seeds_of(args)
    records = of_seeds(every, wanted) if wanted else every
    try:
        require_writable(results_dir)
    except UserError as error:
        read = " ".join(f"--records {folder}" for folder in folders)
        raise UserError(f"{error} {read} reads these records.") from None
    keep_in(results_dir)
    chosen = _with_records(tables_named(args.id), args.scale, records, partial(selection, args))
    if not chosen:
        at = f" at scale {args.scale}" if args.scale else ""
        at += f" with seeds {span(wanted)}" if wanted else ""
        raise UserError(
            f"expected records of {', '.join(args.id) or 'any table'}{at} in {', '.join(map(str, folders))}, found "
            f"{_others(every)}"
        )
    drawings: list[Drawing] = []
    pages, pictures = [], {}  # pictures: benchmark id -> path
    for part in chosen:
        page, folder, _ = write_table(part, records, results_dir, args.score, lambda *each: drawings.append(each))
        if args.tasks or args.methods:
            page = api.page(part, records, args.score)
        if len(chosen) == 1 and not args.tables:
            print(*summary(page), sep="\n")
        print_page(page, Console(), tables=args.tables, notes=args.notes)
        print(f"{part.title}: {page.request.coverage}; {folder}/table.md")
        pages.append(page)
        if args.readme and args.pictures and page.figure is not None:
            pictures[part.benchmark.id] = args.pictures / f"{part.benchmark.id}-{part.scale.id}.png"
            drawings.append((page.figure, {pictures[part.benchmark.id]: "png"}))
    _draw_all(drawings)
    claims, checks = list[Sequence[Judgement]](), list[Finding]()
    for paper in {part.benchmark.paper.id: part.benchmark.paper for part in chosen}.values():
        scales = {part.scale.id: part.scale for part in chosen if part.benchmark.paper.id == paper.id}
        folder = results_dir / "reports" / paper.id
        claims += [_claims(paper, scale, records, folder, args.tables) for scale in scales.values()]
        checks += _audit(paper, records, folder)
    if args.readme:
        write_paper(args.readme, pages, pictures, claims, checks, sweep_sections(tables_named(args.id), args.scale))
        print(f"updated {args.readme} and {args.readme.parent / FOLDER}")
    return 0


def _others(records: Sequence[RunResult]) -> str:
    """What records that no named table shows are of, and what to do."""
    todo = "run the table with `python -m benchmarks run`, or name another folder with --records"
    cells: dict[str, list[RunConfig]] = {}
    for record in records:
        cells.setdefault(record.cell.scale, []).append(record.cell)
    if not cells:
        return f"none: {todo}"
    by_scale = (
        f"scale {scale}, {', '.join(sorted({cell.task for cell in of}))} by "
        f"{', '.join(sorted({cell.algorithm for cell in of}))}, seed {span({cell.seed for cell in of})}"
        for scale, of in cells.items()
    )
    return (
        f"{plural(len(records), 'other record')} ({textwrap.shorten('; '.join(by_scale), 400, placeholder=' …')}): "
        f"repeat the --set, --backbone and --include of these runs, name other tasks, methods or seeds, {todo}"
    )


def _with_committed(folders: Sequence[Path]) -> list[Path]:
    """Folders of records; a paper's committed folder adds the other papers', which have cells of its tables."""
    committed = [folder_of(paper) / "records" for paper in tables_by_paper()]
    named = {folder.resolve() for folder in folders}
    shared = [folder for folder in committed if folder.is_dir()] if named & {*committed} else []
    return [*folders, *(folder for folder in shared if folder not in named)]


def _draw_all(drawings: Sequence[Drawing]) -> None:
    """Write figures, in parallel if processes can be forked, as these share the records in memory."""
    workers = min(len(drawings), available_cores())
    if sys.platform != "linux" or workers < 2:
        for drawing in drawings:
            files.draw(*drawing)
    else:
        with ProcessPoolExecutor(workers, get_context("fork"), _drawings.extend, (drawings,)) as pool:
            list(pool.map(_draw, range(len(drawings))))


def _draw(number: int) -> None:
    files.draw(*_drawings[number])


def _with_records(
    ids: Sequence[str], scale: str | None, records: Sequence[RunResult], choose: Callable[[str, str], Selection]
) -> list[Selection]:
    """Select each benchmark at each scale that has records.

    Benchmarks without the named scale are skipped, unless none has it. A table of closed forms needs no run: it is
    selected if its paper has a record or, if it needs no measurement at all, at a named scale.
    """
    at = {record.cell.scale for record in records}
    places = list(product(ids, [scale] if scale else [scale for scale in SCALES if scale in at]))
    existing = [place for place in places if place[1] in benchmark(place[0]).scales_by_id]
    seeds, index = sorted({record.cell.seed for record in records}) or [0], by_place(records)
    parts = [replace(choose(*place), seeds=seeds) for place in existing or places]

    def is_run(part: Selection) -> bool:
        cells = product(part.rows, part.columns)
        return any(select(part.benchmark, part.scale, *cell, index).is_run for cell in cells)

    run = {(part.benchmark.id, part.scale.id): part.benchmark.paper.id for part in parts if is_run(part)}
    paper_scales = {(paper, scale_id) for (_, scale_id), paper in run.items()}
    return [
        part
        for part in parts
        if (part.benchmark.id, part.scale.id) in run
        or (part.benchmark.closed_forms and (part.benchmark.paper.id, part.scale.id) in paper_scales)
        or (part.benchmark.needs_no_run and scale)
    ]


def _claims(paper: Paper, at: Scale, records: Sequence[RunResult], folder: Path, prints: bool) -> Sequence[Judgement]:
    """Judge a paper's claims at a scale and write them. prints: also print each claim."""
    if judgements := judged(paper.id, at, records):
        path = folder / f"claims-{at.id}.md"
        write_text(path, claims_markdown(judgements))
        if prints:
            print_claims(judgements)
        print(f"{paper.name}, {claims_summary(judgements)} {path}")
    return judgements


def _audit(paper: Paper, records: Sequence[RunResult], folder: Path) -> Sequence[Finding]:
    """Check the consistency of a paper's published numbers and write the findings; () without an audit."""
    if findings := audited(paper.id, records):
        write_text(folder / "audit.md", audit_markdown(findings))
        print(f"{paper.name}, {audit_summary(findings)} {folder / 'audit.md'}")
    return findings


def sweep_sections(ids: Sequence[str], scale: str | None) -> list[str]:
    """The sections of these benchmarks' committed sweeps and of the campaign's, at one scale or all."""
    sections = []
    places = [(table, at) for table in map(benchmark, ids) for at in table.scales if scale in (None, at.id)]
    for table, at in places:
        written = folder_of(table.paper.id) / "sweeps" / table.id / at.id / SECTION
        sections += [read_text(written).strip()] if written.is_file() else []
        results = read_sweep(RESULTS / "sweeps" / f"{table.id}-{at.id}.json")
        sections += [section(results, table, at)] if results else []
    return sections


def import_command(args: argparse.Namespace) -> int:
    """Check the records and predictions in a folder, add them, and update MLflow.

    Records without predictions are added and listed; a later import can add the predictions. Of another run of a cell
    that has a record already, nothing is added, and it is listed. UserError at the end with the files that cannot be
    imported, and if MLflow failed.
    """
    problems: list[str] = []
    found, options = read_folders([args.folder], problems), api.settings(**machine(args))
    if not found and not problems:
        raise UserError(f"{args.folder}: expected records (*.json), found none; name a folder of records")
    records, alone, different, added = list[RunResult](), list[str](), list[str](), 0
    for record in found:
        try:
            path = options.records_dir / record.file_name
            yours = read_result(path) if path.exists() else None
            alone += [] if has_predictions(args.folder, record) else [record.file_name]
            copy_record(record, options.records_dir)
        except UserError as error:
            problems.append(str(error))
            continue
        added += yours is None
        different += [record.file_name] if yours not in (None, record) else []
        records.append(yours or record)
    left_out = f", {plural(len(problems), 'file')} left out" if problems else ""
    kept = f", {len(different)} different from yours, yours kept: {', '.join(different)}" if different else ""
    present = len(records) - added - len(different)
    print(f"{plural(added, 'record')} imported, {present} already present{left_out}{kept}")
    if alone:
        print(f"imported without predictions, as {args.folder} lacks them: {', '.join(alone)}")
    if failure := _track(records, options, args):
        problems.append(f"the records are in {options.records_dir}, but not in MLflow: {failure}")
    if problems:
        raise UserError("\n".join(problems))
    return 0


def _track(records: Sequence[RunResult], options: RunOptions, args: argparse.Namespace) -> str:
    """Log records to MLflow, in each of their tables; returns why this failed, or ""."""
    untracked, failures = {record.file_name for record in records}, list[str]()
    parts = _with_records(benchmark_ids(), None, records, partial(_changed_part, args))
    for part in parts:
        runs = part.runs()
        stages = {stage.definition_id for run in runs for stage in earlier_stages(run)}
        ids = {run.definition_id for run in runs}
        listed = [record for of in (stages, ids) for record in records if record.cell.definition_id in of]
        with open_mirror(part, options, failures.append) as mirror:
            mirror.sync(listed)  # parent runs first, as later ones link to them
        if failures:
            return failures[0]
        untracked -= {record.file_name for record in listed}
    if tracked := len(records) - len(untracked):
        print(f"MLflow has {plural(tracked, 'record')} in {plural(len(parts), 'table')}")
    if untracked:
        print(
            f"not in MLflow: {plural(len(untracked), 'record')} with settings that no table defines; repeat the "
            "command with the --set and --backbone of these runs, and with --include FOLDER for your own tables"
        )
    return ""


def _changed_part(args: argparse.Namespace, table: str, scale: str) -> Selection:
    """A table with the arguments' changes; without its rows that lack a changed setting."""
    part = part_of(table, scale, changes=args.set, backbone=args.backbone)

    def has_settings(row: Row) -> bool:
        try:
            return all(part.benchmark.cell(row, column, part.scale, 0) for column in part.columns)
        except UserError:
            return False

    return replace(part, rows=[row for row in part.rows if has_settings(row)]) if args.set else part
