"""The Python interface: objects and data frames; the command line uses it.

    from benchmarks import api

    chosen = api.select("fedsplitbert-table3", scale="demo", tasks=["rte"], methods=["fedavg", "fedsplitbert"], seeds=2)
    records = api.run(chosen, api.settings(results_dir="results", data_dir="data"))
    api.table(chosen, records)      # one line per row, task and quantity, with the published value
    api.scores(records)             # one line per cell, evaluation and metric
    api.curves(records)             # one line per round
    api.payloads(records)           # one line per client, round, direction and kind of payload
    api.pareto(api.scores(records)) # the methods on the Pareto front of score and bytes
    api.plot(api.curves(records))   # a figure: score by round, or score against bytes
    api.claims("fedsplitbert", "lite", api.load("benchmarks/fedsplitbert/records"))

Scores are in the tables' unit: 75.0 is 75 %. Bad input raises `UserError`, which states the expected value.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from benchmarks.encoders.backbones import requested_backbone
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark
from benchmarks.frames import curves, pareto, payloads, plot, scores
from benchmarks.predictions import Predictions, read_predictions
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.registry import include as include_folder
from benchmarks.results import RunResult, read_folders
from benchmarks.run_config import JSON, SCALES, RunConfig, canonical_json
from benchmarks.running.completed import IsFinished
from benchmarks.running.events import CellFailed, CellFinished, Event, Sink
from benchmarks.running.run_options import MOST_SEEDS, RunOptions, available_cores, default_workers
from benchmarks.selection import Selection, part_of
from reports.evidence.records import request_for
from reports.pages.page import Page
from reports.views import page as page_of

if TYPE_CHECKING:
    from benchmarks.costs import WirePlan

__all__ = [
    "UserError", "benchmark", "benchmarks", "claims", "curves", "load", "page", "pareto", "payloads", "plan", "plot",
    "predictions", "run", "run_cell", "scores", "select", "settings", "table",
]  # fmt: skip


def benchmarks() -> dict[str, Benchmark]:
    """All tables and figures, by id."""
    return {name: benchmark(name) for name in benchmark_ids()}


def select(
    id: str,
    scale: str = "demo",
    tasks: str | Iterable[str] = (),
    methods: str | Iterable[str] = (),
    seeds: int | Iterable[int] = 1,
    backbone: str | None = None,
    changes: Mapping[str, JSON] | None = None,
    include: str | Path | None = None,
) -> Selection:
    """Select a part of a table or figure, as `make <id> SCALE=… TASKS=… METHODS=… SEEDS=…` does.

    Args:
        id: The table's or figure's id.
        scale: The scale's id.
        tasks: Ids of columns, or one id; empty for all.
        methods: Ids of rows, or one id; empty for all.
        seeds: The number of seeds, from 0, or the seeds.
        backbone: A folder or hub name that replaces the scale's encoder.
        changes: Field -> value, as in `--set`, such as {"training.rounds": 2}.
        include: A folder with your tables, tasks and methods, as in `--include`; pass it to `settings` too.
    """
    if include is not None:
        include_folder(Path(include))
    if scale not in SCALES:
        raise UserError(f"scale: expected one of {', '.join(SCALES)}, found {scale!r}")
    tasks, methods, seeds = _names("tasks", tasks), _names("methods", methods), _seeds(seeds)
    assignments = [f"{name}={canonical_json(value)}" for name, value in (changes or {}).items()]
    backbone = requested_backbone(backbone) if backbone is not None else None
    return part_of(id, scale, methods, tasks, seeds, assignments, backbone)


def _names(argument: str, given: str | Iterable[str]) -> list[str]:
    """The names, or the only one; UserError for anything else."""
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [None]
    if not all(isinstance(name, str) for name in names):
        raise UserError(f"{argument}: expected ids, such as ['fedavg', 'fedprox'], found {given!r}; omit it for all")
    return [str(name) for name in names]


def _seeds(given: int | Iterable[int]) -> Sequence[int]:
    """The seeds; a number n means the first n, from 0. UserError for anything else."""

    def is_whole(value: Any, least: int) -> bool:
        return not isinstance(value, bool) and isinstance(value, Integral) and least <= int(value) <= MOST_SEEDS

    seeds = list(given) if isinstance(given, Iterable) else list(range(given)) if is_whole(given, 1) else []
    if not seeds or not all(is_whole(each, 0) for each in seeds):
        expected = f"how many, from 1 to {MOST_SEEDS:,}, or the seeds, such as [5, 6] or range(5, 11)"
        raise UserError(f"seeds: expected {expected}, found {given!r}")
    return [int(each) for each in seeds]


def settings(
    results_dir: str | Path = "results",
    data_dir: str | Path | None = None,
    workers: int | None = None,
    cells: int | None = None,
    **machine: Any,
) -> RunOptions:
    """Checked settings for folders and the machine.

    Args:
        results_dir: Folder for records, checkpoints and reports.
        data_dir: Folder with your datasets.
        workers: Cells that run in parallel; None for as many as the cores or GPUs allow.
        cells: The number of cells to compute, which limits the default of workers.
        machine: Other fields of `RunOptions`, such as device="cuda:1" or threads=2.
    """
    data_dir = None if data_dir is None else Path(data_dir)
    machine = {name: tuple(value) if isinstance(value, list) else value for name, value in machine.items()}
    options = RunOptions(Path(results_dir), data_dir, workers=1 if workers is None else workers, **machine)
    executor = options.executor or "processes"
    if options.ray_address and not (options.executor == "ray" or options.client_workers > 1):
        raise UserError(f"--ray-address: expected the executor ray, found {executor}; add --executor ray")
    if options.slurm and options.executor != "slurm":
        raise UserError(f"--slurm: expected the executor slurm, found {executor}; add --executor slurm")
    options.check()
    if workers is None:
        count = cells or available_cores()
        workers = default_workers(options.device, count, options.executor or None, options.client_workers)
    address = options.ray_address or os.environ.get("RAY_ADDRESS") or None
    return replace(options, workers=workers, ray_address=address)


def run(
    chosen: Selection,
    options: RunOptions | None = None,
    tell: Sink | None = None,
    is_finished: IsFinished | None = None,
) -> list[RunResult]:
    """Compute the unfinished cells of a selection; returns the records of all its cells, in order.

    It prints and tracks nothing. With several workers, call it from a script that can be imported
    (`if __name__ == "__main__":`), or a notebook.

    Args:
        chosen: The selection.
        options: Folders and machine; None for the defaults of `settings`.
        tell: Called with each event (`benchmarks.running.events`).
        is_finished: Whether a cell is finished; None to look for its record.

    Raises:
        UserError: Some cells failed; the others have finished.
    """
    from benchmarks.executors import run_cells  # loads torch, like the two imports below

    cells, options = chosen.runs(), options or settings()
    finished: dict[str, RunResult] = {}
    failures: list[CellFailed] = []

    def collect(event: Event) -> None:
        if isinstance(event, CellFinished):
            finished[event.record.cell.spec_id] = event.record
        elif isinstance(event, CellFailed):
            failures.append(event)
        if tell is not None:
            tell(event)

    run_cells(cells, options, collect, chosen.benchmark.keeps_weights, is_finished)
    if failures:
        raise UserError(chosen.failed(failures))
    return [replace(finished[cell.spec_id], folder=options.records_dir) for cell in cells]


def run_cell(cell: RunConfig, options: RunOptions, tell: Sink = lambda event: None) -> RunResult:
    """Compute one cell in this process, or read its record."""
    from benchmarks.running import runner

    return runner.run_cell(cell, options, tell)


def plan(cell: RunConfig, examples: Sequence[int] | None = None) -> WirePlan:
    """The bytes of a cell's rounds, without training; see `benchmarks.dry_run.rounds.wire_plan`."""
    from benchmarks.dry_run.rounds import wire_plan  # loads torch

    return wire_plan(cell, examples)


