"""The evidence campaign: run the protocol's steps in order; unfinished ones resume, finished ones are skipped."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.campaign.protocol import RESULTS, ROOT, SCALE, TABLES, Step, campaign, selected, steps
from benchmarks.cli.arguments import machine
from benchmarks.predictions import copy_record, predictions_file
from benchmarks.registry import benchmark, include
from benchmarks.results import RunResult, read_folders, read_results
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import chain_of
from benchmarks.running.timings import Timings, taken, taken_in
from benchmarks.selection import Selection
from benchmarks.sweeps.tuning import read_sweep, write_sweep
from fedsim.errors import plural
from fedsim.files import write_bytes


def campaign_command(args: argparse.Namespace) -> int:
    """Run the steps until they are finished or the time is up, then print what is left of each."""
    every = steps()
    for folder in TABLES:
        include(folder)
    deadline = time.monotonic() + 3600 * args.hours if args.hours else None
    _take_in(every, args)
    status = 0 if args.status else run_steps(every, args, deadline)
    if args.keep:
        _keep(args.results_dir)
    print(*standing(every, args), sep="\n")
    return status


def _published() -> list[RunResult]:
    return read_folders(sorted(ROOT.glob("*/records")))


def _take_in(every: Sequence[Step], args: argparse.Namespace) -> None:
    """Copy the committed results of earlier sessions, and the papers' records that steps need."""
    _copy_sweeps(RESULTS, args.results_dir)
    wanted = {cell.spec_id for step in every for command in step.commands for cell in cells_of(command, args)}
    kept = read_results(RESULTS / "records")
    _copy([*kept, *(record for record in _published() if record.cell.spec_id in wanted)], args.results_dir)


def _keep(results_dir: Path) -> None:
    """Copy new results to the committed ones, and move finished steps' runs of papers' tables to the papers' records.

    No page reads a step's records before. The tables' definitions adopt the settings that these runs have.
    """
    published = _published()
    ids = {record.cell_id for record in published}
    _copy_sweeps(results_dir, RESULTS)
    _copy([record for record in read_results(results_dir / "records") if record.cell_id not in ids], RESULTS)
    campaign.cache_clear()
    evidence_campaign = campaign()
    finished = (
        runs for number, runs in evidence_campaign.steps.items() if not evidence_campaign.missing([number], published)
    )
    ids = {each.spec_id for runs in finished for run in runs for each in chain_of(run)}
    for record in evidence_campaign.records:
        if record.cell.spec_id in ids and record.cell.spec_id in evidence_campaign.homes and record.folder:
            _copy([record], ROOT / evidence_campaign.homes[record.cell.spec_id])
            (record.folder / record.file_name).unlink()
            predictions_file(record.folder, record).unlink(missing_ok=True)
    for number, names in evidence_campaign.tables.items():
        if not evidence_campaign.missing([number], published):
            for table in names:
                _adopt(table)


def _adopt(name: str) -> None:
    """Add the choices of a table's sweep to its definition's file, which may have others."""
    sweep, table = RESULTS / "sweeps" / f"{name}-{SCALE}.json", benchmark(name)
    if not sweep.exists():
        return
    chosen = table.search(table.scale(SCALE)).chosen
    if chosen not in (None, sweep):
        write_sweep(chosen, name, SCALE, [*read_sweep(chosen), *read_sweep(sweep)], by_study=False)


def _copy(records: Sequence[RunResult], target: Path) -> None:
    """Copy records with their predictions; existing ones stay."""
    for record in records:
        if record.folder and not (target / "records" / record.file_name).exists():
            copy_record(record, target / "records")


def _copy_sweeps(source: Path, target: Path) -> None:
    """Add sweeps to those of the target; the journal of their trials replaces one that it continues."""
    for path in sorted((source / "sweeps").glob("[!.]*")):
        copy = target / "sweeps" / path.name
        if path.suffix == ".json" and copy.exists():
            table = path.stem.removesuffix(f"-{SCALE}")
            entries = [*read_sweep(path), *read_sweep(copy)]
            entries.sort(key=lambda entry: len(entry.get("trials", ())))  # the study with most trials replaces others
            write_sweep(copy, table, SCALE, entries, by_study=True)
        elif not copy.exists() or path.read_bytes().startswith(copy.read_bytes()):
            write_bytes(copy, path.read_bytes())


