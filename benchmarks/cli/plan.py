"""The command `plan`: what would run, and what it would send, derived from the backbone's shapes without training."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from benchmarks.backbones import backbone_name
from benchmarks.changes import expanded
from benchmarks.cli.needs import known_records
from benchmarks.cli.select import Selection, selection, settings
from benchmarks.costs import WirePlan
from benchmarks.derived import kept_plan, key_of
from benchmarks.errors import DependsOnTextsError, UserError
from benchmarks.found import Recorded
from benchmarks.settings import Settings
from benchmarks.spec import Cell, Column, Row
from benchmarks.timings import Timings, taken

_BOTH = "uplink + downlink"
_HEADINGS = ("Task", "Method", "Rounds", "per round *", f"{_BOTH}, per round", f"{_BOTH}, all rounds", "one-time")


@dataclass
class _Planned:
    """A row on a task: its cell of the first seed and what its rounds send, or why that is not known."""

    row: Row
    column: Column
    cell: Cell
    wire: WirePlan | None = None
    examples: int | None = None  # on which bytes were counted; None where they depend on none
    reason: str = ""


@dataclass
class _Plan:
    """What is planned of a selection. unique: spec_ids of all seeds' cells; seconds: of one process, where known."""

    chosen: Selection
    entries: list[_Planned]
    unique: set[str]
    finished: Recorded
    seconds: float = 0.0
    todo: int = 0  # cells that are not finished, those that have to be run before included
    unknown_cells: int = 0  # of these, such that no record of the like says how long they take
    efforts: dict[str, tuple[float, int]] = field(default_factory=dict)  # task's name -> hours and steps, by FLOPs

    def total(self) -> dict[str, int]:
        """Bytes of all unique cells: those of a seed, times the seeds; a cell in two rows counts once."""
        known = {entry.cell.spec_id: entry.wire for entry in self.entries if entry.wire}.values()
        seeds = len(self.chosen.seeds)
        return {
            "up_bytes": seeds * sum(wire.total.up_bytes for wire in known),
            "down_bytes": seeds * sum(wire.total.down_bytes for wire in known),
            "setup_bytes": seeds * sum(wire.setup_bytes for wire in known),
        }


def plan_command(words: argparse.Namespace) -> int:
    """What would run, or what claims still need."""
    if words.claims:
        from benchmarks.cli.needs import show_needs

        return show_needs(words)
    plan = _planned(words)
    if words.json:
        print(json.dumps(_as_json(plan), indent=1, ensure_ascii=False))
        return 0
    _show(plan, words)
    return 0


def _planned(words: argparse.Namespace) -> _Plan:
    chosen = selection(words)
    cells = chosen.cells()
    finished = Recorded(Settings(words.results_dir))
    entries = [_Planned(row, column, cell) for row, column, cell in cells if cell.seed == chosen.seeds[0]]
    wires: dict[str, WirePlan] = {}
    for entry in entries:
        try:
            entry.wire, entry.examples = _wire(entry.cell, words, wires)
        except UserError as error:  # what is sent depends on examples that are not at hand, or on their texts
            entry.reason = str(error)
    plan = _Plan(chosen, entries, {cell.spec_id for _, _, cell in cells}, finished)
    if words.tflops:
        plan.efforts = _efforts(chosen, words)
    else:
        _say_seconds(plan, Timings(taken(known_records(words, [chosen.benchmark]))))
    return plan


