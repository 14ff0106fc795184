"""The command `plan`: the bytes of a run, derived from shapes, or with `--claims` what each claim still needs."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.cli.arguments import selection
from benchmarks.cli.needs import add_needs, gpu_of, hours_notes, needs_notes, needs_table
from benchmarks.cli.progress import tracked
from benchmarks.costs import WirePlan
from benchmarks.dry_run.cache import keep_in
from benchmarks.dry_run.shapes import derive_cell_flops, plan_of
from benchmarks.encoders.backbones import backbone_name
from benchmarks.encoders.fetched import contents
from benchmarks.errors import DependsOnTextsError, UserError
from benchmarks.experiment import Benchmark
from benchmarks.overrides import expanded
from benchmarks.papers import benchmarks_of, judged
from benchmarks.registry import claims_of, folder_of, scale_of
from benchmarks.results import RunResult, read_folders
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import Completed, by_stage, chain_of, earlier_stages
from benchmarks.running.counts import Counted, counted, stand_ins
from benchmarks.running.requirements import why_absent
from benchmarks.running.run_options import RunOptions
from benchmarks.running.timings import Timings, taken
from benchmarks.selection import Selection
from reports.claims.cells import Runs
from reports.claims.needs import COUNTED_SEEDS, SEEDS, Missing, needs
from reports.pages.text import human_bytes, in_one_unit

_BOTH = "uplink + downlink"
_HEADINGS = ("Task", "Method", "Rounds", "per round *", f"{_BOTH}, per round", f"{_BOTH}, all rounds", "one-time")
_WIDTH = 118
_WAYS = ("up_bytes", "down_bytes", "setup_bytes")
_BYTES = (
    "equal_rounds", "counted_bytes_per_round", "up_bytes_per_round", "down_bytes_per_round", *_WAYS, "up_bytes_stage",
    "down_bytes_stage",
)  # fmt: skip


def plan_command(args: argparse.Namespace) -> int:
    """Show the runs of a selection, or what claims still need."""
    keep_in(args.results_dir)
    os.environ["TOKENIZERS_PARALLELISM"] = "true"  # no process is forked
    if args.claims:
        return show_needs(args)
    chosen, finished = selection(args), Completed(RunOptions(args.results_dir))
    plan = planned(chosen, finished, args)
    if gpu := gpu_of(args):
        add_needs(chosen, plan["rows"], gpu, args)
    if args.json:
        print(json.dumps(plan, indent=1, ensure_ascii=False))
        return 0
    console = Console(width=max(Console().width, _WIDTH))
    console.print(_table(chosen, plan))
    print(*hours_notes(plan, args.tflops, bool(gpu)), *_notes(chosen, plan, finished), sep="\n")
    if gpu:
        console.print(needs_table(chosen, plan["rows"], gpu))
        print(*needs_notes(plan["rows"], gpu, args.tflops), sep="\n")
    return 0


def planned(chosen: Selection, finished: Completed, args: argparse.Namespace) -> dict[str, Any]:
    """The plan of a selection as JSON values.

    `rows` has the bytes of one seed with its earlier runs (`_stage` is without them); bytes per round are those of the
    stage that sends most. `sum` counts all distinct cells and earlier runs. null is unknown; `reason` says why.
    """
    cells, seeds, unique = chosen.cells(), len(chosen.seeds), {run.spec_id: run for run in chosen.runs()}
    rows = list[dict[str, Any]]()
    stages: dict[tuple[str, str], list[dict[str, int]]] = {}  # method and task -> the bytes of each stage
    of_one_seed = [each for each in cells if each[-1].seed == chosen.seeds[0]]
    for row, column, cell in tracked(of_one_seed, "Bytes"):
        line, stages[row.id, column.task] = _planned_row(chosen, cell, args)
        rows.append({"task": column.task, "method": row.id, **line})
    distinct = {row["cell"]: row for row in rows}
    sent = {  # spec_id -> bytes: an earlier run that rows or seeds share counts once
        stage.spec_id: sizes
        for row, column, cell in cells
        for stage, sizes in zip([*earlier_stages(cell), cell], stages[row.id, column.task], strict=False)
    }
    hours, seconds = 0.0, list[float | None]()
    if args.tflops:
        options = RunOptions(args.results_dir, args.data_dir)
        counts = {spec_id: counted(unique[spec_id], options) for spec_id in distinct}
        flops = sum(derive_cell_flops(unique[each], of.examples, of.scored) for each, of in counts.items())
        hours = seeds * flops / (args.tflops * 1e12 * 3600)
    else:
        seconds = _seconds(list(unique.values()), finished, Timings(taken(known_records(args, [chosen.benchmark]))))
        hours = sum(known or 0 for known in seconds) / 3600
    return {
        "benchmark": chosen.benchmark.id,
        "scale": chosen.scale.id,
        "backbone": chosen.scale.backbone,
        "seeds": list(chosen.seeds),
        "cells": len(cells),
        "unique_cells": len(unique),
        "finished_cells": sum(finished(cell, False) for cell in unique.values()),
        "hours": hours,
        "cells_of_known_hours": len(seconds) - seconds.count(None),
        "cells_of_unknown_hours": seconds.count(None),
        "sum": {way: sum(sizes[way] for sizes in sent.values()) for way in _WAYS},
        "rows": rows,
    }


def _planned_row(
    chosen: Selection, cell: RunConfig, args: argparse.Namespace
) -> tuple[dict[str, Any], list[dict[str, int]]]:
    """A cell's line in the plan, and the bytes of each of its stages, in order; empty if unknown."""
    chain = [*earlier_stages(cell), cell]
    wires, texts, reason = list[WirePlan](), list[Counted](), None
    try:
        for stage in chain:
            wire, of_stage = wire_of(stage, args)
            wires.append(wire)
            texts += [of_stage] if of_stage else []
    except UserError as error:  # bytes depend on missing examples, or on their texts
        wires, texts, reason = [], [], str(error)
    totals = ((wire.total.up_bytes, wire.total.down_bytes, wire.setup_bytes) for wire in wires)
    stages = [dict(zip(_WAYS, sizes, strict=True)) for sizes in totals]
    line: dict[str, Any] = dict.fromkeys(_BYTES)
    if wires:
        busiest, sender = max(zip(wires, chain, strict=True), key=lambda pair: pair[0].up_bytes + pair[0].down_bytes)
        line |= {
            "equal_rounds": busiest.alike,
            "counted_bytes_per_round": chosen.benchmark.paper.counted_bytes(busiest, sender),
            "up_bytes_per_round": busiest.up_bytes,
            "down_bytes_per_round": busiest.down_bytes,
            **{way: sum(sizes[way] for sizes in stages) for way in _WAYS[:2]},
            "setup_bytes": stages[-1]["setup_bytes"],
            **{f"{way}_stage": stages[-1][way] for way in _WAYS[:2]},
        }
    return {
        "cell": cell.spec_id,
        "backbone": cell.backbone,
        "clients": cell.clients,
        "rounds": cell.training.last_round,
        "longest_text": cell.training.max_length,
        "reason": reason,
        "stand_ins": stand_ins(chain, RunOptions(args.results_dir, args.data_dir)),
        "counted_examples": sum(texts[0].examples) if texts else None,
        "counted_error": texts[0].error if texts else 0.0,
        **line,
    }, stages


