"""The command `plan`: the bytes of a run, derived from shapes, or with `--claims` what each claim still needs."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.cli.arguments import selection
from benchmarks.cli.needs import add_needs, flops_of, gpu_of, hours_notes, needs_notes, needs_table, of_stages
from benchmarks.cli.progress import tracked
from benchmarks.costs import WirePlan
from benchmarks.dry_run.cache import keep_in
from benchmarks.dry_run.shapes import derive_plan
from benchmarks.errors import DependsOnTextsError, UserError
from benchmarks.overrides import expanded
from benchmarks.publication import Paper
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import Completed, by_stage, chain_of
from benchmarks.running.counts import Counted, counted, stand_ins
from benchmarks.running.requirements import missing_inputs, problem
from benchmarks.running.run_options import RunOptions
from benchmarks.running.timings import Timings, taken
from benchmarks.selection import Selection, all_records
from benchmarks.tasks import task
from fedsim.errors import plural
from reports.pages.text import human_bytes, in_one_unit, span

_BOTH = "uplink + downlink"
_HEADINGS = ("Task", "Method", "Rounds", "per round *", f"{_BOTH}, per round", f"{_BOTH}, all rounds", "one-time model")
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
        from benchmarks.cli.open_claims import show_open_claims  # loads the judge

        return show_open_claims(args)
    RunOptions(args.results_dir, args.data_dir).check_data_dir()
    chosen, finished = selection(args), Completed(RunOptions(args.results_dir))
    plan = planned(chosen, finished, args)
    if gpu := gpu_of(args):
        add_needs(chosen, plan, gpu, args)
    if args.json:
        print(json.dumps(plan, indent=1, ensure_ascii=False))
        return 0
    console = Console(width=max(Console().width, _WIDTH))
    console.print(_table(chosen, plan))
    print(*hours_notes(plan, args.tflops, bool(gpu)), *_notes(chosen, plan, finished), sep="\n")
    if gpu:
        console.print(needs_table(chosen, plan, gpu))
        print(*needs_notes(plan["rows"], gpu, args.tflops), sep="\n")
    return 0


def planned(chosen: Selection, finished: Completed, args: argparse.Namespace) -> dict[str, Any]:
    """The plan of a selection as JSON values.

    `rows` has the bytes of one seed with its parent runs (`_stage` is without them); bytes per round are those of the
    stage that sends most. `sum` counts all distinct runs and parent runs. null is unknown; `reason` says why.
    `obstacles` are messages with which `run` would stop.
    """
    cells, unique = chosen.cells(), {run.spec_id: run for run in chosen.runs()}
    rows = list[dict[str, Any]]()
    stages: dict[tuple[str, str], list[dict[str, int]]] = {}  # method and task -> the bytes of each stage
    of_one_seed = [each for each in cells if each[-1].seed == chosen.seeds[0]]
    for row, column, cell in tracked(of_one_seed, "Bytes"):
        line, stages[row.id, column.task] = _planned_row(chosen.benchmark.paper, cell, args)
        rows.append({"task": column.task, "method": row.id, **line})
    sent = of_stages(chosen, stages)
    seconds: list[float | None]
    if args.tflops:
        options = RunOptions(args.results_dir, args.data_dir, args.backbone)
        flops = {
            (row.id, column.task): [flops_of(options.located(stage), options) for stage in chain_of(cell)]
            for row, column, cell in of_one_seed
        }
        seconds = [each and each[0] / (args.tflops * 1e12) for each in of_stages(chosen, flops).values()]
    else:
        timings = Timings(taken(all_records(args.results_dir, [chosen.benchmark])))
        seconds = _seconds(list(unique.values()), finished, timings)
    return {
        "benchmark": chosen.benchmark.id,
        "scale": chosen.scale.id,
        "backbone": chosen.scale.backbone,
        "seeds": list(chosen.seeds),
        "cells": len(cells),
        "unique_cells": len(unique),
        "finished_cells": sum(finished(cell, False) for cell in unique.values()),
        "hours": sum(duration or 0 for duration in seconds) / 3600,
        "cells_of_known_hours": len(seconds) - seconds.count(None),
        "cells_of_unknown_hours": seconds.count(None),
        "obstacles": obstacles(list(unique.values()), finished, args),
        "sum": {way: sum(sizes[way] for sizes in sent.values()) for way in _WAYS},
        "rows": rows,
    }


def obstacles(runs: Sequence[RunConfig], finished: Completed, args: argparse.Namespace) -> list[str]:
    """Messages with which `run` would refuse runs, as far as the named folders show.

    They are about missing files or, if all are there, about partitions that the data do not allow.
    """
    options = RunOptions(args.results_dir, args.data_dir, backbone=args.backbone)
    if missing := missing_inputs(runs, options, finished, named_only=True):
        return missing
    on_files = [
        run
        for run in runs
        if args.data_dir and run.source != "generated" and task(run.task).long_texts != "packed"
        if not finished(run, False)
    ]
    checks = (problem(partial(counted, run, options)) for run in on_files)
    return [*filter(None, dict.fromkeys(checks))]


def _planned_row(
    paper: Paper, cell: RunConfig, args: argparse.Namespace
) -> tuple[dict[str, Any], list[dict[str, int]]]:
    """A run's line in the plan, and the bytes of each of its stages, in order; empty if unknown."""
    chain = chain_of(cell)
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
            "counted_bytes_per_round": paper.counted_bytes(busiest.up_bytes, busiest.down_bytes, sender),
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
        "stand_ins": stand_ins(chain, RunOptions(args.results_dir, args.data_dir, args.backbone)),
        "counted_examples": sum(texts[0].examples) if texts else None,
        "counted_error": texts[0].error if texts else 0.0,
        **line,
    }, stages


