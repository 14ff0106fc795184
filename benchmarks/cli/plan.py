"""The command `plan`: what would run, and what it would send, derived from the encoder's shapes without training."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.cli.needs import known_records, show_needs
from benchmarks.cli.select import Selection, selection, settings, stages_of
from benchmarks.costs import WirePlan
from benchmarks.dry_run.client_costs import cell_flops
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.dry_run.shapes import keep_in, plan_of
from benchmarks.encoders.backbones import backbone_name
from benchmarks.errors import DependsOnTextsError, UserError
from benchmarks.overrides import expanded
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import Completed, by_stage, chain_of, earlier_stages
from benchmarks.running.federation import counted_clients, training_examples
from benchmarks.running.run_options import RunOptions
from benchmarks.running.timings import Timings, taken
from reports.pages.text import human_bytes

_BOTH = "uplink + downlink"
_HEADINGS = ("Task", "Method", "Rounds", "per round *", f"{_BOTH}, per round", f"{_BOTH}, all rounds", "one-time")
_WIDTH = 118
_WAYS = ("up_bytes", "down_bytes", "setup_bytes")
_BYTES = (
    "equal_rounds", "counted_bytes_per_round", "up_bytes_per_round", "down_bytes_per_round", *_WAYS, "up_bytes_stage",
    "down_bytes_stage",
)  # fmt: skip


def plan_command(args: argparse.Namespace) -> int:
    """Show what would run, or what claims still need."""
    keep_in(args.results_dir)
    if args.claims:
        return show_needs(args)
    chosen, finished = selection(args), Completed(RunOptions(args.results_dir))
    plan = planned(chosen, finished, args)
    if args.json:
        print(json.dumps(plan, indent=1, ensure_ascii=False))
    else:
        Console(width=max(Console().width, _WIDTH)).print(_table(chosen, plan))
        print(*_hours(plan, args.tflops), *_notes(chosen, plan, finished), sep="\n")
    return 0


def planned(chosen: Selection, finished: Completed, args: argparse.Namespace) -> dict[str, Any]:
    """The plan of a selection as JSON values.

    `rows` has the bytes of one seed with the earlier runs from which it starts (`_stage` is without them), and by round
    those of the stage that sends most; `sum` has those of all distinct cells and earlier runs. null is unknown, for the
    row's `reason`.
    """
    cells, seeds = chosen.cells(), len(chosen.seeds)
    unique = {cell.spec_id: cell for _, _, cell in cells}
    rows, hours = [], 0.0
    stages: dict[tuple[str, str], list[dict[str, int]]] = {}  # method and task -> the bytes of each stage
    for row, column, cell in cells:
        if cell.seed == chosen.seeds[0]:
            planned_row, stages[row.id, column.task] = _planned_row(chosen, cell, args)
            rows.append({"task": column.task, "method": row.id, **planned_row})
    distinct = {row["cell"]: row for row in rows}
    sent = {  # spec_id -> its own bytes: an earlier run of several rows or seeds counts once
        stage.spec_id: sizes
        for row, column, cell in cells
        for stage, sizes in zip([*earlier_stages(cell), cell], stages[row.id, column.task], strict=False)
    }
    if args.tflops:
        made, rate = settings(args), args.tflops * 1e12 * 3600
        flops = (cell_flops(unique[spec_id], counted_clients(unique[spec_id], made)) for spec_id in distinct)
        hours, seconds = seeds * sum(flops) / rate, []
    else:
        seconds = _seconds(list(unique.values()), finished, Timings(taken(known_records(args, [chosen.benchmark]))))
        hours = sum(known or 0 for known in seconds) / 3600
    return {
        "benchmark": chosen.benchmark.id,
        "scale": chosen.scale.id,
        "backbone": chosen.scale.backbone,
        "seeds": list(chosen.seeds),
        "cells": len(rows) * seeds,
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
    """A cell's line of the plan, and the bytes of each of its stages, the first one first; empty if unknown."""
    chain = [*earlier_stages(cell), cell]
    wires, examples, reason = list[WirePlan](), None, None
    try:
        for stage in chain:
            wire, examples = wire_of(stage, args)
            wires.append(wire)
    except UserError as error:  # bytes depend on examples that are not here, or on their texts
        wires, examples, reason = [], None, str(error)
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
        "counted_examples": examples,
        **line,
    }, stages


def _seconds(cells: list[RunConfig], finished: Completed, timings: Timings) -> list[float | None]:
    """Seconds of each unfinished cell and each run before it, by records of similar cells; None without any."""
    needed = {before.spec_id for cell in cells for before in chain_of(cell, finished)[:-1]}
    staged = (cell for stage in by_stage(cells, finished) for cell in stage)
    return [timings.seconds(cell) for cell in staged if not finished(cell, cell.spec_id in needed)]


def wire_of(cell: RunConfig, args: argparse.Namespace) -> tuple[WirePlan, int | None]:
    """What a cell's rounds send, and the number of examples if the bytes depend on it, else None.

    UserError if they depend on examples and there are no data, or on the texts themselves.
    """
    # A row may have another encoder than BACKBONE.
    backbone = args.backbone if args.backbone and backbone_name(args.backbone) == cell.backbone else None
    if backbone is None and (kept := plan_of(cell)) is not None:
        return kept, None
    try:
        return wire_plan(cell, backbone), None
    except DependsOnTextsError:
        if cell.source != "generated" and args.data_dir is None:
            raise UserError(
                "bytes that depend on the number of examples: name the folder of the data with --data-dir (or "
                "DATA_DIR), and they are counted"
            ) from None
        examples = training_examples(cell, RunOptions(args.results_dir, args.data_dir))
        return wire_plan(cell, backbone, examples), sum(examples)


