"""The command that tunes: sweep."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.cli.output import warn
from benchmarks.cli.progress import ProgressDisplay
from benchmarks.cli.select import Selection, selection, settings, sweep_file
from benchmarks.cli.sweep_files import Result, measure, names_of, shown, write_sweeps
from benchmarks.cli.tracked import open_mirror
from benchmarks.errors import UserError
from benchmarks.results import read_results
from benchmarks.running.events import CellFailed, Event
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.results import keep, result_of
from benchmarks.sweeps.space import Tuning, planned, read_space, spaces
from benchmarks.sweeps.study import TunedStudy, run_trials
from benchmarks.sweeps.tuning import read_sweep
from benchmarks.tracking.store import default_tracking_uri


def sweep_command(args: argparse.Namespace) -> int:
    """Try settings on validation data, show and write the outcome, and how to run the table with the best."""
    chosen = selection(args)
    tunings, options = _planned(chosen, args)
    if not args.no_tracking:
        default_tracking_uri(options.results_dir)  # a malformed address ends the command before hours of training
    path = sweep_file(options.results_dir, chosen)
    read_sweep(path)  # a damaged file ends the command before hours of training, not after
    rows = [row for row in chosen.rows if row in [tuning.row for tuning in tunings]]
    if left := [row.name for row in chosen.rows if row not in rows]:
        print(f"Left out, with nothing of their own to tune: {', '.join(left)}.")
    adopted = chosen.benchmark.search(chosen.scale).chosen if args.adopt else None
    results, problem, files = _run(chosen, tunings, options, not args.no_tracking, path, adopted)
    _print_sweep(chosen, results)
    print(f"Written to {' and '.join(map(str, filter(None, (path, adopted))))}. The table with the best values:")
    print(*commands(args), sep="\n")
    print(f"Of every sweep of {chosen.title} so far:", *files, sep="\n  ")
    if undecided := [" · ".join(names_of(result, chosen.benchmark)) for result in results if result["best"] is None]:
        raise UserError(f"nothing to choose from for {', '.join(undecided)}: {problem or 'every score is undefined'}")
    if problem:
        warn(problem)
    return 0


def _planned(chosen: Selection, args: argparse.Namespace) -> tuple[list[Tuning], RunOptions]:
    """What is tried of each task and method; UserError if the arguments do not fit."""
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
        warn(f"this sweep uses seeds that no table uses ({', '.join(map(str, search.seeds))})")
    tried = spaces(benchmark, scale, chosen.rows, chosen.columns, bool(args.methods), asked)
    for name in (assignment.partition("=")[0] for assignment in args.set):
        for tuned in (*{field for space in tried.values() for field in space}, "holdout"):
            if f"{tuned}.".startswith(f"{name}.") or f"{name}.".startswith(f"{tuned}."):
                raise UserError(
                    f"--set {name}: this sweep decides {tuned} itself; leave it out, or choose other METHODS"
                )
    seeds = search.seeds or tuple(chosen.seeds)
    # A user's grid is tried whole, whatever the definition's budget.
    trials = args.trials or (None if args.grid else search.trials)
    rows, columns = ({one.id: one for one in chosen.rows}, {one.task: one for one in chosen.columns})
    tunings = [
        Tuning(benchmark, scale, rows[row], columns[task], seeds, space, trials, pareto=args.pareto)
        for (task, row), space in tried.items()
    ]
    options = settings(args, sum(tuning.budget for tuning in tunings) * len(seeds))
    rungs = search.rungs if args.rungs is None else args.rungs
    return [planned(tuning, rungs, options) for tuning in tunings], options


def _run(
    chosen: Selection, tunings: Sequence[Tuning], options: RunOptions, tracks: bool, path: Path, adopted: Path | None
) -> tuple[Sequence[Result], str, Sequence[Path]]:
    """Run what is left of a sweep and write its files; UserError if no trial could be run.

    Args:
        chosen: The part of the benchmark.
        tunings: What is tried.
        options: Where results are.
        tracks: Whether MLflow shows the trials, once all have ended.
        path: The sweep's file.
        adopted: The file that definitions read, if it is to be written.

    Returns:
        The outcome of the trials, the problems, and the tables and pictures of all sweeps of the benchmark.
    """
    reasons, names = dict[str, list[str]](), dict[str, str]()
    studies = [TunedStudy(tuning, options.results_dir) for tuning in tunings]
    left = [cell for study in studies for values in study.left() for cell in study.tuning.cells(values)]
    with ProgressDisplay(f"{chosen.title} sweep", left, names) as display:

        def hear(event: Event) -> None:
            display(event)
            if isinstance(event, CellFailed):
                reasons.setdefault(event.message, []).append(names[event.cell.spec_id])

        run_trials(studies, options, hear, names)
    problem = "\n".join(f"{reason} ({'; '.join(failed)})" for reason, failed in reasons.items())
    results = [result_of(study) for study in studies]
    if not any(trial["scores"] for result in results for trial in result["trials"]):
        raise UserError(problem)
    keep(studies, results, options.results_dir, [path, *([adopted] if adopted else [])])
    folder = options.results_dir / "reports" / chosen.benchmark.id / chosen.scale.id / "sweep"
    files = write_sweeps(read_sweep(path), chosen.benchmark, chosen.scale, folder)
    if tracks:
        trials = [
            (study.tuning.named(values), study.tuning.column, cell)
            for study in studies
            for values in study.trials().values()
            for cell in study.tuning.cells(values)
        ]
        with open_mirror(chosen, options, warn, trials) as mirror:
            specs = {cell.spec_id for _, _, cell in trials}
            mirror.sync(record for record in read_results(options.records_dir) if record.cell.spec_id in specs)
            mirror.log_report(files)
    return results, problem, files


def _print_sweep(chosen: Selection, results: Sequence[Result]) -> None:
    """Every value with its validation score, the best one marked, with all that equal it."""
    table = Table(title=f"{chosen.title} sweep: scores {results[0]['score'].partition(' ')[2]}")
    for heading in ("Task", "Method", "Tried", "Score", "sd", "n", "Uplink", ""):
        table.add_column(heading, justify="right" if heading in ("Score", "sd", "n", "Uplink") else "left")
    for result in results:
        task, method = names_of(result, chosen.benchmark)
        for trial in result["trials"]:
            style = "bold" if trial["number"] in result["ties"] else None
            entries = shown(trial, result, chosen.benchmark, chosen.scale)
            table.add_row(f"{task} ({measure(result)})", method, *entries, style=style)
        table.add_section()
    Console(width=max(Console().width, 118)).print(table)
    for result in results:
        if result["tie"]:
            taken = shown(result["best"], result, chosen.benchmark, chosen.scale)[0]
            place, equals = " · ".join(names_of(result, chosen.benchmark)), len(result["ties"])
            print(f"{place}: {equals} trials tie; taken: {taken} ({result['tie']}).")


def commands(args: argparse.Namespace) -> list[str]:
    """How to run the table with the best values: a `python` and a `make` command."""
    seeds = f"{args.seeds[0]}-{args.seeds[-1]}" if args.seeds[0] else str(len(args.seeds))
    variables = {
        "SCALE": args.scale or "",
        "TASKS": ",".join(args.tasks),
        "METHODS": ",".join(args.methods),
        "SEEDS": seeds if args.seeds != range(1) else "",
        "BACKBONE": args.backbone or "",
        "DATA_DIR": str(args.data_dir or ""),
        "RESULTS_DIR": "" if str(args.results_dir) == "results" else str(args.results_dir),
    }
    given = {name: shlex.quote(value) for name, value in variables.items() if value}
    more = shlex.join(["--from-sweep", *(part for change in args.set for part in ("--set", change))])
    flags = "".join(f" --{name.lower().replace('_', '-')} {value}" for name, value in given.items())
    assignments = "".join(f" {name}={value}" for name, value in given.items())
    return [
        f"  python -m benchmarks run {args.id}{flags} {more}",
        f"  make {args.id}{assignments} ARGS={shlex.quote(more)}",
    ]