def _seconds(cells: list[RunConfig], finished: Completed, timings: Timings) -> list[float | None]:
    """Seconds of each unfinished run and its parent runs, from records of similar runs; None without any."""
    needed = {before.spec_id for cell in cells for before in chain_of(cell, finished)[:-1]}
    staged = (cell for stage in by_stage(cells, finished) for cell in stage)
    return [timings.seconds(cell) for cell in staged if not finished(cell, cell.spec_id in needed)]


def wire_of(cell: RunConfig, args: argparse.Namespace) -> tuple[WirePlan, Counted | None]:
    """The bytes of a run's rounds, and the counted texts if the bytes depend on them.

    UserError if they depend on examples without data, or on the texts themselves.
    """
    options = RunOptions(args.results_dir, args.data_dir, args.backbone)
    cell = options.located(cell)
    try:
        return derive_plan(cell), None
    except DependsOnTextsError:
        if cell.source != "generated" and args.data_dir is None:
            raise UserError(
                "the bytes depend on the number of examples; name the data folder with --data-dir to count them"
            ) from None
    texts = counted(cell, options)
    return derive_plan(cell, texts.examples), texts


# ---- in the terminal ---------------------------------------------------------------------------------------------


def _table(chosen: Selection, plan: dict[str, Any]) -> Table:
    """A line per method and tasks with the same bytes; methods that send nothing are left out."""
    unique = "" if plan["cells"] == plan["unique_cells"] else f", {plan['unique_cells']} unique"
    count = f"{plural(plan['cells'], 'run')}{unique}, {plan['finished_cells']} recorded in the results folder"
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
    footers = [f"Sum, {plural(plan['unique_cells'], 'run')}", *[""] * 4, columns[5].pop(), columns[6].pop()]
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
    """Notes on the table: units, parent runs, examples, rounds that differ."""
    rows, methods = plan["rows"], {row.id: row.name for row in chosen.rows}
    names = {column.task: column.name for column in chosen.columns}
    notes: dict[str, list[str]] = {}
    for row in rows:
        method, task, examples = methods[row["method"]], names[row["task"]], row["counted_examples"]
        if row["reason"]:
            notes.setdefault(f"Bytes unknown ({row['reason']})", []).append(method)
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
    encoders = ", ".join(dict.fromkeys(row["backbone"] for row in rows))
    who, counted = "the paper" if chosen.benchmark.is_printed else "this suite", chosen.benchmark.paper.bytes_convention
    clients = span([row["clients"] for row in rows])
    yield f"* As {who} counts, {counted}; derived for {encoders} with {clients} client{'s' * (clients != '1')}."
    yield from (f"{text}: {'; '.join(dict.fromkeys(of))}." for text, of in notes.items())
    yield from (f"`run` would stop: {obstacle}" for obstacle in plan["obstacles"])
    yield from (f"First, once: {name} ({finished.said(cells)})." for name, cells in chosen.stages().items())
    if any(row["reason"] is None and row["up_bytes"] != row["up_bytes_stage"] for row in rows):
        yield "All rounds include a run's parent runs; per round is for the stage that sends most."
    yield "One-time: the pre-trained model, sent to each client before round 1; not in the other columns."