# ---- in the terminal ---------------------------------------------------------------------------------------------


def _table(chosen: Selection, plan: dict[str, Any]) -> Table:
    """A line for each method and the tasks on which it sends the same; methods that send nothing are left out."""
    unique = "" if plan["cells"] == plan["unique_cells"] else f", {plan['unique_cells']} unique"
    count = f"{plan['cells']} cells{unique}, {plan['finished_cells']} finished"
    label = chosen.benchmark.label(chosen.scale, chosen.columns)
    table = Table(title=f"{chosen.title}: {count} ({label})", show_footer=True)
    up, down, once = (plan["sum"][way] for way in _WAYS)
    sums = [f"Sum, {plan['unique_cells']} cells", *[""] * 4, *_texts(chosen, up + down, once)]
    for heading, footer in zip(_HEADINGS, sums, strict=True):
        table.add_column(heading, footer, justify="left" if heading in ("Task", "Method") else "right")
    methods = {row.id: row.name for row in chosen.rows}
    tasks: dict[tuple[str, ...], list[str]] = {}  # method, rounds and sizes -> tasks
    for row in sorted(plan["rows"], key=lambda row: list(methods).index(row["method"])):
        sizes = ["–"] * 4
        if row["reason"] is None:
            if not row["up_bytes"] + row["down_bytes"]:
                continue
            a_round, whole = (
                row["up_bytes_per_round"] + row["down_bytes_per_round"],
                row["up_bytes"] + row["down_bytes"],
            )
            sizes = _texts(chosen, row["counted_bytes_per_round"], a_round, whole, row["setup_bytes"])
        tasks.setdefault((methods[row["method"]], str(row["rounds"]), *sizes), []).append(row["task"])
    names = {column.task: column.name for column in chosen.columns}
    for key, of in tasks.items():
        table.add_row(
            f"all {len(of)} tasks" if len(of) == len(names) > 3 else ", ".join(map(names.__getitem__, of)), *key
        )
    return table


def _texts(chosen: Selection, *sizes: float) -> list[str]:
    return [human_bytes(size, chosen.benchmark.paper.gigabyte) for size in sizes]


def _notes(chosen: Selection, plan: dict[str, Any], finished: Completed) -> Iterator[str]:
    """What the table leaves out or does not explain: units, earlier runs, examples, rounds that differ."""
    rows, methods = plan["rows"], {row.id: row.name for row in chosen.rows}
    names = {column.task: column.name for column in chosen.columns}
    notes: dict[str, list[str]] = {}
    for row in rows:
        method, task, examples = methods[row["method"]], names[row["task"]], row["counted_examples"]
        if row["reason"]:
            notes.setdefault(f"No bytes, as {row['reason']}", []).append(method)
        elif not row["up_bytes"] + row["down_bytes"]:
            once = f" but {_texts(chosen, row['setup_bytes'])[0]} one-time" if row["setup_bytes"] else ""
            notes.setdefault(f"Nothing is sent{once}", []).append(method)
        if examples is not None:
            notes.setdefault(f"Counted on {task}'s {examples:,} training examples", []).append(method)
        if row["equal_rounds"] is False:
            notes.setdefault(f"A round is the mean of rounds that differ, {task}", []).append(method)
    encoders = " and ".join(dict.fromkeys(row["backbone"] for row in rows))
    yield f"* {chosen.benchmark.paper.bytes_convention}; derived for {encoders} with {rows[0]['clients']} clients."
    yield from _listed(notes)
    yield from _listed(_units(chosen))
    yield from (f"First, once: {name} ({finished.said(cells)})." for name, cells in stages_of(chosen).items())
    if any(row["reason"] is None and row["up_bytes"] != row["up_bytes_stage"] for row in rows):
        yield "All rounds include the earlier run from which a run starts; per round is the stage that sends most."
    yield "One-time: the pre-trained model, sent to every client before the first round; the paper leaves it out."


def _listed(methods: dict[str, list[str]]) -> Iterable[str]:
    return (f"{text}: {', '.join(dict.fromkeys(names))}." for text, names in methods.items())


def _units(chosen: Selection) -> dict[str, list[str]]:
    """An option that counts the paper's layers, also in the encoder's layers -> the methods with that value."""
    methods: dict[str, list[str]] = {}
    defined = chosen.benchmark.scale(chosen.scale.id)
    depths = dict.fromkeys(column.at(chosen.scale, defined).depth for column in chosen.columns)
    for row, (name, unit) in product(chosen.rows, chosen.benchmark.units.items()):
        value = dict(expanded((*row.changes.items(), *chosen.benchmark.overrides))).get(name)
        for depth in depths if value is not None else ():
            shown = chosen.benchmark.shown(name, value, replace(chosen.scale, depth=depth))
            methods.setdefault(f"{unit.name[0].upper()}{unit.name[1:]} {shown}", []).append(row.name)
    return methods


def _hours(plan: dict[str, Any], tflops: float | None) -> Iterator[str]:
    """The time it takes: from FLOPs if a rate is given, else from records of similar cells."""
    known, unknown = plan["cells_of_known_hours"], plan["cells_of_unknown_hours"]
    if tflops:
        length = " or ".join(dict.fromkeys(str(row["longest_text"]) for row in plan["rows"]))
        yield f"{plan['hours']:.2f} h from FLOPs at a steady {tflops:g} TFLOP/s, if every text has {length} tokens."
        yield "Shorter texts take less; loading, checkpoints and, on a GPU, many small steps take more."
    elif not known + unknown:
        yield "Nothing is left to compute."
    if known:
        yield f"About {plan['hours']:.1f} h of one process for {known} cells, by records of the same method and task."
    if unknown:
        yield f"No record tells how long {unknown} cells take: --tflops N estimates it at N · 10^12 operations/s."