def run_steps(every: Sequence[Step], args: argparse.Namespace, deadline: float | None) -> int:
    """Run all commands in order, even if one fails; returns 0, or 2 after a failure.

    args: the folders, workers and device for all commands. deadline: when to stop, by `time.monotonic`.
    """
    status = 0
    for title, command in ((step.title, command) for step in every for command in step.commands):
        if deadline is not None and time.monotonic() >= deadline:
            return status
        chosen, is_sweep = selected(command, args.results_dir), command.startswith("sweep ")
        if is_sweep and _is_tuned(chosen, args.results_dir):
            continue
        untuned = [] if is_sweep else _untuned_rows(chosen, "--from-sweep" in command)
        action = f"not run, without tuned settings for {', '.join(untuned)}" if untuned else command
        print(f"{title}: {action}", flush=True)
        if untuned or _run(command, args, deadline) not in (0, None):
            status = 2
    return status


def arguments(command: str, args: argparse.Namespace) -> list[str]:
    """A step's command with the options that all steps share."""
    shared = ["--scale", SCALE, "--lenient", "--no-tracking", *(f"--include={folder}" for folder in TABLES)]
    given = (f"--{name.replace('_', '-')}={value}" for name, value in machine(args).items())
    return [*shlex.split(command), *shared, *given]


def _is_tuned(chosen: Selection, results_dir: Path) -> bool:
    """Whether the results folder has the choices of a selection's sweep."""
    best = chosen.tuned(results_dir)
    return all((column.task, row.id) in best for column in chosen.columns for row in chosen.rows)


def _untuned_rows(chosen: Selection, from_sweep: bool) -> list[str]:
    """The methods that still need a sweep: the protocol requires tuned settings."""
    if from_sweep and not chosen.benchmark.search(chosen.scale).swept:
        return [row.id for row in chosen.rows]
    rows = {row.id for column in chosen.columns for row in chosen.benchmark.untuned(column, chosen.scale)}
    return [row.id for row in chosen.rows if row.id in rows]


def _run(command: str, args: argparse.Namespace, deadline: float | None) -> int | None:
    """Run a command; returns its exit status, or None if it ran out of time."""
    with subprocess.Popen([sys.executable, "-m", "benchmarks", *arguments(command, args)]) as process:
        try:
            return process.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None
        finally:  # also if this process is interrupted: the command saves its finished rounds
            process.terminate()


def standing(every: Sequence[Step], args: argparse.Namespace) -> Iterator[str]:
    """A line per step: its finished runs, and the time for the others, estimated from records of similar runs."""
    records = read_results(args.results_dir / "records")
    timings = Timings([*taken(records), *taken_in(sorted(ROOT.glob("*/records")))])
    finished = {record.cell.spec_id for record in records}
    for step in every:
        cells = {cell.spec_id: cell for command in step.commands for cell in cells_of(command, args)}
        seconds = [timings.seconds(cell) for spec_id, cell in cells.items() if spec_id not in finished]
        known, unknown = [each for each in seconds if each is not None], seconds.count(None)
        lengths = [f"{sum(known) / 3600:.1f} h left in one process"] if known else []
        lengths += [f"{plural(unknown, 'run')} of unknown length left"] if unknown else []
        left = f"{len(cells) - len(seconds)} of {plural(len(cells), 'run')} finished, {' and '.join(lengths)}"
        done = f"finished, {plural(len(cells), 'run')}"
        yield f"{step.title}: {f'{left}, without tuning' if seconds else done}"


def cells_of(command: str, args: argparse.Namespace) -> list[RunConfig]:
    """The runs of a `run` command, with the sweep's settings if it is finished, otherwise the definition's."""
    return selected(command, args.results_dir).runs() if command.startswith("run ") else []
