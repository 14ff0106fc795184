"""The command that tunes: sweep."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.cli.run import compute, summary, warn
from benchmarks.cli.select import Selection, selection, settings, sweep_file
from benchmarks.cli.sweep_files import write_sweeps
from benchmarks.errors import UserError
from benchmarks.measures import Metric
from benchmarks.record import RunRecord
from benchmarks.settings import Settings
from benchmarks.spaces import read_space, spaces
from benchmarks.spec import JSON, Cell, Column, Row
from benchmarks.studies import Studies
from benchmarks.sweep import declared, outcomes, plan_tuning, stage_cells, write_sweep
from benchmarks.trials import WAVE, Outcome, Tried, Tuning, best, front, tied
from benchmarks.tuning import Range, Wanted, read_sweep


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
    """Try settings on validation data, show and write what came of it, and how to run the table with the best."""
    chosen = selection(words)
    search = chosen.benchmark.search(chosen.scale)
    asked = read_space(words.grid, words.range)
    is_drawn = any(isinstance(values, Range) for values in asked.values())
    if is_drawn and words.trials is None:
        raise UserError("--range: expected --trials with the number of points to draw, found none")
    if words.adopt and (search.chosen is None or asked):
        why = "takes what the definition tunes, without --grid or --range" if asked else "reads no choices"
        raise UserError(f"--adopt: {chosen.benchmark.id} {why} at the scale {chosen.scale.id}; leave it out")
    if (words.seeds != range(1) or words.seed is not None) and search.seeds:
        warn(f"this search has seeds of its own, which no table uses ({', '.join(map(str, search.seeds))})")
    found = spaces(chosen.benchmark, chosen.scale, chosen.rows, chosen.columns, bool(words.methods), asked)
    _refuse_tuned({name for space in found.values() for name in space}, words.set)
    rows = [row for row in chosen.rows if any((column.task, row.id) in found for column in chosen.columns)]
    if left := [row.name for row in chosen.rows if row not in rows]:
        print(f"Left out, with nothing of their own to tune: {', '.join(left)}.")
    seeds = search.seeds or tuple(chosen.seeds)
    plans = {place: _wanted(declared(chosen.benchmark, chosen.scale, space), words) for place, space in found.items()}
    made = settings(words, sum(plan.budget for plan in plans.values()) * len(seeds))
    path = sweep_file(made.results_dir, chosen)
    read_sweep(path)  # a damaged one is said before hours of training, not after
    narrowed = SweepSelection(chosen.benchmark, chosen.scale, rows, chosen.columns, seeds, ())
    running = _Running(narrowed, plans, made, not words.no_tracking, (path, search.chosen if words.adopt else None))
    tried, problem = running.all()
    print_sweep(running.selection, tried)
    print(
        f"Written to {' and '.join(map(str, running.written))}. The table with the best values:",
        *commands(words, chosen, tried),
        sep="\n  ",
    )
    print(f"Of every sweep of {chosen.title} so far:", *running.files, sep="\n  ")
    undecided = [
        f"{tuning.column.name} · {tuning.row.name}" for tuning, results in tried if best(results, tuning.metric) is None
    ]
    if undecided:
        raise UserError(f"nothing to choose from for {', '.join(undecided)}: {problem or 'every score is undefined'}")
    if problem:
        warn(problem)
    return 0


def _wanted(plan: Wanted, words: argparse.Namespace) -> Wanted:
    """With what the user says of rungs and objectives; Optuna gives up no trial of two objectives."""
    rungs = plan.rungs if words.rungs is None else tuple(words.rungs)
    if words.pareto and words.rungs:
        raise UserError("--rungs: with --pareto all trials are run to their end; leave one of them out")
    # A grid of the user's own is tried whole, whatever the definition's budget.
    trials = words.trials or (None if words.grid else plan.trials)
    return replace(plan, trials=trials, rungs=() if words.pareto else rungs, pareto=words.pareto)


@dataclass
class _Running:
    """A sweep while it runs: wave by wave of what is drawn (a grid is one), and rung by rung."""

    selection: SweepSelection
    plans: Mapping[tuple[str, str], Wanted]
    made: Settings
    tracking: bool
    places: tuple[Path, Path | None]  # the sweep's file, and the one that definitions read where it is to be written
    records: dict[str, RunRecord] = field(default_factory=dict)  # by their cells' spec_id
    problems: list[str] = field(default_factory=list)
    files: Sequence[Path] = ()

    @property
    def written(self) -> list[Path]:
        """The files that hold what was found."""
        return [path for path in self.places if path]

    def all(self) -> tuple[Tried, str]:
        """Run what is left of it; what came of all trials, and what went wrong. UserError where nothing was run."""
        budget = max(plan.budget for plan in self.plans.values())
        is_drawn = not all(plan.is_grid for plan in self.plans.values())
        for most in [*range(WAVE, budget, WAVE), budget] if is_drawn else [budget]:
            plans = {place: replace(plan, trials=most) if is_drawn else plan for place, plan in self.plans.items()}
            tunings = self._planned(plans)
            stages = range(1 + max(len(tuning.rungs) for tuning in tunings))
            for stage in stages:
                self.selection = replace(self.selection, tunings=tunings, stage=stage, known=self.records)
                self._run(is_last=most == budget and stage == stages[-1])
            Studies(self.made.results_dir).tell(self._tried())
        return self._tried(), "\n".join(self.problems)

    def _planned(self, plans: Mapping[tuple[str, str], Wanted]) -> list[Tuning]:
        chosen = self.selection
        return [
            plan_tuning(
                chosen.benchmark, chosen.scale, row, column, chosen.seeds, self.made, plans[column.task, row.id]
            )
            for column in chosen.columns
            for row in chosen.rows
            if (column.task, row.id) in plans
        ]

    def _run(self, is_last: bool) -> None:
        cells = list({cell.spec_id: cell for _, _, cell in self.selection.cells()}.values())
        cells = [cell for cell in cells if cell.spec_id not in self.records]
        if not cells and not is_last:
            return
        show = self._written if is_last else _nothing
        records, failures = compute(self.selection, cells, self.made, tracking=self.tracking, show=show)
        self._know(records)
        if failures:
            self.problems.append(summary(failures, cells, self.selection))
        if is_last and not self.records:
            raise UserError("\n".join(self.problems))

    def _know(self, records: Sequence[RunRecord]) -> None:
        self.records = self.records | {record.cell.spec_id: record for record in records}

    def _tried(self) -> list[tuple[Tuning, Sequence[Outcome]]]:
        return [(tuning, outcomes(tuning, self.records)) for tuning in self.selection.tunings]

    def _written(self, records: Sequence[RunRecord]) -> Sequence[Path]:
        """Write the sweep's files and their pictures, which become artifacts of its run in MLflow."""
        self._know(records)
        if self.records:
            chosen, (path, choices) = self.selection, self.places
            for place in self.written:
                is_choice = place == choices
                write_sweep(
                    place, chosen.benchmark, chosen.scale, chosen.seeds, self._tried(), self.made.results_dir, is_choice
                )
            folder = self.made.results_dir / "reports" / chosen.benchmark.id / chosen.scale.id / "sweep"
            self.files = write_sweeps(read_sweep(path), chosen.benchmark, chosen.scale, folder)
        return self.files


