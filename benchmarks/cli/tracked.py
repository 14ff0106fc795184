"""A table for MLflow: its definition, run names and published values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import product

from benchmarks.errors import UserError
from benchmarks.experiment import Column, Row
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig, canonical_json, digest
from benchmarks.running.run_options import RunOptions
from benchmarks.selection import Selection
from benchmarks.tracking.store import default_tracking_uri
from benchmarks.tracking.table import Table, TableCell
from reports.evidence.published import is_comparable, published_for
from reports.evidence.records import request_for
from reports.evidence.scores import score_at
from reports.pages.text import at_round

Cells = Sequence[tuple[Row, Column, RunConfig]]
ScoreOf = Callable[[RunResult, str], float | None]  # a record's score, "test/f1"


def open_mirror(
    chosen: Selection,
    options: RunOptions,
    warn: Callable[[str], None],
    trials: Cells = (),
    score_of: ScoreOf | None = None,
) -> closing:
    """A context with a listener that logs a selection to MLflow: a parent run for the table, with a child for each run.

    trials: the trials of a sweep, as rows; empty for a table. score_of: a trial's score; None for the table's.
    """
    from benchmarks.tracking.mirror import Mirror  # loads MLflow, which takes seconds

    uri, table = default_tracking_uri(options.results_dir), tracked_table(chosen, options, trials, score_of)
    return closing(Mirror(uri, options.results_dir, chosen.benchmark.paper.id, table, warn))


def tracked_table(chosen: Selection, options: RunOptions, trials: Cells = (), score_of: ScoreOf | None = None) -> Table:
    """The whole table of a selection, or a sweep's trials."""

    def may_be_compared(record: RunResult) -> bool:
        return record.cell.holdout == "test" and is_comparable(chosen.scale, [record])

    benchmark, scale, paper = chosen.benchmark, chosen.scale, chosen.benchmark.paper
    request = request_for(benchmark, scale, ())
    rows, columns = benchmark.rows_at(scale), benchmark.columns_at(scale)
    title = f"{chosen.title} sweep" if trials else chosen.title
    changes = "; ".join(text.removeprefix("changed: ") for text in scale.changes)
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower())
    command = _command(chosen, options, "sweep" if trials else "run")
    convention = (
        f"Communication cost in the paper: {paper.bytes_convention}. Here `bytes/uplink`, `bytes/downlink` and MB are "
        "sums over rounds and clients, including parent runs; `_stage` excludes these. "
        f"{'The paper lacks methods marked †. ' if benchmark.is_printed else ''}"
        "The menu *Views* has each table and task, with curves."
    )
    return Table(
        id=f"{slug}-changed-{digest(scale.label, 8)}" if changes else slug,
        name=f"{title}, {changes}" if changes else title,
        changes=changes,
        title=f"{paper.name}, {benchmark.place}: {benchmark.title}. Scale {scale.id}: "
        f"{benchmark.label(scale, columns)}.",
        paper=f"{paper.name}: {paper.citation}. {convention}",
        scores={column.task: column.averaged for column in columns},
        places=0 if trials else len(rows) * len(columns),
        has_methods=any(row.printed for row in rows),
        command=shlex.join(command),
        cells=_cells(chosen, command, trials),
        is_comparable=may_be_compared,
        scored_at="as the sweep scores it" if score_of else at_round(request, request.score_at),
        score_of=score_of or partial(score_at, which=request.score_at),
    )


def _command(chosen: Selection, options: RunOptions, command: str) -> list[str]:
    """The arguments of the command that repeats a table or its sweep."""
    changes = (f"{k}={v if isinstance(v, str) else canonical_json(v)}" for k, v in chosen.benchmark.overrides)
    return [
        *("python", "-m", "benchmarks", command, chosen.benchmark.id, "--scale", chosen.scale.id),
        *(word for change in changes for word in ("--set", change)),
        *(["--from-sweep"] if any("by a sweep" in text for text in chosen.scale.changes) else []),
        *(word for folder in options.include for word in ("--include", str(folder))),
        *(["--backbone", options.backbone] if options.backbone else []),
        *(["--data-dir", str(options.data_dir)] if options.data_dir else []),
        *(["--lenient"] if options.lenient else []),
    ]


def _cells(chosen: Selection, command: list[str], trials: Cells) -> dict[str, TableCell]:
    """definition_id of a run -> how the table shows it, for all runs of the table, selected or not."""
    benchmark, scale = chosen.benchmark, chosen.scale
    cells = list(trials)
    every = product(benchmark.rows_at(scale), benchmark.columns_at(scale), chosen.seeds)
    for row, column, seed in () if trials else every:
        with suppress(UserError):  # settings that other methods lack
            cells.append((row, column, benchmark.cell(row, column, scale, seed)))
    places: dict[str, list[tuple[Row, Column, RunConfig]]] = {}
    for place in cells:
        places.setdefault(place[-1].definition_id, []).append(place)
    printed_in = str(benchmark.view.options.get("printed_in", ""))
    request = request_for(benchmark, scale, ())
    published = published_for(request, printed_in)
    shown = {}
    for definition_id, entries in places.items():
        rows, (first, column, cell) = [row for row, _, _ in entries], entries[0]
        of_run = [] if trials else ["--methods", first.id, "--tasks", column.task, "--seed", str(cell.seed)]
        values = (published.get((row.id, column.task, column.averaged)) for row in rows)  # in the metric's unit
        shown[definition_id] = TableCell(
            rows=tuple(dict.fromkeys(row.id for row in rows)),
            method=" / ".join(dict.fromkeys(map(request.name_of, rows))),
            score=column.averaged,
            published=next((each.value for each in values if each is not None), None),
            is_reference=not any(row.printed for row in rows),
            command=shlex.join([*command, *of_run]),
        )
    return shown
