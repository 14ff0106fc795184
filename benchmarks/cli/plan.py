"""The command `plan`: what would run, and what it would send, derived from the encoder's shapes without training."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
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
from benchmarks.experiment import Column, Row
from benchmarks.overrides import expanded
from benchmarks.run_config import RunConfig
from benchmarks.running.federation import counted_clients, training_examples
from benchmarks.running.found import Recorded
from benchmarks.running.run_options import RunOptions
from benchmarks.running.stages import by_stage, chain_of
from benchmarks.running.timings import Timings, taken
from reports.pages.text import human_bytes, human_seconds

_BOTH = "uplink + downlink"
_HEADINGS = ("Task", "Method", "Rounds", "per round *", f"{_BOTH}, per round", f"{_BOTH}, all rounds", "one-time")
_FEW = 3  # tasks that are named in one line
_WIDTH = 118


@dataclass
class Planned:
    """A row on a task: its cell of the first seed, and what its rounds send, or the reason why that is unknown."""

    row: Row
    column: Column
    cell: RunConfig
    wire: WirePlan | None = None
    examples: int | None = None  # whose number decides the bytes; None if the bytes do not depend on it
    reason: str = ""

    @property
    def bytes(self) -> int:
        """Of all rounds, both ways; 0 if unknown."""
        return self.wire.total.up_bytes + self.wire.total.down_bytes if self.wire else 0


@dataclass
class Plan:
    """The plan of a selection.

    unique: spec_id -> each distinct cell of all seeds. finished: which cells have records. total: bytes of all distinct
    cells. seconds: of each unfinished cell and earlier run, by records of similar cells; None if there are none.
    flop_hours: a task's name -> hours at the rate of --tflops.
    """

    chosen: Selection
    entries: list[Planned]
    unique: dict[str, RunConfig]
    finished: Recorded
    total: dict[str, int]
    seconds: list[float | None]
    flop_hours: dict[str, float]

    @property
    def hours(self) -> float:
        """The known hours."""
        return sum(self.flop_hours.values()) if self.flop_hours else sum(known or 0 for known in self.seconds) / 3600


def plan_command(args: argparse.Namespace) -> int:
    """Show what would run, or what claims still need."""
    keep_in(args.results_dir)
    if args.claims:
        return show_needs(args)
    plan = planned(selection(args), args)
    if args.json:
        print(json.dumps(as_json(plan), indent=1, ensure_ascii=False))
        return 0
    Console(width=max(Console().width, _WIDTH)).print(_table(plan))
    for text in (*_hours(plan, args.tflops), *_notes(plan)):
        print(text)
    return 0


def planned(chosen: Selection, args: argparse.Namespace) -> Plan:
    """Plan a selection."""
    cells, finished = chosen.cells(), Recorded(RunOptions(args.results_dir))
    entries = [Planned(row, column, cell) for row, column, cell in cells if cell.seed == chosen.seeds[0]]
    for entry in entries:
        try:
            entry.wire, entry.examples = wire_of(entry.cell, args)
        except UserError as error:  # bytes depend on examples that are not here, or on their texts
            entry.reason = str(error)
    unique = {cell.spec_id: cell for _, _, cell in cells}
    distinct = {entry.cell.spec_id: entry for entry in entries}.values()
    wires, seeds = [entry.wire for entry in distinct if entry.wire], len(chosen.seeds)
    total = {
        "up_bytes": seeds * sum(wire.total.up_bytes for wire in wires),
        "down_bytes": seeds * sum(wire.total.down_bytes for wire in wires),
        "setup_bytes": seeds * sum(wire.setup_bytes for wire in wires),
    }
    flop_hours: dict[str, float] = {}
    for entry in distinct if args.tflops else ():
        flops = cell_flops(entry.cell, counted_clients(entry.cell, settings(args)))
        name = entry.column.name
        flop_hours[name] = flop_hours.get(name, 0.0) + seeds * flops / (args.tflops * 1e12) / 3600
    timings = Timings(taken(known_records(args, [chosen.benchmark])))
    runs = list(unique.values())
    needed = {before.spec_id for cell in runs for before in chain_of(cell, finished)[:-1]}
    staged = (cell for stage in by_stage(runs, finished) for cell in stage)
    seconds = [timings.seconds(cell) for cell in staged if not finished(cell, cell.spec_id in needed)]
    return Plan(chosen, entries, unique, finished, total, seconds, flop_hours)


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


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON values; bytes of one seed in `rows`, of all distinct cells in `sum`; null: unknown."""
    chosen, counted = plan.chosen, plan.chosen.benchmark.paper.counted_bytes
    rows = [
        {
            "task": entry.column.task,
            "method": entry.row.id,
            "cell": entry.cell.spec_id,
            "backbone": entry.cell.backbone,
            "rounds": entry.cell.training.last_round,
            "reason": entry.reason or None,
            "counted_bytes_per_round": counted(wire, entry.cell) if wire else None,
            "up_bytes_per_round": wire.up_bytes if wire else None,
            "down_bytes_per_round": wire.down_bytes if wire else None,
            "up_bytes": wire.total.up_bytes if wire else None,
            "down_bytes": wire.total.down_bytes if wire else None,
            "setup_bytes": wire.setup_bytes if wire else None,
        }
        for entry in plan.entries
        for wire in (entry.wire,)
    ]
    return {
        "benchmark": chosen.benchmark.id,
        "scale": chosen.scale.id,
        "backbone": chosen.scale.backbone,
        "seeds": list(chosen.seeds),
        "cells": len(plan.entries) * len(chosen.seeds),
        "unique_cells": len(plan.unique),
        "finished_cells": plan.finished.of(set(plan.unique)),
        "hours": plan.hours,
        "cells_of_unknown_hours": 0 if plan.flop_hours else plan.seconds.count(None),
        "sum": plan.total,
        "rows": rows,
    }