def _seconds(cells: list[RunConfig], finished: Completed, timings: Timings) -> list[float | None]:
    """Seconds of each unfinished cell and its earlier runs, from records of similar cells; None without any."""
    needed = {before.spec_id for cell in cells for before in chain_of(cell, finished)[:-1]}
    staged = (cell for stage in by_stage(cells, finished) for cell in stage)
    return [timings.seconds(cell) for cell in staged if not finished(cell, cell.spec_id in needed)]


def wire_of(cell: RunConfig, args: argparse.Namespace) -> tuple[WirePlan, Counted | None]:
    """The bytes of a cell's rounds, and the counted texts if the bytes depend on them.

    UserError if they depend on examples without data, or on the texts themselves.
    """
    # A row's encoder may differ from BACKBONE.
    backbone = args.backbone if args.backbone and backbone_name(args.backbone) == cell.backbone else None
    if backbone is None and (wire := plan_of(cell)) is not None:
        return wire, None
    if backbone is not None or (cell.source != "generated" and args.data_dir is None):
        try:
            return _derived(cell, backbone), None
        except DependsOnTextsError:
            if cell.source != "generated" and args.data_dir is None:
                raise UserError(
                    "its bytes depend on the number of examples: name the data folder with --data-dir (or "
                    "DATA_DIR) to count them"
                ) from None
    texts = counted(cell, RunOptions(args.results_dir, args.data_dir))
    wire = plan_of(cell, texts.examples) if backbone is None else None
    return wire or _derived(cell, backbone, texts.examples), texts


def _derived(cell: RunConfig, backbone: str | None, examples: Sequence[int] | None = None) -> WirePlan:
    from benchmarks.dry_run.rounds import wire_plan  # loads torch

    return wire_plan(cell, backbone, examples)


def known_records(args: argparse.Namespace, tables: Iterable[Benchmark]) -> list[RunResult]:
    """The records in the results folder, and the papers' committed records."""
    folders = {folder_of(table.paper.id) / "records" for table in tables} | {args.results_dir / "records"}
    return read_folders(folder for folder in sorted(folders) if folder.is_dir())


# ---- in the terminal ---------------------------------------------------------------------------------------------


