"""The command that computes: run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path

from benchmarks.cli.output import warn
from benchmarks.cli.select import Selection, selection, settings, tables_of
from benchmarks.cli.tracked import open_mirror
from benchmarks.encoders.fetched import source_of
from benchmarks.errors import NoDataError, UserError
from benchmarks.executors import run_cells
from benchmarks.executors.jobs import staged_jobs
from benchmarks.registry import benchmark, folder_of
from benchmarks.results import RunResult, read_results
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellFailed, CellFinished, Event, Sink
from benchmarks.running.run_options import RunOptions
from benchmarks.tasks import task


def run_command(args: argparse.Namespace) -> int:
    """Compute what is not finished, then say what came of it and write the table; of a paper, table by table."""
    tables = tables_of(args.id)
    if tables == [args.id]:
        _run_table(args)
        return 0
    known = [name for name in tables if args.scale in (None, *(scale.id for scale in benchmark(name).scales))]
    if not known:
        raise UserError(f"--scale: expected one that a table of {args.id} has, such as lite, found {args.scale!r}")
    stopped = []
    for name in known:
        try:
            _run_table(argparse.Namespace(**{**vars(args), "id": name}))
        except UserError as error:
            stopped.append(f"{name}: {error}")
    if stopped:
        raise UserError(f"{len(stopped)} of {len(known)} tables are not whole. " + "\n".join(stopped))
    return 0


def _run_table(args: argparse.Namespace) -> None:
    from benchmarks.cli.report import show_report

    chosen = selection(args)
    if not args.tasks:
        chosen = at_hand(chosen, args.data_dir, args.lenient)
    cells = list({cell.spec_id: cell for _, _, cell in chosen.cells()}.values())
    made = settings(args, len(cells))

    def show(records: Sequence[RunResult]) -> Sequence[Path]:
        every = list(read_results(made.records_dir)) if records else []
        return show_report(chosen, records, made, every=every, notes=args.notes, short=True)[1] if records else ()

    _, failures = compute(chosen, cells, made, tracking=not args.no_tracking, show=show)
    if failures:
        raise UserError(summary(failures, cells, chosen))


def at_hand(chosen: Selection, data_dir: Path | None = None, lenient: bool = False) -> Selection:
    """Without the tasks that have a stand-in and no data, and without stand-ins for those that have data."""
    there = {column.task for column in chosen.columns}
    left_out = []
    for stand_in in (column for column in chosen.columns if column.instead_of in there):
        if why := why_absent(stand_in.instead_of, data_dir, lenient):
            warn(f"{stand_in.name} stands in for {stand_in.instead_of}: {why}")
        left_out.append(stand_in.instead_of if why else stand_in.task)
    return replace(chosen, columns=[column for column in chosen.columns if column.task not in left_out])


def why_absent(task_id: str, data_dir: Path | None, lenient: bool = False) -> str:
    """Why there are no data of a task; empty where there are. UserError where they are damaged."""
    try:
        task(task_id).load(source_of(task_id, data_dir, lenient))
    except NoDataError as error:
        return str(error)
    return ""


def _nothing(records: Sequence[RunResult]) -> Sequence[Path]:
    return ()


def compute(
    chosen: Selection,
    cells: Sequence[RunConfig],
    made: RunOptions,
    tracking: bool,
    show: Callable[[Sequence[RunResult]], Sequence[Path]] = _nothing,
) -> tuple[list[RunResult], list[CellFailed]]:
    """Run cells, and what they begin from, with progress and tracking; then show their records.

    Returns the records and what failed.

    The files that `show` writes become artifacts of the table's run in MLflow.
    """
    from benchmarks.cli.progress import ProgressDisplay
    from benchmarks.running.completed import Completed
    from benchmarks.running.timings import Timings, taken_in

    records: list[RunResult] = []
    failures: list[CellFailed] = []

    def collect(event: Event) -> None:
        if isinstance(event, CellFinished):
            records.append(event.record)
        elif isinstance(event, CellFailed):
            failures.append(event)

    found = Completed(made)
    jobs = list(chain(*staged_jobs(cells, chosen.benchmark.keeps_weights, found)))
    again = {job.cell.spec_id for job in jobs if job.needs_weights and not found(job.cell, with_weights=True)}
    cells = [job.cell for job in jobs]
    with ExitStack() as stack:
        mirror = stack.enter_context(open_mirror(chosen, made, warn)) if tracking else None
        own = list(taken_in([made.results_dir / "records"]))
        committed = taken_in([folder_of(chosen.benchmark.paper.id) / "records"])
        timings = Timings([*own, *committed], finished={cell.spec_id for cell, _ in own} - again)
        with ProgressDisplay(chosen.title, cells, chosen.names(), timings=timings) as display:
            sinks: list[Sink] = [collect, display, *([mirror] if mirror else [])]

            def tell(event: Event) -> None:
                for sink in sinks:
                    sink(event)

            run_cells(cells, made, tell, chosen.benchmark.keeps_weights, found)
        files = show(records)
        if mirror:
            mirror.log_report(files)
            if mirror.links:
                print("In MLflow (`make ui` serves it), the runs and the score by round:", *mirror.links, sep="\n")
    return records, failures


def summary(failures: Sequence[CellFailed], cells: Sequence[RunConfig], chosen: Selection) -> str:
    """Each distinct reason once, with what it stopped: some of the cells asked for, and what they begin from."""
    reasons: dict[str, list[str]] = {}
    names = chosen.names()
    for failure in failures:
        reasons.setdefault(failure.message, []).append(names[failure.cell.spec_id])
    stopped_cells = len({cell.spec_id for cell in cells} & {failure.cell.spec_id for failure in failures})
    if stopped_cells == len(cells) and len(reasons) == 1:
        return next(iter(reasons))
    lines = [f"{reason} ({'; '.join(stopped)})" for reason, stopped in reasons.items()]
    rest = "; the others are finished" if stopped_cells < len(cells) else ""
    return f"{stopped_cells} of {len(cells)} cells could not be computed{rest}. " + "\n".join(lines)