def _show(plan: _Plan, words: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.table import Table

    from reports.pages.text import human_bytes

    chosen, paper = plan.chosen, plan.chosen.benchmark.paper
    count, done = len(plan.entries) * len(chosen.seeds), plan.finished.of(plan.unique)
    unique = "" if len(plan.unique) == count else f", {len(plan.unique)} unique"
    label = chosen.benchmark.label(chosen.scale, chosen.columns)
    title = f"{chosen.title}: {count} cells{unique}, {done} finished ({label})"
    table = Table(title=title, show_footer=True)
    total = plan.total()
    both = human_bytes(total["up_bytes"] + total["down_bytes"], paper.gigabyte)
    footers = [f"Sum, {len(plan.unique)} cells", *[""] * 4, both, human_bytes(total["setup_bytes"], paper.gigabyte)]
    for heading, footer in zip(_HEADINGS, footers, strict=True):
        table.add_column(heading, footer, justify="left" if heading in ("Task", "Method") else "right")
    for entry in plan.entries:
        sizes = ["–"] * 4
        if entry.wire:
            whole, wire, cell = entry.wire.total, entry.wire, entry.cell
            counts = paper.counted_bytes(wire, cell), wire.up_bytes + wire.down_bytes, whole.up_bytes + whole.down_bytes
            sizes = [human_bytes(size, paper.gigabyte) for size in (*counts, wire.setup_bytes)]
        table.add_row(entry.column.name, entry.row.name, str(entry.cell.training.last_round), *sizes)
    Console(width=max(Console().width, 118)).print(table)
    for text in _hours(plan, words):
        print(text)
    encoders = " and ".join(dict.fromkeys(entry.cell.backbone for entry in plan.entries))
    print(f"* {paper.bytes_convention}; derived for {encoders} with {plan.entries[0].cell.clients} clients.")
    first = (f"First, once: {name} ({plan.finished.said(cells)})." for name, cells in stages_of(chosen).items())
    for text in (*_units(chosen), *first):
        print(text)
    _say_of_whom(plan)
    print("One-time: the pre-trained model, sent to every client before the first round; the paper leaves it out.")


def _say_of_whom(plan: _Plan) -> None:
    """On which examples bytes were counted, whose rounds differ, and of whom nothing is known."""
    notes: dict[str, list[str]] = {}
    unknown: dict[str, list[str]] = {}
    for entry in plan.entries:
        name = entry.row.name
        if entry.examples is not None:
            text = f"Counted on {entry.column.name}'s {entry.examples:,} training examples"
            notes.setdefault(text, []).append(name)
        if entry.wire and not entry.wire.alike:
            notes.setdefault(f"A round is the mean of rounds that differ, {entry.column.name}", []).append(name)
        if entry.reason:
            unknown.setdefault(entry.reason, []).append(name)
    for note, names in notes.items():
        print(f"{note}: {', '.join(dict.fromkeys(names))}.")
    for reason, names in unknown.items():
        print(f"– {', '.join(dict.fromkeys(names))}: {reason}")


def _as_json(plan: _Plan) -> dict[str, Any]:
    """The plan as plain JSON values; bytes of one seed in `rows`, of all unique cells in `sum`; null: not known."""
    chosen, counted = plan.chosen, plan.chosen.benchmark.paper.counted_bytes
    rows = []
    for entry in plan.entries:
        line: dict[str, Any] = {"task": entry.column.task, "method": entry.row.id, "cell": entry.cell.spec_id}
        line |= {
            "backbone": entry.cell.backbone,
            "rounds": entry.cell.training.last_round,
            "reason": entry.reason or None,
        }
        wire = entry.wire
        line |= {
            "counted_bytes_per_round": counted(wire, entry.cell) if wire else None,
            "up_bytes_per_round": wire.up_bytes if wire else None,
            "down_bytes_per_round": wire.down_bytes if wire else None,
            "up_bytes": wire.total.up_bytes if wire else None,
            "down_bytes": wire.total.down_bytes if wire else None,
            "setup_bytes": wire.setup_bytes if wire else None,
        }
        rows.append(line)
    hours = sum(hours for hours, _ in plan.efforts.values()) if plan.efforts else plan.seconds / 3600
    return {
        "benchmark": chosen.benchmark.id,
        "scale": chosen.scale.id,
        "backbone": chosen.scale.backbone,
        "seeds": list(chosen.seeds),
        "cells": len(plan.entries) * len(chosen.seeds),
        "unique_cells": len(plan.unique),
        "finished_cells": plan.finished.of(plan.unique),
        "hours": hours,
        "cells_of_unknown_hours": plan.unknown_cells,
        "sum": plan.total(),
        "rows": rows,
    }


def _units(chosen: Selection) -> list[str]:
    """What methods have of options with a unit of their own, in both units, a line a distinct value."""
    found: dict[str, list[str]] = {}
    defined = chosen.benchmark.scale(chosen.scale.id)
    depths = dict.fromkeys(column.at(chosen.scale, defined).depth for column in chosen.columns)
    for row, (name, unit) in product(chosen.rows, chosen.benchmark.units.items()):
        value = dict(expanded((*row.changes.items(), *chosen.benchmark.overrides))).get(name)
        for depth in depths if value is not None else ():
            shown = chosen.benchmark.shown(name, value, replace(chosen.scale, depth=depth))
            found.setdefault(f"{unit.name[0].upper()}{unit.name[1:]} {shown}", []).append(row.name)
    return [f"{text}: {', '.join(names)}." for text, names in found.items()]


def stages_of(chosen: Selection) -> dict[str, list[Cell]]:
    """What is run before and is no chosen cell itself: in words -> each seed's."""
    from benchmarks.stages import earlier_stages

    cells = [cell for _, _, cell in chosen.cells()]
    known = {cell.spec_id for cell in cells}
    found: dict[str, list[Cell]] = {}
    for stage in (stage for cell in cells for stage in earlier_stages(cell)):
        if stage.spec_id not in known:
            known.add(stage.spec_id)
            text = f"{stage.task} by {stage.algorithm} on {stage.backbone}, {stage.training.rounds} rounds"
            found.setdefault(text, []).append(stage)
    return found


def _wire(cell: Cell, words: argparse.Namespace, known: dict[str, WirePlan]) -> tuple[WirePlan, int | None]:
    """What the rounds send, and on how many examples that was counted; None where it depends on none.

    known: plans that depend on no example, so far. UserError where it depends on examples and no data are at hand, or
    on the texts themselves.
    """
    # A row may stand on an encoder of its own, whatever BACKBONE says.
    backbone = words.backbone if words.backbone and backbone_name(words.backbone) == cell.backbone else None
    key = key_of("plan", cell)  # tables ask for the same of many tasks
    if key not in known and backbone is None and (kept := kept_plan(key)) is not None:
        known[key] = kept
    if key in known:
        return known[key], None

    from benchmarks.federation import training_examples
    from benchmarks.planning import wire_plan

    try:
        known[key] = wire_plan(cell, backbone)
        return known[key], None
    except DependsOnTextsError:
        if cell.source != "generated" and words.data_dir is None:
            raise UserError(
                "bytes that depend on the number of examples: name the folder of the data with --data-dir (or "
                "DATA_DIR), and they are counted"
            ) from None
        examples = training_examples(cell, Settings(words.results_dir, words.data_dir))
        return wire_plan(cell, backbone, examples), sum(examples)


def _say_seconds(plan: _Plan, timings: Timings) -> None:
    """Note how long what is not finished takes, with what has to be run before it."""
    from benchmarks.executors.board import Board

    jobs = Board.of([cell for _, _, cell in plan.chosen.cells()], False, plan.finished).open.values()
    for cell in (job.cell for job in jobs if not plan.finished(job.cell, job.needs_weights)):
        known = timings.seconds(cell)
        plan.seconds += known or 0.0
        plan.todo += 1
        plan.unknown_cells += known is None


def _efforts(chosen: Selection, words: argparse.Namespace) -> dict[str, tuple[float, int]]:
    """Hours and steps of each task's cells, at a rate that the user knows of the machine."""
    from benchmarks.effort import estimate_effort

    made, cells = settings(words), chosen.cells()
    found = {}
    for column in chosen.columns:
        unique = {cell.spec_id: cell for _, other, cell in cells if other == column}.values()
        efforts = [estimate_effort(cell, made) for cell in unique]
        hours = sum(effort.hours(words.tflops * 1e12) for effort in efforts)
        found[column.name] = hours, sum(effort.steps for effort in efforts)
    return found


def _hours(plan: _Plan, words: argparse.Namespace) -> list[str]:
    """How long it takes, in sentences: from FLOPs where a rate is given, else by records of the like."""
    if plan.efforts:
        total = sum(hours for hours, _ in plan.efforts.values())
        return [
            *(f"{name}: {hours:.2f} h, {steps:,} steps" for name, (hours, steps) in plan.efforts.items()),
            f"Together {total:.2f} h, estimated from FLOPs (tokens of the data at hand, no padding) at a sustained "
            f"{words.tflops:g} TFLOP/s; loading, checkpoints and the optimiser come on top, and on a GPU small batches "
            "are bound by the number of steps.",
        ]
    from reports.pages.text import human_seconds

    told = plan.todo - plan.unknown_cells
    if not plan.todo:
        return ["Nothing is left to compute."]
    unknown = f"of {plan.unknown_cells} cells no record tells how long they take" if plan.unknown_cells else ""
    advice = ": --tflops N estimates from FLOPs, at N sustained 10^12 operations a second" if unknown else ""
    by_records = (
        f"about {human_seconds(plan.seconds)} of one process for {told} cells that are not finished, by records of the "
        "same method and task"
    )
    text = "; ".join(filter(None, (by_records if told else "", f"{unknown}{advice}")))
    return [f"{text[0].upper()}{text[1:]}."]
