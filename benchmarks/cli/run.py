"""The command `run`: compute unfinished runs with progress and tracking, and show the results."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain

from benchmarks import api
from benchmarks.cli.arguments import machine, selection
from benchmarks.cli.progress import ProgressDisplay, readable, warn
from benchmarks.cli.summary import show_run
from benchmarks.cli.tracked import open_mirror
from benchmarks.errors import UserError
from benchmarks.executors.jobs import staged_jobs
from benchmarks.registry import benchmark, folder_of, tables_of
from benchmarks.results import RunResult
from benchmarks.run_config import SCALES
from benchmarks.running.completed import Completed
from benchmarks.running.events import CellFinished, Event
from benchmarks.running.requirements import require_inputs, why_absent
from benchmarks.running.run_options import RunOptions
from benchmarks.running.timings import Timings, taken_in
from benchmarks.selection import Selection
from fedsim.errors import plural
from reports.evidence.records import preferring


def run_command(args: argparse.Namespace) -> int:
    """Compute unfinished runs, show the results and write the table; a paper's tables run one by one."""
    tables = tables_of(args.id)
    if tables == [args.id]:
        _run_table(args)
        return 0
    existing = [name for name in tables if (args.scale or SCALES[0]) in benchmark(name).scales_by_id]
    if not existing:
        raise UserError(f"--scale: expected one that a table of {args.id} has, such as lite, found {args.scale!r}")
    errors = []
    for name in existing:
        try:
            _run_table(argparse.Namespace(**{**vars(args), "id": name}))
        except UserError as error:
            errors.append(f"{name}: {error}")
    if errors:
        raise UserError(f"Incomplete: {len(errors)} of {plural(len(existing), 'table')}. " + "\n".join(errors))
    return 0


def _run_table(args: argparse.Namespace) -> None:
    """Run a selection and its parent runs, with progress and tracking, and show the results."""
    chosen = selection(args)
    options = api.settings(**machine(args), cells=len(chosen.runs()))
    if not args.tasks:
        chosen = with_stand_ins(chosen, options)
    records: list[RunResult] = []
    completed = Completed(options)
    require_inputs(chosen.runs(), options, completed)  # before loading MLflow and torch
    problem: UserError | None = None
    with ExitStack() as stack:
        mirror = None if args.no_tracking else stack.enter_context(open_mirror(chosen, options, warn))
        with _display(chosen, options, completed) as display:

            def tell(event: Event) -> None:
                if isinstance(event, CellFinished):
                    records.append(replace(event.record, folder=options.records_dir))  # next to its predictions
                display(event)
                if mirror:
                    mirror(event)

            try:
                api.run(chosen, options, tell, completed)
            except UserError as error:
                problem = error
        if records:
            every = readable(options.records_dir)
            shown = preferring(every, records)
            if others := len(every) - len(shown):
                warn(f"{plural(others, 'record')} not shown: their data, weights or methods differ from this run's")
            files = show_run(chosen, records, shown, options.results_dir, args.notes)
            if mirror:
                mirror.log_report(files)
                print("View in MLflow (start `make ui` first):", *mirror.links, sep="\n")
    if problem:
        raise problem


def _display(chosen: Selection, options: RunOptions, completed: Completed) -> ProgressDisplay:
    """The progress display for a selection's runs and parent runs; records of similar runs give its estimate."""
    jobs = list(chain(*staged_jobs(chosen.runs(), chosen.benchmark.keeps_weights, completed)))
    again = {job.cell.spec_id for job in jobs if job.needs_weights and not completed(job.cell, with_weights=True)}
    here = list(taken_in([options.records_dir]))
    committed = taken_in([folder_of(chosen.benchmark.paper.id) / "records"])
    timings = Timings([*here, *committed], finished={cell.spec_id for cell, _ in here} - again)
    log = options.results_dir / "logs" / f"{chosen.benchmark.id}-{chosen.scale.id}.log"
    return ProgressDisplay(chosen.title, [job.cell for job in jobs], chosen.names(), timings=timings, log=log)


def with_stand_ins(chosen: Selection, options: RunOptions) -> Selection:
    """The selection with stand-ins only for tasks without data."""
    tasks = {column.task for column in chosen.columns}
    left_out = []
    for stand_in in (column for column in chosen.columns if column.instead_of in tasks):
        if why := why_absent(stand_in.instead_of, options):
            warn(f"{stand_in.name} replaces {stand_in.instead_of}: {why}")
        left_out.append(stand_in.instead_of if why else stand_in.task)
    return replace(chosen, columns=[column for column in chosen.columns if column.task not in left_out])
