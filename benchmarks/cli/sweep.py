"""The command that tunes: sweep."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.cli.output import warn
from benchmarks.cli.run import summary
from benchmarks.cli.select import Selection, selection, settings, sweep_file
from benchmarks.cli.sweep_files import Result, measure, names_of, shown, write_sweeps
from benchmarks.cli.tracked import open_mirror
from benchmarks.errors import UserError
from benchmarks.experiment import Column, Row
from benchmarks.run_config import JSON, RunConfig
from benchmarks.running.events import CellFailed, CellFinished, Event
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.plan import Tuning, planned
from benchmarks.sweeps.space import read_space, spaces
from benchmarks.sweeps.tuning import read_sweep


@dataclass(frozen=True)
class SweepSelection(Selection):
    """The trials of a part of a benchmark, each as a row."""

    trials: Sequence[tuple[Row, Column, RunConfig]] = ()

    @property
    def title(self) -> str:
        """Benchmark, scale and that it is a sweep: fedsplitbert-table3 @ lite sweep."""
        return f"{super().title} sweep"

    def cells(self) -> list[tuple[Row, Column, RunConfig]]:
        """The cells of the trials."""
        return list(self.trials)


def sweep_command(args: argparse.Namespace) -> int:
    """Try settings on validation data, show and write what came of it, and how to run the table with the best."""
    chosen = selection(args)
    tunings, made = _planned(chosen, args)
    path = sweep_file(made.results_dir, chosen)
    read_sweep(path)  # a damaged one is said before hours of training, not after
    rows = [row for row in chosen.rows if row in [tuning.row for tuning in tunings]]
    if left := [row.name for row in chosen.rows if row not in rows]:
        print(f"Left out, with nothing of their own to tune: {', '.join(left)}.")
    sweep = SweepSelection(chosen.benchmark, chosen.scale, rows, chosen.columns, tunings[0].seeds)
    choices = chosen.benchmark.search(chosen.scale).chosen if args.adopt else None
    results, problem, files = _run(sweep, tunings, made, not args.no_tracking, (path, choices))
    _print_sweep(sweep, results)
    written = " and ".join(str(place) for place in (path, choices) if place)
    print(f"Written to {written}. The table with the best values:", *commands(args, chosen, results), sep="\n  ")
    print(f"Of every sweep of {chosen.title} so far:", *files, sep="\n  ")
    if undecided := [" · ".join(names_of(result, sweep.benchmark)) for result in results if result["best"] is None]:
        raise UserError(f"nothing to choose from for {', '.join(undecided)}: {problem or 'every score is undefined'}")
    if problem:
        warn(problem)
    return 0


def _planned(chosen: Selection, args: argparse.Namespace) -> tuple[list[Tuning], RunOptions]:
    """What is tried of each task and method; UserError where the words do not fit."""
    benchmark, scale, search = chosen.benchmark, chosen.scale, chosen.benchmark.search(chosen.scale)
    asked = read_space(args.grid, args.range)
    if args.range and args.trials is None:
        raise UserError("--range: expected --trials with the number of points to draw, found none")
    if args.adopt and (search.chosen is None or asked):
        why = "takes what the definition tunes, without --grid or --range" if asked else "reads no choices"
        raise UserError(f"--adopt: {benchmark.id} {why} at the scale {scale.id}; leave it out")
    if args.pareto and args.rungs:
        raise UserError("--rungs: with --pareto all trials are run to their end; leave one of them out")
    if (args.seeds != range(1) or args.seed is not None) and search.seeds:
        warn(f"this search has seeds of its own, which no table uses ({', '.join(map(str, search.seeds))})")
    tried = spaces(benchmark, scale, chosen.rows, chosen.columns, bool(args.methods), asked)
    _refuse_tuned({name for space in tried.values() for name in space}, args.set)
    seeds = search.seeds or tuple(chosen.seeds)
    # A grid of the user's own is tried whole, whatever the definition's budget.
    trials = args.trials or (None if args.grid else search.trials)
    tunings = [
        Tuning(benchmark, scale, row, column, seeds, tried[column.task, row.id], trials, pareto=args.pareto)
        for column in chosen.columns
        for row in chosen.rows
        if (column.task, row.id) in tried
    ]
    made = settings(args, sum(tuning.budget for tuning in tunings) * len(seeds))
    rungs = search.rungs if args.rungs is None else args.rungs
    return [planned(tuning, rungs, made) for tuning in tunings], made


def _refuse_tuned(tuned: set[str], assignments: Sequence[str]) -> None:
    for assignment in assignments:
        name = assignment.partition("=")[0]
        for decided in (*tuned, "holdout"):
            if f"{decided}.".startswith(f"{name}.") or f"{name}.".startswith(f"{decided}."):
                raise UserError(
                    f"--set {name}: this sweep decides {decided} itself; leave it out, or choose other METHODS"
                )


def _run(
    sweep: SweepSelection, tunings: Sequence[Tuning], made: RunOptions, tracking: bool, places: tuple[Path, Path | None]
) -> tuple[Sequence[Result], str, Sequence[Path]]:
    """Run what is left of a sweep and write its files; UserError where no trial could be run.

    places: the sweep's file, and the one that definitions read where it is to be written.

    Returns:
        What came of the trials, what went wrong, and the tables and pictures of all sweeps of the benchmark.
    """
    from benchmarks.cli.progress import ProgressDisplay
    from benchmarks.sweeps.loop import Trials, run_trials
    from benchmarks.sweeps.results import keep, result_of

    failures: list[CellFailed] = []
    trials = Trials(tunings, made)
    sweep = replace(sweep, trials=trials.cells())
    trials.names = sweep.names()
    with ExitStack() as stack:
        mirror = stack.enter_context(open_mirror(sweep, made, warn)) if tracking else None
        with ProgressDisplay(sweep.title, trials.left(), trials.names) as display:

            def hear(event: Event) -> None:
                display(event)
                if mirror and isinstance(event, CellFinished):  # a pruned cell has no record
                    mirror(event)
                if isinstance(event, CellFailed):
                    failures.append(event)

            run_trials(trials, hear)
        sweep = replace(sweep, trials=trials.cells())
        cells = list({cell.spec_id: cell for _, _, cell in sweep.trials}.values())
        problem = summary(failures, cells, sweep) if failures else ""
        results = [result_of(tuning, made) for tuning in tunings]
        if not any(trial["scores"] for result in results for trial in result["trials"]):
            raise UserError(problem)
        keep(tunings, results, made, *places)
        folder = made.results_dir / "reports" / sweep.benchmark.id / sweep.scale.id / "sweep"
        files = write_sweeps(read_sweep(places[0]), sweep.benchmark, sweep.scale, folder)
        if mirror:
            mirror.log_report(files)
    return results, problem, files


def _print_sweep(sweep: SweepSelection, results: Sequence[Result]) -> None:
    """Every value with its validation score, the best one marked, with all that equal it."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{sweep.title}: scores {results[0]['score'].partition(' ')[2]}")
    for heading in ("Task", "Method", "Tried", "Score", "sd", "n", "Uplink", ""):
        table.add_column(heading, justify="right" if heading in ("Score", "sd", "n", "Uplink") else "left")
    for result in results:
        task, method = names_of(result, sweep.benchmark)
        for trial in result["trials"]:
            cells = shown(trial, result, sweep.benchmark, sweep.scale)
            style = "bold" if trial["number"] in result["ties"] else None
            table.add_row(f"{task} ({measure(result)})", method, *cells, style=style)
        table.add_section()
    console = Console()
    Console(width=max(console.width, 118)).print(table)
    for result in results:
        if result["tie"]:
            taken = shown(result["best"], result, sweep.benchmark, sweep.scale)[0]
            place, equals = " · ".join(names_of(result, sweep.benchmark)), len(result["ties"])
            print(f"{place}: {equals} trials tie; taken: {taken} ({result['tie']}).")