# ---- in the terminal ---------------------------------------------------------------------------------------------


def _table(plan: Plan) -> Table:
    """A line for each method and the tasks on which it sends the same; methods that send nothing are left out."""
    chosen, paper, total = plan.chosen, plan.chosen.benchmark.paper, plan.total
    count, done = len(plan.entries) * len(chosen.seeds), plan.finished.of(set(plan.unique))
    unique = "" if len(plan.unique) == count else f", {len(plan.unique)} unique"
    label = chosen.benchmark.label(chosen.scale, chosen.columns)
    table = Table(title=f"{chosen.title}: {count} cells{unique}, {done} finished ({label})", show_footer=True)
    sums = [
        human_bytes(size, paper.gigabyte) for size in (total["up_bytes"] + total["down_bytes"], total["setup_bytes"])
    ]
    for heading, footer in zip(_HEADINGS, [f"Sum, {len(plan.unique)} cells", *[""] * 4, *sums], strict=True):
        table.add_column(heading, footer, justify="left" if heading in ("Task", "Method") else "right")
    tasks: dict[tuple[str, ...], list[str]] = {}  # method, rounds and sizes -> tasks
    order = [row.id for row in chosen.rows]
    for entry in sorted(plan.entries, key=lambda entry: order.index(entry.row.id)):
        sizes = ("–",) * 4
        if wire := entry.wire:
            if not entry.bytes:
                continue
            counts = (
                paper.counted_bytes(wire, entry.cell),
                wire.up_bytes + wire.down_bytes,
                entry.bytes,
                wire.setup_bytes,
            )
            sizes = tuple(human_bytes(size, paper.gigabyte) for size in counts)
        tasks.setdefault((entry.row.name, str(entry.cell.training.last_round), *sizes), []).append(entry.column.name)
    for key, names in tasks.items():
        is_all = len(names) == len(chosen.columns) > _FEW
        table.add_row(f"all {len(names)} tasks" if is_all else ", ".join(names), *key)
    return table