# ---- results -----------------------------------------------------------------------------------------------------


def load(*folders: str | Path) -> list[RunResult]:
    """The records in folders such as results/records, one per cell; UserError for a bad record or missing folder."""
    return read_folders(map(Path, folders))


def page(chosen: Selection, records: Sequence[RunResult], score_at: str = "") -> Page:
    """The page of a table or figure for the given records. score_at: as for `request_for`."""
    request = request_for(chosen.benchmark, chosen.scale, records, chosen.rows, chosen.columns, score_at)
    return page_of(replace(request, rows=tuple(chosen.named)) if chosen.named else request)


def table(chosen: Selection, records: Iterable[RunResult]) -> pd.DataFrame:
    """A table or figure in long form, as in its report's table.csv."""
    return page(chosen, list(records)).frame()


def claims(paper: str, scale: str, records: Iterable[RunResult]) -> pd.DataFrame:
    """A paper's claims with verdicts on the published numbers and on a scale's records.

    UserError for an unknown paper or scale.
    """
    from benchmarks.papers import claims_frame  # loads the views of all claims and audits

    return claims_frame(paper, scale, list(records))


def predictions(record: RunResult) -> dict[tuple[int, str], Predictions]:
    """(client, evaluation) -> labels and predictions; UserError if the predictions file is missing."""
    if record.folder is None:
        raise UserError("predictions: expected a record from load(folder), as its predictions are files in that folder")
    return read_predictions(record.folder, record)
