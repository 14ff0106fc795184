"""The command `sweep`: tune settings on validation data, and write the trials as a table, pictures and a section."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks import api
from benchmarks.cli.arguments import machine, selection
from benchmarks.cli.progress import ProgressDisplay, warn
from benchmarks.cli.tracked import open_mirror
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Scale
from benchmarks.measures import metric
from benchmarks.results import read_results, write_bytes
from benchmarks.running.events import CellFailed, Event
from benchmarks.running.run_options import RunOptions
from benchmarks.selection import Selection
from benchmarks.sweeps.results import keep, result_of
from benchmarks.sweeps.space import Tuning, planned, read_space, spaces
from benchmarks.sweeps.study import TunedStudy, run_trials
from benchmarks.sweeps.tuning import read_sweep
from benchmarks.tracking.store import default_tracking_uri
from reports.pages.plots import KINDS, render
from reports.pages.render import escape
from reports.pages.text import human_bytes
from reports.sweeps import SECTION, figures, heading_of, seeds_of

SHOWN = 5  # whole trials of a study in the section
Result = Mapping[str, Any]  # a study as the sweep's file has it


def sweep_command(args: argparse.Namespace) -> int:
    """Try settings on validation data, show and write the outcome, and how to run the table with the best."""
    chosen = selection(args)
    tunings, options = _planned(chosen, args)
    if not args.no_tracking:
        default_tracking_uri(options.results_dir)  # a malformed address ends the command before hours of training
    path = options.results_dir / chosen.sweep_file
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
    given = read_space(args.grid, args.range)
    if args.range and args.trials is None:
        raise UserError("--range: expected --trials with the number of points to draw, found none")
    if args.adopt and (search.chosen is None or given):
        why = "takes what the definition tunes, without --grid or --range" if given else "reads no choices"
        raise UserError(f"--adopt: {benchmark.id} {why} at the scale {scale.id}; leave it out")
    if args.pareto and args.rungs:
        raise UserError("--rungs: with --pareto all trials are run to their end; leave one of them out")
    if (args.seeds != range(1) or args.seed is not None) and search.seeds:
        warn(f"this sweep uses seeds that no table uses ({', '.join(map(str, search.seeds))})")
    tried = spaces(benchmark, scale, chosen.rows, chosen.columns, bool(args.methods), given)
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
    options = api.settings(**machine(args), cells=sum(tuning.budget for tuning in tunings) * len(seeds))
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


# ---- files -------------------------------------------------------------------------------------------------------


def write_sweeps(results: Sequence[Result], table: Benchmark, scale: Scale, folder: Path) -> list[Path]:
    """Write trials.csv, importances.csv, pictures and a section for the paper's page into a folder; the paths."""
    results = [result for result in results if result.get("metric") and result["trials"]]
    trials, shares = [], []
    for result in results:
        place = {name: result[name] for name in ("task", "method", "scale", "study")}
        shares += [{**place, "field": name, "importance": share} for name, share in result["importances"].items()]
        for trial in result["trials"]:
            scores = {
                "score": result["metric"],
                "mean": trial["mean"],
                "sd": trial["sd"],
                "seeds": len(trial["scores"]),
            }
            outcome = {"uplink_bytes": trial["uplink_bytes"], "state": state(result, trial)}
            trials.append({**place, "trial": trial["number"], **scores, **outcome, **trial["values"]})
    tables = {"trials.csv": trials} | ({"importances.csv": shares} if shares else {})
    contents = {
        name: pd.DataFrame(rows, dtype=object).to_csv(index=False, lineterminator="\n").encode()
        for name, rows in tables.items()
    }
    pictures = figures(results, table, scale)
    for name, figure in pictures.items():
        contents |= dict(zip((f"{name}.{kind}" for kind in KINDS), render(figure, *KINDS), strict=True))
    contents[SECTION] = _section(results, table, scale, [*pictures]).encode()
    for name, content in contents.items():
        write_bytes(folder / name, content)
    return [folder / name for name in contents]


def names_of(result: Result, table: Benchmark) -> tuple[str, str]:
    """Task and method of a study, by name."""
    tasks, rows = {column.task: column.name for column in table.columns}, {row.id: row.name for row in table.rows}
    task, method = str(result["task"]), str(result["method"])
    return tasks.get(task, task), rows.get(method, method)


