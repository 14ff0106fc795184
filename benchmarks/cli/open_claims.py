"""What each claim still needs: `plan --claims`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace

import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.encoders.fetched import contents
from benchmarks.errors import UserError
from benchmarks.papers import benchmarks_of, judged
from benchmarks.registry import claims_of, scale_of
from benchmarks.running.requirements import why_absent
from benchmarks.running.run_options import RunOptions
from benchmarks.running.timings import Timings, taken
from benchmarks.selection import all_records
from reports.claims.cells import Runs
from reports.claims.needs import COUNTED_SEEDS, SEEDS, Missing, needs

_CLAIM_HEADINGS = ("Claim", "Rows × tasks", "Complete", "Runs missing", "Hours *", "Left out †", "Seeds ‡")
_CLAIM_NOTES = """\
Fix the number of seeds before you see results: verdicts assume this (docs/statistics.md).
* One process, from the mean of records of the same row and task, or method and task; ? is unknown.
‡ Needed to decide the claim, from the effect and standard deviation so far; empty: unknown, or enough seeds."""


def show_open_claims(args: argparse.Namespace) -> int:
    """Print the missing runs of each claim, then the commands that compute them."""
    claims = claims_of(args.id)
    if not claims:
        raise UserError(f"--claims: expected a paper with claims, such as fedsplitbert, found {args.id}; name one")
    tables = benchmarks_of(args.id)
    scale = scale_of(next(table for table in tables.values() if table.paper.id == args.id), args.scale or "lite")
    records = all_records(args.results_dir, tables.values())
    runs, timings = _with_stand_ins(Runs.of_all(tables, scale, records), args), Timings(taken(records))
    seeds = len(args.seeds) if len(args.seeds) > 1 else 0
    every = [needs(claim, runs, seeds) for claim in claims]
    more = {judgement.claim.id: judgement.more for judgement in judged(args.id, scale, records)}
    many = f"{seeds} seeds of everything" if seeds else f"{SEEDS} seeds ({COUNTED_SEEDS} where rounds are counted)"
    table = Table(title=f"{args.id}, claims · scale {scale.id}: what {many} still need")
    for heading in _CLAIM_HEADINGS:
        table.add_column(heading, justify="left" if heading in ("Claim", "Left out †", "Seeds ‡") else "right")
    for each in every:
        seconds = [timings.seconds(cell) for entry in each.missing for cell in entry.cells]
        hours = f"{sum(duration or 0.0 for duration in seconds) / 3600:.1f}{' + ?' if None in seconds else ''}"
        counts = each.places, each.places - len(each.missing), len(seconds)
        left_out, name = ", ".join(each.closed), each.claim.id
        table.add_row(name, *map(str, counts), hours if seconds else "0", left_out, more.get(name, ""))
    Console().print(table)
    left_out_notes = dict.fromkeys(f"† {name}: {why}." for each in every for name, why in each.closed.items())
    todo = commands((entry for each in every for entry in each.missing), scale.id)
    print(_CLAIM_NOTES, *left_out_notes, *todo, sep="\n")
    return 0


def _with_stand_ins(runs: Runs, args: argparse.Namespace) -> Runs:
    """Use a stand-in for each task that has no records and no data in the data directory.

    Without a data directory the hub may have all data, so no task is replaced.
    """
    if args.data_dir is None:
        return runs
    recorded = {record.cell.task for record in runs.records if record.cell.scale == runs.scale.id}
    options = RunOptions(args.results_dir, args.data_dir)
    fetched, instead = contents(args.data_dir).tasks, dict(runs.tables.instead)
    columns = [column for table in runs.tables.benchmarks.values() for column in table.columns if column.instead_of]
    for task, other in {column.instead_of: column.task for column in columns}.items():
        if task in recorded or task in fetched or not (why := why_absent(task, options)):
            continue
        if other in fetched or not why_absent(other, options):
            print(f"{other} replaces {task}: {why}")
            instead[task] = other
    return replace(runs, tables=replace(runs.tables, instead=instead))


def commands(missing: Iterable[Missing], scale: str) -> list[str]:
    """The make commands for missing runs: one per benchmark, number of seeds, and tasks with the same rows."""
    entries = [(each.at.benchmark, each.task, each.at.row, each.seeds) for each in missing]
    frame = pd.DataFrame(entries, columns=["table", "task", "row", "seeds"])
    for keys, merged, merge in (
        (["table", "task", "row"], "seeds", "max"),  # the most that any claim needs
        (["table", "task", "seeds"], "row", lambda names: ",".join(sorted(names))),
        (["table", "seeds", "row"], "task", ",".join),
    ):
        frame = frame.groupby(keys, sort=False)[merged].agg(merge).reset_index()
    return [
        f"make {each.table} SCALE={scale} TASKS={each.task} METHODS={each.row} SEEDS={each.seeds}"
        for each in frame.itertuples()
    ]
