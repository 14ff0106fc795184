"""The evidence campaign: the protocol's steps in order, each resumed, and skipped where it is finished."""

from __future__ import annotations

import argparse
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cli.arguments import build_parser
from benchmarks.cli.select import selection, sweep_file
from benchmarks.errors import UserError
from benchmarks.registry import include
from benchmarks.results import RunResult, read_results, write_bytes
from benchmarks.run_config import RunConfig
from benchmarks.running.timings import Timings, taken_in
from benchmarks.sweeps.tuning import best_values, read_sweep

ROOT = Path(__file__).parent.parent  # of the papers' folders
COMMITTED = ROOT / "campaign" / "results"  # of earlier sessions, laid out as a results folder; no page reads them
FOLDERS = {"records": "*", "sweeps": "*"}  # of a results folder: the files that are committed
SCALE = "lite"
GRACE = 60  # seconds in which a command that is stopped may save its state


@dataclass(frozen=True)
class Step:
    """Some commands of `python -m benchmarks`, in order, and the claims that their records decide."""

    number: int
    title: str
    decides: str
    commands: tuple[str, ...]


def steps() -> list[Step]:
    """The steps of every paper's campaign, in order; makes their tables known."""
    found = []
    for path in sorted(ROOT.glob("*/campaign/steps.toml")):
        include(path.parent)
        found += tomllib.loads(path.read_text(encoding="utf-8"))["step"]
    return [
        Step(number, step["title"], step["decides"], tuple(step["commands"]))
        for number, step in enumerate(found, start=1)
    ]


def campaign_command(args: argparse.Namespace) -> int:
    """Run the steps until they are finished or the time is up, then say what each still needs."""
    every = steps()
    deadline = time.monotonic() + 3600 * args.hours if args.hours else None
    _copy_missing(COMMITTED, args.results_dir)
    status = 0 if args.status else run_steps(every, args, deadline)
    if args.keep:
        _copy_missing(args.results_dir, COMMITTED)
    for line in standing(every, args):
        print(line)
    return status


def _copy_missing(source: Path, target: Path) -> None:
    """Copy results and sweeps; an existing result stays, and of a sweep's file the longer version is kept.

    A result is copied after its predictions: predictions without a result harm nobody.
    """
    for folder, pattern in FOLDERS.items():
        for path in sorted((source / folder).glob(pattern), key=lambda path: path.suffix == ".json"):
            copy = target / folder / path.name
            is_newer = folder == "sweeps" and copy.exists() and copy.stat().st_size < path.stat().st_size
            if path.is_file() and not path.name.startswith(".") and (is_newer or not copy.exists()):
                write_bytes(copy, path.read_bytes())


def run_steps(every: Sequence[Step], args: argparse.Namespace, deadline: float | None) -> int:
    """Run all commands in order; returns 0, or 2 where one of them failed.

    A command that fails does not stop those after it, as their records are worth as much.

    Args:
        every: The steps.
        args: The command line's arguments: the folders, workers and device of all commands.
        deadline: When to stop, by `time.monotonic`; None: at the end.
    """
    status = 0
    for step in every:
        for command in step.commands:
            if deadline is not None and time.monotonic() >= deadline:
                return status
            if is_tuned(command, args):
                continue
            if untuned := untuned_rows(command, args):
                print(f"Step {step.number}, {step.title}: not run, as {', '.join(untuned)} are not tuned", flush=True)
                status = 2
                continue
            print(f"Step {step.number}, {step.title}: {command}", flush=True)
            if _run(command, args, deadline) not in (0, None):
                status = 2
    return status


def is_tuned(command: str, args: argparse.Namespace) -> bool:
    """Whether a command is a sweep whose choices are in the results folder."""
    parsed = build_parser().parse_args(arguments(command, args))
    if parsed.command != "sweep":
        return False
    chosen = selection(parsed)
    labels = {column.task: chosen.benchmark.label(chosen.scale, [column]) for column in chosen.columns}
    best = best_values(read_sweep(sweep_file(args.results_dir, chosen)), labels)
    return all((task, method) in best for task in parsed.tasks for method in parsed.methods)


def untuned_rows(command: str, args: argparse.Namespace) -> list[str]:
    """The methods of a run whose settings no sweep has chosen yet: their results would break the protocol."""
    parsed = build_parser().parse_args(arguments(command, args))
    if parsed.command != "run":
        return []
    try:
        chosen = selection(parsed)
    except UserError:  # no sweep has ended
        return parsed.methods
    rows = {row.id for column in chosen.columns for row in chosen.benchmark.untuned(column, chosen.scale)}
    return [row.id for row in chosen.rows if row.id in rows]


def _run(command: str, args: argparse.Namespace, deadline: float | None) -> int | None:
    """Run a command; returns its exit status, or None if the time was up first."""
    process = subprocess.Popen([sys.executable, "-m", "benchmarks", *arguments(command, args)])
    try:
        return process.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None
    finally:  # also where this process is interrupted: what is saved round by round stays
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()


def arguments(command: str, args: argparse.Namespace) -> list[str]:
    """A step's command with what all of them share."""
    folders = sorted({str(path.parent) for path in ROOT.glob("*/campaign/steps.toml")})
    shared = ["--scale", SCALE, "--lenient", "--no-tracking", "--results-dir", str(args.results_dir)]
    shared += [part for folder in folders for part in ("--include", folder)]
    given = {"--data-dir": args.data_dir, "--workers": args.workers, "--device": args.device}
    shared += [part for flag, value in given.items() if value is not None for part in (flag, str(value))]
    return [*shlex.split(command), *shared]


def standing(every: Sequence[Step], args: argparse.Namespace) -> Iterator[str]:
    """A line for each step: its finished cells, and what the others take by the times of cells like them."""
    folder = args.results_dir / "records"
    records = list(read_results(folder)) if folder.is_dir() else []
    committed = taken_in(path for path in sorted(ROOT.glob("*/records")) if path.is_dir())
    timings = Timings([*((each.cell, each.timing["train_seconds"]) for each in records), *committed])
    for step in every:
        cells = {cell.spec_id: cell for command in step.commands for cell in _cells(command, args)}
        yield f"Step {step.number}, {step.title}: {_needs(list(cells.values()), records, timings)}"


def _cells(command: str, args: argparse.Namespace) -> list[RunConfig]:
    """The cells of a `run`; those whose settings are still to be chosen have the definition's own."""
    parsed = build_parser().parse_args(arguments(command, args))
    if parsed.command != "run":
        return []
    try:
        return [cell for _, _, cell in selection(parsed).cells()]
    except UserError:  # no sweep is finished
        parsed.from_sweep = False
        return [cell for _, _, cell in selection(parsed).cells()]


def _needs(cells: Sequence[RunConfig], records: Sequence[RunResult], timings: Timings) -> str:
    finished = {record.cell.spec_id for record in records}
    left = [cell for cell in cells if cell.spec_id not in finished]
    if not left:
        return f"finished, {len(cells)} cells"
    seconds = [timings.seconds(cell) for cell in left]
    hours = sum(known or 0.0 for known in seconds) / 3600
    unknown = "" if None not in seconds else f" and {seconds.count(None)} cells of unknown length"
    return f"{len(cells) - len(left)} of {len(cells)} cells, {hours:.1f} h of one process left{unknown}, without tuning"
