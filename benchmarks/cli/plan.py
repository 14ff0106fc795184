"""The command `plan`: what would run, and what it would send, derived from the encoder's shapes without training."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks.cli.needs import known_records
from benchmarks.cli.select import Selection, selection, settings
from benchmarks.costs import WirePlan
from benchmarks.dry_run.shapes import plan_of
from benchmarks.encoders.backbones import backbone_name
from benchmarks.errors import DependsOnTextsError, UserError
from benchmarks.experiment import Column, Row
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import Completed, by_stage, chain_of
from benchmarks.running.run_options import RunOptions
from benchmarks.running.timings import Timings, taken


@dataclass
class Planned:
    """A row on a task: its cell of the first seed, and what its rounds send, or the reason why that is unknown."""

    row: Row
    column: Column
    cell: RunConfig
    wire: WirePlan | None = None
    examples: int | None = None  # on which bytes were counted; None where they depend on none
    reason: str = ""


class Plan:
    """What is planned of a selection."""

    def __init__(self, chosen: Selection, args: argparse.Namespace) -> None:
        self.chosen, self.args = chosen, args
        cells = chosen.cells()
        self.unique = {cell.spec_id: cell for _, _, cell in cells}  # of all seeds
        self.finished = Completed(RunOptions(args.results_dir))
        self.entries = [Planned(row, column, cell) for row, column, cell in cells if cell.seed == chosen.seeds[0]]
        for entry in self.entries:
            try:
                entry.wire, entry.examples = wire_of(entry.cell, args)
            except UserError as error:  # bytes depend on examples that are not here, or on their texts
                entry.reason = str(error)

    @property
    def finished_cells(self) -> int:
        """How many unique cells have a record."""
        return sum(self.finished(cell, False) for cell in self.unique.values())

    @property
    def total(self) -> dict[str, int]:
        """Bytes of all unique cells: those of a seed, times the seeds; a cell in two rows counts once."""
        known = {entry.cell.spec_id: entry.wire for entry in self.entries if entry.wire}.values()
        seeds = len(self.chosen.seeds)
        return {
            "up_bytes": seeds * sum(wire.total.up_bytes for wire in known),
            "down_bytes": seeds * sum(wire.total.down_bytes for wire in known),
            "setup_bytes": seeds * sum(wire.setup_bytes for wire in known),
        }

    @cached_property
    def seconds(self) -> list[float | None]:
        """Seconds of each cell that is not finished, with those before it, by records; None where there is no like."""
        cells, finished = list(self.unique.values()), self.finished
        timings = Timings(taken(known_records(self.args, [self.chosen.benchmark])))
        needed = {before.spec_id for cell in cells for before in chain_of(cell, finished)[:-1]}
        staged = (cell for stage in by_stage(cells, finished) for cell in stage)
        return [timings.seconds(cell) for cell in staged if not finished(cell, cell.spec_id in needed)]

    @cached_property
    def flop_hours(self) -> dict[str, float]:
        """A task's name -> hours of its cells at the rate given, by the FLOPs of the first seed's."""
        from benchmarks.dry_run.client_costs import cell_flops
        from benchmarks.running.federation import counted_clients

        made, hours = settings(self.args), dict.fromkeys((column.name for column in self.chosen.columns), 0.0)
        for entry in {entry.cell.spec_id: entry for entry in self.entries}.values():
            flops = cell_flops(entry.cell, counted_clients(entry.cell, made))
            hours[entry.column.name] += len(self.chosen.seeds) * flops / (self.args.tflops * 1e12) / 3600
        return hours

    @property
    def hours(self) -> float:
        """All hours that are known."""
        return sum(self.flop_hours.values()) if self.args.tflops else sum(known or 0 for known in self.seconds) / 3600


def plan_command(args: argparse.Namespace) -> int:
    """Show what would run, or what claims still need."""
    if args.claims:
        from benchmarks.cli.needs import show_needs

        return show_needs(args)
    plan = Plan(selection(args), args)
    if args.json:
        print(json.dumps(as_json(plan), indent=1, ensure_ascii=False))
    else:
        from benchmarks.cli.show_plan import show

        show(plan)
    return 0


def wire_of(cell: RunConfig, args: argparse.Namespace) -> tuple[WirePlan, int | None]:
    """What the rounds send, and on how many examples that was counted; None where it depends on none.

    UserError where it depends on examples and there are no data, or on the texts themselves.
    """
    # A row may have an encoder of its own, whatever BACKBONE says.
    backbone = args.backbone if args.backbone and backbone_name(args.backbone) == cell.backbone else None
    if backbone is None and (kept := plan_of(cell)) is not None:
        return kept, None

    from benchmarks.dry_run.rounds import wire_plan
    from benchmarks.running.federation import training_examples

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
    """The plan as plain JSON values; bytes of one seed in `rows`, of all unique cells in `sum`; null: not known."""
    chosen, counted = plan.chosen, plan.chosen.benchmark.paper.counted_bytes
    rows = []
    for entry in plan.entries:
        wire = entry.wire
        rows.append({
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
        })  # fmt: skip
    return {
        "benchmark": chosen.benchmark.id,
        "scale": chosen.scale.id,
        "backbone": chosen.scale.backbone,
        "seeds": list(chosen.seeds),
        "cells": len(plan.entries) * len(chosen.seeds),
        "unique_cells": len(plan.unique),
        "finished_cells": plan.finished_cells,
        "hours": plan.hours,
        "cells_of_unknown_hours": 0 if plan.args.tflops else plan.seconds.count(None),
        "sum": plan.total,
        "rows": rows,
    }
