"""The trials of a sweep: plan them, run them, and write tables and figures."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.cli.progress import ProgressDisplay, readable, warn
from benchmarks.cli.tracked import open_mirror
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Scale
from benchmarks.measures import metric
from benchmarks.overrides import is_within
from benchmarks.results import RunResult
from benchmarks.running.events import CellFailed, Event
from benchmarks.running.run_options import RunOptions
from benchmarks.selection import Selection
from benchmarks.sweeps.results import keep, result_of
from benchmarks.sweeps.space import Tuning, planned, read_grid, spaces
from benchmarks.sweeps.study import TunedStudy, run_trials, trial_score
from benchmarks.sweeps.tuning import read_sweep
from fedsim.files import write_bytes
from reports.pages.plots import KINDS, render
from reports.pages.text import human_bytes
from reports.sweeps import Result, figure, names_of, trials_frame


def tune(chosen: Selection, options: RunOptions, args: argparse.Namespace, next_command: str) -> None:
    """Run the remaining trials of a sweep, show the outcome and write its files.

    next_command: how to use the outcome, printed at the end. UserError if the arguments do not fit, or a study has no
    best trial.
    """
    tunings = _planned(chosen, options, args)
    if left := [row.name for row in chosen.rows if row not in [tuning.row for tuning in tunings]]:
        print(f"Left out, as the sweep tunes none of their settings: {'; '.join(left)}.")
    studies = [TunedStudy(tuning, options.results_dir) for tuning in tunings]
    problem = _run(chosen, studies, options)
    results = [result_of(study) for study in studies]
    if not any(trial["scores"] for result in results for trial in result["trials"]):
        raise UserError(problem)
    adopted = chosen.benchmark.search(chosen.scale).chosen if args.adopt else None
    paths = [options.results_dir / chosen.sweep_file, *([adopted] if adopted else [])]
    keep(studies, results, options.results_dir, paths)
    folder = options.results_dir / "reports" / chosen.benchmark.id / chosen.scale.id / "sweep"
    files = write_sweeps(read_sweep(paths[0]), chosen.benchmark, chosen.scale, folder)
    if not args.no_tracking:
        _show_in_mlflow(chosen, studies, options, files)
    _print_sweep(chosen, results)
    print(f"Written to {' and '.join(map(str, paths))}. {next_command}")
    print(f"Files for all sweeps of {chosen.title} so far:", *files, sep="\n  ")
    if undecided := [" · ".join(names_of(result, chosen.benchmark)) for result in results if result["best"] is None]:
        raise UserError(f"no best trial for {', '.join(undecided)}: {problem or 'every score is undefined'}")
    if problem:
        warn(problem)


def _planned(chosen: Selection, options: RunOptions, args: argparse.Namespace) -> list[Tuning]:
    """The trials per task and method; UserError if the arguments do not fit."""
    benchmark, scale, search = chosen.benchmark, chosen.scale, chosen.benchmark.search(chosen.scale)
    given = read_grid(args.grid)
    if (args.seeds != range(1) or args.seed is not None) and search.seeds:
        its = ", ".join(map(str, search.seeds))
        warn(f"--seeds and --seed are ignored: this sweep uses seeds that no table uses ({its})")
    tried = spaces(benchmark, scale, chosen.rows, chosen.columns, bool(args.methods), given)
    for name in (assignment.partition("=")[0] for assignment in args.set):
        for tuned in (*{field for space in tried.values() for field in space}, "holdout"):
            if is_within(tuned, name) or is_within(name, tuned):
                how = "sets" if tuned == "holdout" else "tunes"
                raise UserError(f"--set {name}: the sweep {how} {tuned} itself; leave out --set {name}")
    seeds = search.seeds or tuple(chosen.seeds)
    # The definition's budget does not limit a user's grid.
    trials = args.trials or (None if args.grid else search.trials)
    rows, columns = ({one.id: one for one in chosen.rows}, {one.task: one for one in chosen.columns})
    rungs = search.rungs if args.rungs is None else args.rungs
    return [
        planned(Tuning(benchmark, scale, rows[row], columns[task], seeds, space, trials), rungs, options)
        for (task, row), space in tried.items()
    ]


def _run(chosen: Selection, studies: Sequence[TunedStudy], options: RunOptions) -> str:
    """Run the remaining trials; returns each problem with the trials that it stopped."""
    reasons, names = dict[str, list[str]](), dict[str, str]()
    left = [cell for study in studies for values in study.left() for cell in study.tuning.cells(values)]
    with ProgressDisplay(f"{chosen.title} sweep", left, names) as display:

        def hear(event: Event) -> None:
            display(event)
            if isinstance(event, CellFailed):
                reasons.setdefault(event.message, []).append(names[event.cell.spec_id])

        run_trials(studies, options, hear, names)
    return "\n".join(f"{reason} ({'; '.join(failed)})" for reason, failed in reasons.items())


def _show_in_mlflow(
    chosen: Selection, studies: Sequence[TunedStudy], options: RunOptions, files: Sequence[Path]
) -> None:
    """Log finished trials and the sweep's files to MLflow."""
    trials = [
        (study.tuning, values, cell)
        for study in studies
        for values in study.trials().values()
        for cell in study.tuning.cells(values)
    ]
    rows = [(tuning.named(values), tuning.column, cell) for tuning, values, cell in trials]
    last_rounds = {cell.spec_id: tuning.last_rounds for tuning, _, cell in trials}

    def score_of(record: RunResult, score: str) -> float | None:
        return trial_score(record.rounds, score, last_rounds[record.cell.spec_id])

    with open_mirror(chosen, options, warn, rows, score_of) as mirror:
        mirror.sync(record for record in readable(options.records_dir) if record.cell.spec_id in last_rounds)
        mirror.log_report(files)