def _table(chosen: Selection, plan: dict[str, Any]) -> Table:
    """A line per method and tasks with the same bytes; methods that send nothing are left out."""
    unique = "" if plan["cells"] == plan["unique_cells"] else f", {plan['unique_cells']} unique"
    count = f"{plan['cells']} cells{unique}, {plan['finished_cells']} finished"
    label = chosen.benchmark.label(chosen.scale, chosen.columns)
    table = Table(title=f"{chosen.title}: {count} ({label})", show_footer=True)
    names = {column.task: column.name for column in chosen.columns}
    frame = pd.DataFrame(plan["rows"]).fillna(np.nan)  # unknown bytes are None
    frame["a_round"] = frame["up_bytes_per_round"] + frame["down_bytes_per_round"]
    frame["all_rounds"] = frame["up_bytes"] + frame["down_bytes"]
    frame["task"] = frame["task"].map(names)
    frame["method"] = pd.Categorical(frame["method"], [row.id for row in chosen.rows])
    frame = frame[frame["all_rounds"] != 0].sort_values("method", kind="stable")
    sizes = ["counted_bytes_per_round", "a_round", "all_rounds", "setup_bytes"]
    keys = ["method", "rounds", *sizes]
    lines = frame.groupby(keys, sort=False, dropna=False, observed=True)["task"].agg(list).reset_index()
    up, down, once = (plan["sum"][way] for way in _WAYS)
    columns = [
        [f"all {len(of)} tasks" if len(of) == len(names) > 3 else ", ".join(of) for of in lines["task"]],
        [chosen.benchmark.row(method).name for method in lines["method"]],
        [str(rounds) for rounds in lines["rounds"]],
        *(_texts(chosen, list(lines[size])) for size in sizes[:2]),
        *(_texts(chosen, [*lines[size], total]) for size, total in zip(sizes[2:], (up + down, once), strict=True)),
    ]
    footers = [f"Sum, {plan['unique_cells']} cells", *[""] * 4, columns[5].pop(), columns[6].pop()]
    for heading, footer in zip(_HEADINGS, footers, strict=True):
        table.add_column(heading, footer, justify="left" if heading in _HEADINGS[:2] else "right")
    for line in zip(*columns, strict=True):
        table.add_row(*line)
    return table


def _texts(chosen: Selection, sizes: Sequence[float]) -> list[str]:
    """The sizes of a column in one unit; "–" for an unknown size."""
    texts = iter(in_one_unit([size for size in sizes if size == size], chosen.benchmark.paper.gigabyte))
    return [next(texts) if size == size else "–" for size in sizes]


def _notes(chosen: Selection, plan: dict[str, Any], finished: Completed) -> Iterator[str]:
    """Notes on the table: units, earlier runs, examples, rounds that differ."""
    rows, methods = plan["rows"], {row.id: row.name for row in chosen.rows}
    names = {column.task: column.name for column in chosen.columns}
    notes: dict[str, list[str]] = {}
    for row in rows:
        method, task, examples = methods[row["method"]], names[row["task"]], row["counted_examples"]
        if row["reason"]:
            notes.setdefault(f"No bytes, as {row['reason']}", []).append(method)
        elif not row["up_bytes"] + row["down_bytes"]:
            size = human_bytes(row["setup_bytes"], chosen.benchmark.paper.gigabyte)
            notes.setdefault(f"Sends nothing{f' but {size} one-time' if row['setup_bytes'] else ''}", []).append(method)
        if examples is not None:
            sample = f", by a 5 % sample: ± {row['counted_error']:.1%}" if row["counted_error"] else ""
            notes.setdefault(f"Counted on {task}'s {examples:,} training examples{sample}", []).append(method)
        for other in row["stand_ins"]:
            notes.setdefault(f"Replaces the published data, never compared with the paper: {other}", []).append(task)
        if row["equal_rounds"] is False:
            notes.setdefault(f"Per round is the mean of rounds that differ, {task}", []).append(method)
    defined = chosen.benchmark.scale(chosen.scale.id)
    depths = dict.fromkeys(column.at(chosen.scale, defined).depth for column in chosen.columns)
    for method_row, (option, unit) in product(chosen.rows, chosen.benchmark.units.items()):
        value = dict(expanded((*method_row.changes.items(), *chosen.benchmark.overrides))).get(option)
        for depth in depths if value is not None else ():
            layers = chosen.benchmark.shown(option, value, replace(chosen.scale, depth=depth))
            notes.setdefault(f"{unit.name[0].upper()}{unit.name[1:]} {layers}", []).append(method_row.name)
    encoders = " and ".join(dict.fromkeys(row["backbone"] for row in rows))
    yield f"* {chosen.benchmark.paper.bytes_convention}; derived for {encoders} with {rows[0]['clients']} clients."
    yield from (f"{text}: {', '.join(dict.fromkeys(of))}." for text, of in notes.items())
    yield from (f"First, once: {name} ({finished.said(cells)})." for name, cells in chosen.stages().items())
    if any(row["reason"] is None and row["up_bytes"] != row["up_bytes_stage"] for row in rows):
        yield "All rounds include a run's earlier runs; per round is for the stage that sends most."
    yield "One-time: the pre-trained model, sent to each client before round 1; the paper leaves it out."


