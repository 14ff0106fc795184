"""`plan --claims`: the cells that each claim of a paper still needs, and the commands that compute them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from benchmarks.cli.paper import benchmarks_of, judged
from benchmarks.cli.run import why_absent
from benchmarks.encoders.fetched import contents
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark
from benchmarks.registry import claims_of, folder_of, scale_of
from benchmarks.results import RunResult, read_folders
from benchmarks.running.timings import Timings, taken
from reports.claims.cells import Runs
from reports.claims.needs import COUNTED_SEEDS, SEEDS, Missing, needs

HEADINGS = ("Claim", "Rows × tasks", "Complete", "Cells missing", "Hours *", "Left out †", "Seeds ‡")
NOTES = """\
Verdicts hold for a number of seeds that is fixed before the results are seen (docs/statistics.md).
* of one process, by the mean of the records of the same row and task, or of its method there; ? unknown.
‡ needed to decide the claim, projected from the effect and spread of the runs so far ("none": more than 100)."""


def show_needs(args: argparse.Namespace) -> int:
    """Print, claim by claim, the cells without a record, then the commands that compute them."""
    claims = claims_of(args.id)
    if not claims:
        raise UserError(f"{args.id}: expected a paper with claims, such as fedsplitbert, found none of that name")
    tables = benchmarks_of(args.id)
    scale = scale_of(next(table for table in tables.values() if table.paper.id == args.id), args.scale or "lite")
    records = known_records(args, tables.values())
    runs, timings = _with_stand_ins(Runs.of_all(tables, scale, records), args), Timings(taken(records))
    seeds = len(args.seeds) if len(args.seeds) > 1 else 0
    found = [needs(claim, runs, seeds) for claim in claims]
    more = {judgement.claim.id: judgement.more for judgement in judged(args.id, scale, records)}
    many = f"{seeds} seeds of everything" if seeds else f"{SEEDS} seeds ({COUNTED_SEEDS} where rounds are counted)"
    table = Table(title=f"{args.id}, claims · scale {scale.id}: what {many} still need")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("Claim", "Left out †", "Seeds ‡") else "right")
    for each in found:
        seconds = [timings.seconds(cell) for entry in each.missing for cell in entry.cells]
        hours = f"{sum(known or 0.0 for known in seconds) / 3600:.1f}{' + ?' if None in seconds else ''}"
        counts = each.places, each.places - len(each.missing), len(seconds)
        left_out, name = ", ".join(each.closed), each.claim.id
        table.add_row(name, *map(str, counts), hours if seconds else "0", left_out, more.get(name, ""))
    Console().print(table)
    left_out_notes = dict.fromkeys(f"† {name}: {why}." for each in found for name, why in each.closed.items())
    print(NOTES, *left_out_notes, *commands((entry for each in found for entry in each.missing), scale.id), sep="\n")
    return 0


def _with_stand_ins(runs: Runs, args: argparse.Namespace) -> Runs:
    """Use a stand-in for each task without records whose data are missing from the data directory.

    Without a data directory the hub may have all data; it is not asked.
    """
    if args.data_dir is None:
        return runs
    recorded = {record.cell.task for record in runs.records if record.cell.scale == runs.scale.id}
    fetched, instead = contents(args.data_dir).tasks, dict(runs.tables.instead)
    columns = [column for table in runs.tables.benchmarks.values() for column in table.columns if column.instead_of]
    for task, other in {column.instead_of: column.task for column in columns}.items():
        if task in recorded or task in fetched or not (why := why_absent(task, args.data_dir)):
            continue
        if other in fetched or not why_absent(other, args.data_dir):
            print(f"{other} stands in for {task}: {why}")
            instead[task] = other
    return replace(runs, tables=replace(runs.tables, instead=instead))


def known_records(args: argparse.Namespace, tables: Iterable[Benchmark]) -> list[RunResult]:
    """The records of the results folder, and the committed ones of the papers."""
    folders = {folder_of(table.paper.id) / "records" for table in tables} | {args.results_dir / "records"}
    return read_folders(folder for folder in sorted(folders) if folder.is_dir())


def commands(missing: Iterable[Missing], scale: str) -> list[str]:
    """Make commands for missing cells: one for each benchmark, number of seeds, and tasks with the same rows."""
    seeds: dict[tuple[str, str, str], int] = {}  # (benchmark, task, row) -> the most that a claim asks for
    for entry in missing:
        place = entry.at.benchmark, entry.task, entry.at.row
        seeds[place] = max(entry.seeds, seeds.get(place, 0))
    rows: dict[tuple[str, str, int], list[str]] = {}  # (benchmark, task, seeds) -> rows
    for (benchmark, task, row), number in seeds.items():
        rows.setdefault((benchmark, task, number), []).append(row)
    tasks: dict[tuple[str, int, tuple[str, ...]], list[str]] = {}  # (benchmark, seeds, rows) -> tasks
    for (benchmark, task, number), names in rows.items():
        tasks.setdefault((benchmark, number, tuple(sorted(names))), []).append(task)
    return [
        f"make {benchmark} SCALE={scale} TASKS={','.join(names)} METHODS={','.join(methods)} SEEDS={number}"
        for (benchmark, number, methods), names in tasks.items()
    ]