def _print_sweep(chosen: Selection, results: Sequence[Result]) -> None:
    """Print each trial's validation score, and mark the best one and its ties."""
    table = Table(title=f"{chosen.title} sweep: scores {results[0]['score'].partition(' ')[2]}")
    for heading in ("Task", "Method", "Tried", "Score", "sd", "n", "Uplink", ""):
        table.add_column(heading, justify="right" if heading in ("Score", "sd", "n", "Uplink") else "left")
    for result in results:
        task, method = names_of(result, chosen.benchmark)
        by = metric(result["metric"])
        for trial, line in zip(result["trials"], trials_frame([result]).itertuples(), strict=True):
            score = "failed" if line.seeds < len(result["seeds"]) else "undefined"
            entries = (
                shown(trial, chosen),
                score if line.mean is None else f"{by.shown(line.mean):.2f}",
                "" if line.sd is None else f"{by.shown(line.sd):.2f}",
                str(line.seeds),
                "" if line.uplink_bytes is None else human_bytes(line.uplink_bytes),
                line.state,
            )
            style = "bold" if line.trial in result["ties"] else None
            table.add_row(f"{task} ({by.label}{f', {by.unit}' if by.unit else ''})", method, *entries, style=style)
        table.add_section()
    Console(width=max(Console().width, 118)).print(table)
    for result in results:
        if result["tie"]:
            place, equals = " · ".join(names_of(result, chosen.benchmark)), len(result["ties"])
            print(f"{place}: {equals} trials tie; taken: {shown(result['best'], chosen)} ({result['tie']}).")


def write_sweeps(results: Sequence[Result], table: Benchmark, scale: Scale, folder: Path) -> list[Path]:
    """Write trials.csv and the trials' figure to a folder; returns their paths."""
    results = [result for result in results if result.get("metric") and result["trials"]]
    contents = {"trials.csv": trials_frame(results).to_csv(index=False, lineterminator="\n").encode()}
    drawn = render(partial(figure, results, table, scale), *KINDS)
    contents |= dict(zip((f"trials.{kind}" for kind in KINDS), drawn, strict=True))
    for name, content in contents.items():
        write_bytes(folder / name, content)
    return [folder / name for name in contents]


def shown(trial: Mapping[str, Any], chosen: Selection) -> str:
    """A trial's values, as the table writes them."""
    return ", ".join(chosen.benchmark.shown(name, value, chosen.scale) for name, value in trial["values"].items())