def commands(args: argparse.Namespace, chosen: Selection, results: Sequence[Result]) -> list[str]:
    """How to run the table with the best values: for each method and value a `python` and a `make` command."""
    tasks: dict[tuple[str, ...], list[str]] = {}
    for result in results:
        if result["best"]:
            changes = [f"{name}={_text(value)}" for name, value in result["best"]["values"].items()]
            tasks.setdefault((result["method"], *changes), []).append(result["task"])
    lines = []
    for (method, *changes), names in tasks.items():
        variables = {
            "SCALE": chosen.scale.id,
            "TASKS": ",".join(names),
            "METHODS": method,
            "SEEDS": shown_seeds(args.seeds) if args.seeds != range(1) else "",
            "BACKBONE": args.backbone or "",
            "DATA_DIR": str(args.data_dir or ""),
            "RESULTS_DIR": "" if str(args.results_dir) == "results" else str(args.results_dir),
        }
        given = {name: shlex.quote(value) for name, value in variables.items() if value}
        more = shlex.join(part for change in [*args.set, *changes] for part in ("--set", change))
        flags = " ".join(f"--{name.lower().replace('_', '-')} {value}" for name, value in given.items())
        lines.append(f"python -m benchmarks run {chosen.benchmark.id} {flags} {more}")
        assignments = " ".join(f"{name}={value}" for name, value in given.items())
        lines.append(f"make {chosen.benchmark.id} {assignments} ARGS={shlex.quote(more)}")
    return lines


def shown_seeds(seeds: range) -> str:
    """Seeds as SEEDS= reads them."""
    return f"{seeds[0]}-{seeds[-1]}" if seeds[0] else str(len(seeds))


def _text(value: JSON) -> str:
    """A value as `--set` reads it."""
    return value if isinstance(value, str) else json.dumps(value)