def measure(result: Result) -> str:
    """The metric of a study, with its unit."""
    by = metric(result["metric"])
    return f"{by.label}, {by.unit}" if by.unit else by.label


def shown(trial: Mapping[str, Any], result: Result, table: Benchmark, scale: Scale) -> tuple[str, ...]:
    """A trial's row in a table: values, score, deviation, number of seeds, uplink, and its state."""
    by, mean, missing = metric(result["metric"]), trial["mean"], len(result["seeds"]) - len(trial["scores"])
    score = f"{by.shown(mean):.2f}" if mean is not None else "failed" if missing else "undefined"
    deviation = "" if trial["sd"] is None else f"{by.shown(trial['sd']):.2f}"
    uplink = "" if trial["uplink_bytes"] is None else human_bytes(trial["uplink_bytes"])
    values = ", ".join(table.shown(name, value, scale) for name, value in trial["values"].items())
    return values, score, deviation, str(len(trial["scores"])), uplink, state(result, trial)


def state(result: Result, trial: Mapping[str, Any]) -> str:
    """Whether a trial of a study is the best, a tie, on the front, or pruned; "" for any other."""
    if "given_up_after" in trial:
        return f"pruned after round {trial['given_up_after']}"
    number, ties = trial["number"], result["ties"]
    marks = {
        "best": result["best"] is not None and number == result["best"]["number"],
        f"tie of {len(ties)}": number in ties and len(ties) > 1,
        "front": number in (result["front"] or ()),
    }
    return ", ".join(mark for mark, holds in marks.items() if holds)


def _section(results: Sequence[Result], table: Benchmark, scale: Scale, pictures: Sequence[str]) -> str:
    """The part of the paper's page: the best trials of each study, and the pictures."""
    about = "Validation data alone: no test example was seen. Bold: the best trial, and what equals it."
    parts = [f"### {escape(heading_of(results, table, scale))}", about]
    for result in results:
        by, ties = metric(result["metric"]), {*result["ties"], *(result["front"] or ())}
        scored = [t for t in result["trials"] if "given_up_after" not in t and t["mean"] is not None]
        scored.sort(key=lambda trial: (-by.sign * trial["mean"], trial["number"]))
        pruned = sum("given_up_after" in trial for trial in result["trials"])
        names = " · ".join(names_of(result, table))
        title = f"{names}, {measure(result)} {result['score'].partition(' ')[2]}, {seeds_of([result])}"
        lines = [f"**{escape(title)}: {len(result['trials'])} trials, {pruned} of them pruned**", ""]
        lines += ["| tried | score | sd | n | uplink | |", "| --- | --: | --: | --: | --: | --- |"]
        for place, trial in enumerate(scored):
            if place < SHOWN or trial["number"] in ties:
                bold = "**" if trial["number"] in result["ties"] else ""
                cells = (cell and f"{bold}{escape(cell)}{bold}" for cell in shown(trial, result, table, scale))
                lines.append(f"| {' | '.join(cells)} |")
        parts += ["\n".join(lines), f"```sh\n{command(result, table, scale)}\n```"]
    folder = f"sweeps/{table.id}/{scale.id}"
    parts += [f"![Sweep of {table.place}, {name}]({folder}/{name}.png)" for name in pictures if name != "history"]
    return "\n\n".join(parts) + "\n"


def command(result: Result, table: Benchmark, scale: Scale) -> str:
    """The command that runs a study again."""
    arguments = ["--trials", str(result["budget"])]
    for name, values in result["grid"].items():
        if isinstance(values, Mapping):
            arguments += ["--range", f"{name}={values['low']}:{values['high']}{':log' if values['log'] else ''}"]
        else:
            arguments += ["--grid", f"{name}={','.join(map(str, values))}"]
    rungs = sorted({trial["given_up_after"] for trial in result["trials"] if "given_up_after" in trial})
    arguments += ["--rungs", ",".join(map(str, rungs))] if rungs else []
    arguments += ["--pareto"] if result["front"] is not None else []
    named = f"SCALE={scale.id} TASKS={result['task']} METHODS={result['method']} DATA_DIR=/data"
    return f"make sweep-{table.id} {named} \\\n  ARGS={shlex.quote(shlex.join(arguments))}"