# ---- claims ------------------------------------------------------------------------------------------------------

_CLAIM_HEADINGS = ("Claim", "Rows × tasks", "Complete", "Cells missing", "Hours *", "Left out †", "Seeds ‡")
_CLAIM_NOTES = """\
Fix the number of seeds before you see results: verdicts assume this (docs/statistics.md).
* One process, from the mean of records of the same row and task, or method and task; ? is unknown.
‡ Needed to decide the claim, projected from the effect and spread so far ("none": more than 100)."""


def show_needs(args: argparse.Namespace) -> int:
    """Print the unrecorded cells of each claim, then the commands that compute them."""
    claims = claims_of(args.id)
    if not claims:
        raise UserError(f"expected a paper with claims, such as fedsplitbert, found {args.id}")
    tables = benchmarks_of(args.id)
    scale = scale_of(next(table for table in tables.values() if table.paper.id == args.id), args.scale or "lite")
    records = known_records(args, tables.values())
    runs, timings = _with_stand_ins(Runs.of_all(tables, scale, records), args), Timings(taken(records))
    seeds = len(args.seeds) if len(args.seeds) > 1 else 0
    every = [needs(claim, runs, seeds) for claim in claims]
    more = {judgement.claim.id: judgement.more for judgement in judged(args.id, scale, records)}
    many = f"{seeds} seeds of everything" if seeds else f"{SEEDS} seeds ({COUNTED_SEEDS} where rounds are counted)"
    table = Table(title=f"{args.id}, claims · scale {scale.id}: what {many} still need")
    for heading in _CLAIM_HEADINGS:
        table.add_column(heading, justify="left" if heading in ("Claim", "Left out †", "Seeds ‡") else "right")
    for each in every:
        seconds = [timings.seconds(cell) for entry in each.missing for cell in entry.cells]
        hours = f"{sum(known or 0.0 for known in seconds) / 3600:.1f}{' + ?' if None in seconds else ''}"
        counts = each.places, each.places - len(each.missing), len(seconds)
        left_out, name = ", ".join(each.closed), each.claim.id
        table.add_row(name, *map(str, counts), hours if seconds else "0", left_out, more.get(name, ""))
    Console().print(table)
    left_out_notes = dict.fromkeys(f"† {name}: {why}." for each in every for name, why in each.closed.items())
    todo = commands((entry for each in every for entry in each.missing), scale.id)
    print(_CLAIM_NOTES, *left_out_notes, *todo, sep="\n")
    return 0


def _with_stand_ins(runs: Runs, args: argparse.Namespace) -> Runs:
    """Use a stand-in for each task that has no records and no data in the data directory.

    Without a data directory the hub may have all data, so no task is replaced.
    """
    if args.data_dir is None:
        return runs
    recorded = {record.cell.task for record in runs.records if record.cell.scale == runs.scale.id}
    options = RunOptions(args.results_dir, args.data_dir)
    fetched, instead = contents(args.data_dir).tasks, dict(runs.tables.instead)
    columns = [column for table in runs.tables.benchmarks.values() for column in table.columns if column.instead_of]
    for task, other in {column.instead_of: column.task for column in columns}.items():
        if task in recorded or task in fetched or not (why := why_absent(task, options)):
            continue
        if other in fetched or not why_absent(other, options):
            print(f"{other} replaces {task}: {why}")
            instead[task] = other
    return replace(runs, tables=replace(runs.tables, instead=instead))


def commands(missing: Iterable[Missing], scale: str) -> list[str]:
    """The make commands for missing cells: one per benchmark, number of seeds, and tasks with the same rows."""
    entries = [(each.at.benchmark, each.task, each.at.row, each.seeds) for each in missing]
    frame = pd.DataFrame(entries, columns=["table", "task", "row", "seeds"])
    for keys, merged, merge in (
        (["table", "task", "row"], "seeds", "max"),  # the most that any claim needs
        (["table", "task", "seeds"], "row", lambda names: ",".join(sorted(names))),
        (["table", "seeds", "row"], "task", ",".join),
    ):
        frame = frame.groupby(keys, sort=False)[merged].agg(merge).reset_index()
    return [
        f"make {each.table} SCALE={scale} TASKS={each.task} METHODS={each.row} SEEDS={each.seeds}"
        for each in frame.itertuples()
    ]