def _methods(entries: Iterable[Planned]) -> str:
    return ", ".join(dict.fromkeys(entry.row.name for entry in entries))


def _notes(plan: Plan) -> Iterator[str]:
    """What the table leaves out or does not explain: units, earlier runs, examples, rounds that differ."""
    chosen, entries, paper = plan.chosen, plan.entries, plan.chosen.benchmark.paper
    silent = [entry for entry in entries if entry.wire and not entry.bytes]
    for once in dict.fromkeys(entry.wire.setup_bytes for entry in silent if entry.wire):
        but = f" but {human_bytes(once, paper.gigabyte)} one-time" if once else ""
        yield f"Nothing is sent{but}: {_methods(e for e in silent if e.wire and e.wire.setup_bytes == once)}."
    encoders = " and ".join(dict.fromkeys(entry.cell.backbone for entry in entries))
    yield f"* {paper.bytes_convention}; derived for {encoders} with {entries[0].cell.clients} clients."
    yield from _units(chosen)
    yield from (f"First, once: {name} ({plan.finished.said(cells)})." for name, cells in stages_of(chosen).items())
    notes: dict[str, list[Planned]] = {}
    for entry in entries:
        if entry.examples is not None:
            text = f"Counted on {entry.column.name}'s {entry.examples:,} training examples"
            notes.setdefault(text, []).append(entry)
        if entry.wire and not entry.wire.alike:
            notes.setdefault(f"A round is the mean of rounds that differ, {entry.column.name}", []).append(entry)
    yield from (f"{note}: {_methods(noted)}." for note, noted in notes.items())
    for reason in dict.fromkeys(entry.reason for entry in entries if entry.reason):
        yield f"– {_methods(entry for entry in entries if entry.reason == reason)}: {reason}"
    yield "One-time: the pre-trained model, sent to every client before the first round; the paper leaves it out."


def _units(chosen: Selection) -> Iterator[str]:
    """Options that count the paper's layers, also in the encoder's layers: a line for each distinct value."""
    methods: dict[str, list[str]] = {}
    defined = chosen.benchmark.scale(chosen.scale.id)
    depths = dict.fromkeys(column.at(chosen.scale, defined).depth for column in chosen.columns)
    for row, (name, unit) in product(chosen.rows, chosen.benchmark.units.items()):
        value = dict(expanded((*row.changes.items(), *chosen.benchmark.overrides))).get(name)
        for depth in depths if value is not None else ():
            shown = chosen.benchmark.shown(name, value, replace(chosen.scale, depth=depth))
            methods.setdefault(f"{unit.name[0].upper()}{unit.name[1:]} {shown}", []).append(row.name)
    yield from (f"{text}: {', '.join(names)}." for text, names in methods.items())


def _hours(plan: Plan, tflops: float | None) -> Iterator[str]:
    """The time it takes: from FLOPs if a rate is given, else from records of similar cells."""
    if tflops:
        yield from (f"{name}: {hours:.2f} h" for name, hours in plan.flop_hours.items())
        length = " or ".join(dict.fromkeys(str(entry.cell.training.max_length) for entry in plan.entries))
        yield (
            f"Together {plan.hours:.2f} h, estimated from FLOPs at a sustained {tflops:g} TFLOP/s, as if every text had "
            f"{length} tokens, at which texts are cut: an upper bound where texts are shorter. Loading, checkpoints and "
            "the optimiser add to it, and on a GPU small batches are limited by the number of steps."
        )
        return
    unknown, todo = plan.seconds.count(None), len(plan.seconds)
    if not todo:
        yield "Nothing is left to compute."
    if todo > unknown:
        known = human_seconds(sum(seconds or 0.0 for seconds in plan.seconds))
        cells = f"{todo - unknown} unfinished cells, by records of the same method and task"
        yield f"About {known} of one process for {cells}."
    if unknown:
        advice = "--tflops N estimates it from FLOPs, at N sustained 10^12 operations a second"
        yield f"No record tells how long {unknown} cells take: {advice}."
