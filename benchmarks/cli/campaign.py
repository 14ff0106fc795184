"""The evidence campaign: run the protocol's steps in order; unfinished ones resume, finished ones are skipped."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.campaign.protocol import RESULTS, ROOT, SCALE, TABLES, Step, steps
from benchmarks.cli.arguments import build_parser, machine, selection
from benchmarks.errors import UserError
from benchmarks.registry import include
from benchmarks.results import read_results
from benchmarks.run_config import RunConfig
from benchmarks.running.timings import Timings, taken, taken_in
from fedsim.files import write_bytes


def campaign_command(args: argparse.Namespace) -> int:
    """Run the steps until they are finished or the time is up, then print what is left of each."""
    every = steps()
    for folder in TABLES:
        include(folder)
    deadline = time.monotonic() + 3600 * args.hours if args.hours else None
    _copy_missing(RESULTS, args.results_dir)  # of earlier sessions
    status = 0 if args.status else run_steps(every, args, deadline)
    if args.keep:
        _copy_missing(args.results_dir, RESULTS)  # no page reads a step's records until the step is finished
    print(*standing(every, args), sep="\n")
    return status


def _copy_missing(source: Path, target: Path) -> None:
    """Copy results and sweeps. Existing results stay; if a sweep has two files, the longer one is kept.

    Predictions are copied before their result: without it they do no harm.
    """
    for folder in ("records", "sweeps"):
        for path in sorted((source / folder).glob("[!.]*"), key=lambda path: path.suffix == ".json"):
            copy = target / folder / path.name
            is_longer = folder == "sweeps" and copy.exists() and copy.stat().st_size < path.stat().st_size
            if path.is_file() and (is_longer or not copy.exists()):
                write_bytes(copy, path.read_bytes())


def run_steps(every: Sequence[Step], args: argparse.Namespace, deadline: float | None) -> int:
    """Run all commands in order, even if one fails; returns 0, or 2 after a failure.

    args: the folders, workers and device for all commands. deadline: when to stop, by `time.monotonic`.
    """
    status = 0
    for title, command in ((step.title, command) for step in every for command in step.commands):
        if deadline is not None and time.monotonic() >= deadline:
            return status
        parsed = _parsed(command, args)
        if parsed.command == "sweep" and _is_tuned(parsed):
            continue
        untuned = _untuned_rows(parsed) if parsed.command == "run" else []
        action = f"not run, as {', '.join(untuned)} are not tuned" if untuned else command
        print(f"{title}: {action}", flush=True)
        if untuned or _run(command, args, deadline) not in (0, None):
            status = 2
    return status


def arguments(command: str, args: argparse.Namespace) -> list[str]:
    """A step's command with the options that all steps share."""
    shared = ["--scale", SCALE, "--lenient", "--no-tracking", *(f"--include={folder}" for folder in TABLES)]
    given = (f"--{name.replace('_', '-')}={value}" for name, value in machine(args).items())
    return [*shlex.split(command), *shared, *given]


def _parsed(command: str, args: argparse.Namespace) -> argparse.Namespace:
    return build_parser().parse_args(arguments(command, args))


def _is_tuned(parsed: argparse.Namespace) -> bool:
    """Whether the results folder has the sweep's choices."""
    chosen = selection(parsed)
    best = chosen.tuned(parsed.results_dir)
    return all((column.task, row.id) in best for column in chosen.columns for row in chosen.rows)


def _untuned_rows(parsed: argparse.Namespace) -> list[str]:
    """The methods that still need a sweep: the protocol requires tuned settings."""
    try:
        chosen = selection(parsed)
    except UserError:  # no finished sweep
        return list(parsed.methods)
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
    """A line per step: its finished cells, and the time for the others, estimated from records of similar cells."""
    records = list(read_results(args.results_dir / "records"))
    timings = Timings([*taken(records), *taken_in(sorted(ROOT.glob("*/records")))])
    finished = {record.cell.spec_id for record in records}
    for step in every:
        cells = {cell.spec_id: cell for command in step.commands for cell in cells_of(command, args)}
        seconds = [timings.seconds(cell) for spec_id, cell in cells.items() if spec_id not in finished]
        hours = sum(known or 0.0 for known in seconds) / 3600
        unknown = f" and {seconds.count(None)} cells of unknown length" if None in seconds else ""
        left = f"{len(cells) - len(seconds)} of {len(cells)} cells, {hours:.1f} h of one process left{unknown}"
        yield f"{step.title}: {f'{left}, without tuning' if seconds else f'finished, {len(cells)} cells'}"


def cells_of(command: str, args: argparse.Namespace) -> list[RunConfig]:
    """The cells of a `run`, with the sweep's settings if it is finished, otherwise the definition's."""
    parsed = _parsed(command, args)
    if parsed.command != "run":
        return []
    try:
        return selection(parsed).runs()
    except UserError:  # no finished sweep
        parsed.from_sweep = False
        return selection(parsed).runs()
