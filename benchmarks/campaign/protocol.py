"""The evidence campaign for the judge: its steps, committed results and remaining runs."""

from __future__ import annotations

import argparse
import importlib
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.claims import At, AverageBetter, Better, Decisive, Study
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark
from benchmarks.measures import metric
from benchmarks.registry import benchmark, tables_in
from benchmarks.results import RunResult, read_results
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import chain_of
from benchmarks.selection import Selection, part_of
from benchmarks.sweeps.tuning import read_sweep

RESULTS = Path(__file__).with_name("results")
ROOT = RESULTS.parents[1]  # of the papers' folders
TABLES = sorted({path.parent for path in ROOT.glob("*/campaign/*.py")})  # in papers' folders, but not listed
SCALE = "lite"


class Step(NamedTuple):
    """Ordered commands of `python -m benchmarks`. number: a fixed name, independent of the order."""

    title: str
    commands: Sequence[str]
    number: int = 0


def steps() -> list[Step]:
    """The steps of the campaign, in order."""
    entries = tomllib.loads(Path(__file__).with_name("steps.toml").read_text(encoding="utf-8"))["step"]
    return [Step(f"Step {step['number']}, {step['title']}", step["commands"], step["number"]) for step in entries]


@dataclass(frozen=True)
class Campaign:
    """The campaign with its committed results.

    Args:
        steps: Number -> the step's runs.
        benchmarks: Id -> the table, only at the campaign's scale, with tuned settings.
        homes: spec_id -> the paper whose table has the run; runs of the campaign's own tables have no entry.
        tables: Number -> the ids of the papers' tables in the step.
    """

    steps: Mapping[int, Sequence[RunConfig]]
    benchmarks: Mapping[str, Benchmark]
    records: Sequence[RunResult]
    homes: Mapping[str, str]
    tables: Mapping[int, Sequence[str]]

    def table(self, name: str) -> Benchmark:
        """A table by id; one that no step names has the runs of others, with the settings that their sweeps chose."""
        return self.benchmarks[name] if name in self.benchmarks else _tuned(benchmark(name))

    def missing(self, steps: Sequence[int], published: Sequence[RunResult] = ()) -> str:
        """The unfinished ones of these steps, with counts; "" if all are finished, so that results may be read.

        published: the papers' records.
        """
        finished = {record.cell.spec_id for record in (*self.records, *published)}
        texts = []
        for number in steps:
            runs = {run.spec_id for run in self.steps[number]}
            done = len(runs & finished)
            if done < len(runs):
                texts.append(f"{done} of {len(runs)} (step {number})" if len(steps) > 1 else f"{done} of {len(runs)}")
        return ", ".join(texts)

    @property
    def counted(self) -> tuple[int, int]:
        """The numbers of finished runs and of all runs, without those of papers' tables."""
        runs = {run.spec_id for step in self.steps.values() for run in step} - self.homes.keys()
        return len(runs & {record.cell.spec_id for record in self.records}), len(runs)

    def resolved(self, decisive: Decisive) -> tuple[Better | AverageBetter, ...]:
        """The relations of decisive comparisons; open rows are filled by validation data."""
        if not decisive.best_of:
            return decisive.relations
        (task,) = decisive.seeds
        row = self._best_on_validation(decisive.best_of, task)
        return tuple(replace(relation, rows=(row,)) for relation in decisive.relations)

    def _best_on_validation(self, rows: Sequence[At], task: str) -> At:
        """The row whose sweep has the best mean score on validation data."""
        table = rows[0].benchmark
        entries = read_sweep(RESULTS / "sweeps" / f"{table}-{SCALE}.json")
        by_row = {entry["method"]: entry for entry in entries if entry["task"] == task and entry["best"]}
        tuned = [row for row in rows if row.row in by_row]
        if len(tuned) < len(rows):
            raise UserError(
                f"{RESULTS / 'sweeps'}: expected sweeps of {', '.join(row.row for row in rows)} on {task}, found "
                f"those of {', '.join(row.row for row in tuned) or 'none'}; run `python -m benchmarks campaign`"
            )
        sign = metric(by_row[rows[0].row]["score"].partition(" ")[0]).sign
        return max(tuned, key=lambda row: sign * by_row[row.row]["best"]["mean"])


@cache
def campaign() -> Campaign:
    """The campaign with its committed results."""
    defined = {name: table for folder in TABLES for name, table in tables_in(folder).items()}
    runs: dict[int, list[RunConfig]] = {}
    tables: dict[str, Benchmark] = {}
    homes: dict[str, str] = {}
    of_papers: dict[int, Sequence[str]] = {}
    for step in steps():
        commands = [command for command in step.commands if command.startswith("run ")]
        chosen = [selected(command, RESULTS, defined) for command in commands]
        runs[step.number] = [run for selection in chosen for run in selection.runs()]
        tables |= {selection.benchmark.id: selection.benchmark for selection in chosen}
        published = [selection for selection in chosen if selection.benchmark.id not in defined]
        of_papers[step.number] = list(dict.fromkeys(selection.benchmark.id for selection in published))
        for selection in published:
            every = (each for run in selection.runs() for each in chain_of(run))
            homes |= {run.spec_id: selection.benchmark.paper.id for run in every}
    tuned = {name: _tuned(table) for name, table in tables.items()}
    return Campaign(runs, tuned, tuple(read_results(RESULTS / "records")), homes, of_papers)


def selected(command: str, results_dir: Path, defined: Mapping[str, Benchmark] = {}) -> Selection:
    """The selection of a step's command; with --from-sweep, it has the settings that a folder's sweeps chose, if any.

    defined: tables by id that are not among the included ones.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("id")
    for name in ("--tasks", "--methods"):
        parser.add_argument(name, type=lambda text: text.split(","), default=())
    parser.add_argument("--seeds", type=_range, default=(0,))
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--from-sweep", action="store_true")
    given, _ = parser.parse_known_args(shlex.split(command)[1:])
    table = defined[given.id] if given.id in defined else benchmark(given.id)
    chosen = part_of(table, SCALE, given.methods, given.tasks, given.seeds, given.set)
    return _swept(chosen, results_dir) if given.from_sweep else chosen


def _tuned(table: Benchmark) -> Benchmark:
    """A table at the campaign's scale alone, with the settings that sweeps chose."""
    swept = _swept(part_of(table, SCALE), RESULTS)
    return replace(swept.benchmark, scales=(swept.scale,))


def _swept(chosen: Selection, results_dir: Path) -> Selection:
    """The selection with the settings that sweeps chose; the definition's without a finished sweep."""
    return chosen.with_sweep(results_dir) if chosen.tuned(results_dir) else chosen


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def decisive_of(paper: str) -> tuple[Decisive, ...]:
    """The decisive comparisons for a paper's claims; () without any."""
    return _decisive(paper).get("DECISIVE", ())


def study_of(paper: str) -> Study | None:
    """A paper's study; None without one."""
    return _decisive(paper).get("STUDY")


def _decisive(paper: str) -> dict[str, Any]:
    """What decisive.py in a paper's folder defines; empty without that file."""
    is_there = (ROOT / paper / "decisive.py").is_file()
    return vars(importlib.import_module(f"benchmarks.{paper}.decisive")) if is_there else {}
