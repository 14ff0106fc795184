"""The command that tunes: sweep."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.cli.run import compute, summary, warn
from benchmarks.cli.select import Selection, selection, settings
from benchmarks.errors import UserError
from benchmarks.measures import Metric
from benchmarks.record import RunRecord
from benchmarks.spec import JSON, Cell, Column, Row
from benchmarks.studies import Studies
from benchmarks.sweep import best, budget, outcomes, plan_tuning, stage_cells, tuned_rows, write_sweep
from benchmarks.trials import Tried, Tuning
from benchmarks.tuning import read_sweep


@dataclass(frozen=True)
class SweepSelection(Selection):
    """The trials of a part of a benchmark, each a row of its own, after `stage` rungs.

    known: records of the rungs before, by their cells' spec_id.
    """

    tunings: Sequence[Tuning]
    stage: int = 0
    known: Mapping[str, RunRecord] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Benchmark, scale and that it is a sweep: fedsplitbert-table3 @ lite sweep."""
        return f"{super().title} sweep"

    def cells(self) -> list[tuple[Row, Column, Cell]]:
        """The trials' cells."""
        return [
            (trial.row, tuning.column, cell)
            for tuning in self.tunings
            for trial, cell in stage_cells(tuning, self.known, self.stage)
        ]


def sweep_command(words: argparse.Namespace) -> int:
    """Try what the paper tunes on validation data, show what came of it and how to run the table with the best."""
    chosen = selection(words)
    search = chosen.benchmark.search(chosen.scale)
    rows = tuned_rows(chosen.benchmark, chosen.scale, chosen.rows if words.methods else ())
    if words.adopt and search.chosen is None:
        raise UserError(f"--adopt: {chosen.benchmark.id} reads no choices at the scale {chosen.scale.id}; leave it out")
    if words.seeds > 1 and search.seeds:
        warn(f"this search has seeds of its own, which no table uses ({', '.join(map(str, search.seeds))})")
    grids = [search.grids[row.id] for row in rows]
    _refuse_tuned({name for grid in grids for name in grid}, words.set)
    seeds = search.seeds or tuple(chosen.seeds)
    count = sum(budget(grid, words.trials or search.trials) for grid in grids) * len(chosen.columns) * len(seeds)
    made = settings(words, count)
    path = made.results_dir / "sweeps" / f"{chosen.benchmark.id}-{chosen.scale.id}.json"
    read_sweep(path)  # a damaged one is said before hours of training, not after
    tunings = [
        plan_tuning(chosen.benchmark, chosen.scale, row, column, seeds, made, words.trials)
        for column in chosen.columns
        for row in rows
    ]
    by_spec: dict[str, RunRecord] = {}
    problems = []
    for stage in range(len(search.rungs) + 1):
        sweep = SweepSelection(chosen.benchmark, chosen.scale, rows, chosen.columns, seeds, tunings, stage, by_spec)
        cells = list({cell.spec_id: cell for _, _, cell in sweep.cells()}.values())
        records, failures = compute(sweep, cells, made, tracking=not words.no_tracking)
        if failures:
            problems.append(summary(failures, len(cells), sweep))
        by_spec = by_spec | {record.cell.spec_id: record for record in records}
    problem = "\n".join(problems)
    if not by_spec:
        raise UserError(problem)
    tried = [(tuning, outcomes(tuning, by_spec)) for tuning in tunings]
    Studies(made.results_dir).tell(tried)
    written = (path, search.chosen) if words.adopt and search.chosen else (path,)
    for place in written:
        write_sweep(place, chosen.benchmark, chosen.scale, seeds, tried, made.results_dir)
    print_sweep(sweep, tried)
    print(
        f"Written to {' and '.join(map(str, written))}. The table with the best values:",
        *commands(words, chosen, tried),
        sep="\n  ",
    )
    undecided = [
        f"{tuning.column.name} · {tuning.row.name}" for tuning, results in tried if best(results, tuning.metric) is None
    ]
    if undecided:
        raise UserError(f"nothing to choose from for {', '.join(undecided)}: {problem or 'every score is undefined'}")
    if problem:
        warn(problem)
    return 0


def _refuse_tuned(tuned: set[str], assignments: Sequence[str]) -> None:
    for assignment in assignments:
        name = assignment.partition("=")[0]
        for decided in (*tuned, "holdout"):
            if f"{decided}.".startswith(f"{name}.") or f"{name}.".startswith(f"{decided}."):
                raise UserError(
                    f"--set {name}: this sweep decides {decided} itself; leave it out, or choose other METHODS"
                )


def print_sweep(sweep: SweepSelection, tried: Tried) -> None:
    """Every value with its validation score, the best one marked."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{sweep.title}: validation scores after the {tried[0][0].scored_at} round")
    for heading in ("Task", "Method", "Tried", "Score", "sd", "n", ""):
        table.add_column(heading, justify="right" if heading in ("Score", "sd", "n") else "left")
    for tuning, results in tried:
        metric = tuning.metric
        unit = f", {metric.unit}" if metric.unit else ""
        chosen = best(results, metric)
        for one in results:
            table.add_row(
                f"{tuning.column.name} ({metric.label}{unit})",
                tuning.row.name,
                ", ".join(sweep.benchmark.shown(*value, sweep.scale) for value in one.trial.values.items()),
                _score(one.mean, metric) or ("undefined" if one.finished else "failed"),
                _score(one.deviation, metric),
                str(len(one.scores)),
                "best" if one is chosen else f"given up after {one.rung}" if one.rung is not None else "",
                style="bold" if one is chosen else None,
                end_section=one is results[-1],
            )
    console = Console()
    Console(width=max(console.width, 118)).print(table)


def _score(value: float | None, metric: Metric) -> str:
    return "" if value is None else f"{metric.shown(value):.2f}"


def commands(words: argparse.Namespace, chosen: Selection, tried: Tried) -> list[str]:
    """How to run the table with the best values: for each method and value a `python` and a `make` command."""
    tasks: dict[tuple[str, ...], list[str]] = {}
    for tuning, results in tried:
        if (one := best(results, tuning.metric)) is not None:
            changes = [f"{name}={_text(value)}" for name, value in one.trial.values.items()]
            tasks.setdefault((tuning.row.id, *changes), []).append(tuning.column.task)
    lines = []
    for (method, *changes), names in tasks.items():
        variables = {
            "SCALE": chosen.scale.id,
            "TASKS": ",".join(names),
            "METHODS": method,
            "SEEDS": str(words.seeds) if words.seeds > 1 else "",
            "BACKBONE": words.backbone or "",
            "DATA_DIR": str(words.data_dir or ""),
            "RESULTS_DIR": "" if str(words.results_dir) == "results" else str(words.results_dir),
        }
        given = {name: shlex.quote(value) for name, value in variables.items() if value}
        more = shlex.join(part for change in [*words.set, *changes] for part in ("--set", change))
        flags = " ".join(f"--{name.lower().replace('_', '-')} {value}" for name, value in given.items())
        lines.append(f"python -m benchmarks run {chosen.benchmark.id} {flags} {more}")
        assignments = " ".join(f"{name}={value}" for name, value in given.items())
        lines.append(f"make {chosen.benchmark.id} {assignments} ARGS={shlex.quote(more)}")
    return lines


def _text(value: JSON) -> str:
    """A value as `--set` reads it."""
    return value if isinstance(value, str) else json.dumps(value)