def _nothing(records: Sequence[RunRecord]) -> Sequence[Path]:
    return ()


def _refuse_tuned(tuned: set[str], assignments: Sequence[str]) -> None:
    for assignment in assignments:
        name = assignment.partition("=")[0]
        for decided in (*tuned, "holdout"):
            if f"{decided}.".startswith(f"{name}.") or f"{name}.".startswith(f"{decided}."):
                raise UserError(
                    f"--set {name}: this sweep decides {decided} itself; leave it out, or choose other METHODS"
                )


def print_sweep(sweep: SweepSelection, tried: Tried) -> None:
    """Every value with its validation score, the best one marked, with all that equal it."""
    from rich.console import Console
    from rich.table import Table

    from reports.pages.text import human_bytes

    table = Table(title=f"{sweep.title}: validation scores after the {tried[0][0].scored_at} round")
    is_pareto = any(tuning.pareto for tuning, _ in tried)
    for heading in ("Task", "Method", "Tried", "Score", "sd", "n", *(("Uplink",) if is_pareto else ()), ""):
        table.add_column(heading, justify="right" if heading in ("Score", "sd", "n", "Uplink") else "left")
    for tuning, results in tried:
        metric = tuning.metric
        unit = f", {metric.unit}" if metric.unit else ""
        equals, ahead = tied(results, metric), front(results, metric) if tuning.pareto else []
        for one in results:
            table.add_row(
                f"{tuning.column.name} ({metric.label}{unit})",
                tuning.row.name,
                ", ".join(sweep.benchmark.shown(*value, sweep.scale) for value in one.trial.values.items()),
                _score(one.mean, metric) or ("undefined" if one.finished else "failed"),
                _score(one.deviation, metric),
                str(len(one.scores)),
                *([human_bytes(one.uplink) if one.uplink is not None else ""] if is_pareto else []),
                _remark(one, equals, ahead),
                style="bold" if one in equals else None,
                end_section=one is results[-1],
            )
    console = Console()
    Console(width=max(console.width, 118)).print(table)


def _remark(one: Outcome, equals: Sequence[Outcome], ahead: Sequence[Outcome]) -> str:
    """Whether it is the best, or as good, whether none is better in score and bytes, or when it was given up."""
    if one.rung is not None:
        return f"given up after {one.rung}"
    marks = {
        "best": one in equals[:1],
        f"tie of {len(equals)}": one in equals and len(equals) > 1,
        "front": one in ahead,
    }
    return ", ".join(mark for mark, holds in marks.items() if holds)


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
            "SEEDS": shown_seeds(words.seeds) if words.seeds != range(1) else "",
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


def shown_seeds(seeds: range) -> str:
    """Seeds as SEEDS= reads them."""
    return f"{seeds[0]}-{seeds[-1]}" if seeds[0] else str(len(seeds))


def _text(value: JSON) -> str:
    """A value as `--set` reads it."""
    return value if isinstance(value, str) else json.dumps(value)
