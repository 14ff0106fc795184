"""`plan --claims`: what each claim of a paper still needs, and the commands that compute it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.cli.paper import benchmarks_of, judged
from benchmarks.errors import UserError
from benchmarks.fetched import contents
from benchmarks.record import RunRecord, read_folders
from benchmarks.registry import claims_of, folder_of, scale_of
from benchmarks.spec import Benchmark
from benchmarks.timings import Timings, taken

if TYPE_CHECKING:
    from reports.claims.cells import Runs
    from reports.claims.needs import Missing, Needs


def show_needs(words: argparse.Namespace) -> int:
    """Print, claim by claim, the cells that have no record, then all of them as commands."""
    from rich.console import Console
    from rich.table import Table

    from reports.claims.cells import Runs
    from reports.claims.needs import COUNTED_SEEDS, SEEDS, needs

    claims = claims_of(words.id)
    if not claims:
        raise UserError(f"{words.id}: expected a paper with claims, such as fedsplitbert, found none of that name")
    tables = benchmarks_of(words.id)
    scale = scale_of(next(table for table in tables.values() if table.paper.id == words.id), words.scale or "lite")
    records = known_records(words, tables.values())
    runs, timings = _with_stand_ins(Runs.of_all(tables, scale, records), words), Timings(taken(records))
    seeds = len(words.seeds) if len(words.seeds) > 1 else 0
    found = [needs(claim, runs, seeds) for claim in claims]
    many = f"{seeds} seeds of everything" if seeds else f"{SEEDS} seeds ({COUNTED_SEEDS} where rounds are counted)"
    shown = Table(title=f"{words.id}, claims · scale {scale.id}: what {many} still need")
    for heading in ("Claim", "Rows × tasks", "Complete", "Cells missing", "Hours *", "Left out †", "Seeds ‡"):
        shown.add_column(heading, justify="left" if heading in ("Claim", "Left out †", "Seeds ‡") else "right")
    foreseen = {each.claim.id: each.more.short for each in judged(words.id, scale, records) if each.more}
    for each in found:
        complete, name = str(each.places - len(each.missing)), each.claim.id
        closed, decide = ", ".join(each.closed), foreseen.get(name, "")
        shown.add_row(name, str(each.places), complete, *_amount(each, timings), closed, decide)
    Console().print(shown)
    print("Verdicts hold for a number of seeds that is fixed before one looks (docs/statistics.md).")
    print("* of one process, by the mean of the records of the same row and task, or of its method there; ? unknown.")
    print("‡ that would decide by effects and spreads of what was run (none: not 100); ?: if what is not known agrees.")
    for text in dict.fromkeys(f"† {name}: {why}." for each in found for name, why in each.closed.items()):
        print(text)
    for line in commands((entry for each in found for entry in each.missing), scale.id):
        print(line)
    return 0


def _with_stand_ins(runs: Runs, words: argparse.Namespace) -> Runs:
    """With a stand-in also for each task without records of which the data directory has its stand-in's data alone.

    What was fetched is there, and without a data directory all may be on the hub: so nothing is asked of the hub.
    """
    from benchmarks.cli.run import why_absent

    if words.data_dir is None:
        return runs
    run = {record.cell.task for record in runs.records if record.cell.scale == runs.scale.id}
    columns = [column for table in runs.tables.benchmarks.values() for column in table.columns if column.instead_of]
    fetched, found = contents(words.data_dir)["tasks"], {}
    for task, own in {column.instead_of: column.task for column in columns if column.instead_of not in run}.items():
        task_lacks, own_lacks = (name not in fetched and why_absent(name, words.data_dir) for name in (task, own))
        if task_lacks and not own_lacks:
            print(f"{own} stands in for {task}: {task_lacks}")
            found[task] = own
    return replace(runs, tables=replace(runs.tables, instead={**runs.tables.instead, **found}))


def known_records(words: argparse.Namespace, tables: Iterable[Benchmark]) -> list[RunRecord]:
    """Those of the results folder, and the committed ones of the papers."""
    folders = {folder_of(table.paper.id) / "records" for table in tables} | {words.results_dir / "records"}
    return read_folders(folder for folder in sorted(folders) if folder.is_dir())


def _amount(found: Needs, timings: Timings) -> tuple[str, str]:
    seconds = [timings.seconds(cell) for entry in found.missing for cell in entry.cells]
    hours = sum(known or 0.0 for known in seconds) / 3600
    return str(len(seconds)), f"{hours:.1f}{' + ?' if None in seconds else ''}" if seconds else "0"


def commands(missing: Iterable[Missing], scale: str) -> list[str]:
    """What make runs to fill the gaps, a line for each benchmark, number of seeds and tasks that lack the same rows."""
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
