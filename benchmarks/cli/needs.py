"""A plan's GPU requirements: memory, micro-batches and hours."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import pandas as pd
from rich.table import Table

from benchmarks import api
from benchmarks.cli.arguments import machine
from benchmarks.costs import GPU_USED, GPUS, Gpu
from benchmarks.dry_run.shapes import derive_cell_flops, derive_fit
from benchmarks.errors import DependsOnTextsError, UserError
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import earlier_stages
from benchmarks.running.counts import counted
from benchmarks.running.run_options import gpu_memory
from benchmarks.selection import Selection
from fedsim.algorithms import trains
from fedsim.precision import DTYPES, product_seconds, resolve_precision

SIDE = 4096  # of square matrices, whose product measures the speed of this machine's GPU
_HEADINGS = ("Task", "Method", "Client", "Server *", "Whole batch", "Texts at once", "Hours †")
UNKNOWN = "–"


def gpu_of(args: argparse.Namespace) -> Gpu | None:
    """The GPU that the arguments name, else this machine's first one; None without a GPU."""
    if args.gpu:
        return GPUS[args.gpu]
    if not (memory := gpu_memory()):
        return None
    precision, name = resolve_precision().name, "this machine's GPU"
    rate = 2 * SIDE**3 / product_seconds(DTYPES[precision], SIDE, 5, "cuda") / 1e12
    return Gpu(name, memory[0], rate, precision)


def add_needs(chosen: Selection, rows: list[dict[str, Any]], gpu: Gpu, args: argparse.Namespace) -> None:
    """Add the GPU requirements of its run and earlier runs to each row of a plan.

    Memory and texts at once are for the most demanding stage; hours are for all stages.
    """
    cells = {cell.spec_id: cell for _, _, cell in chosen.cells()}
    for row in rows:
        cell = cells[row["cell"]]
        stages = [each for each in (*earlier_stages(cell), cell) if trains(each.algorithm)]
        row |= {"batch": None, "micro_batch": None, "hours": 0.0, "memory": None, "whole_batch_memory": None}
        try:
            fits = [(stage, derive_fit(stage, gpu.memory, gpu.precision)) for stage in stages]
        except DependsOnTextsError:  # token counts, which need no GPU
            continue
        if fits:
            stage, most = max(fits, key=lambda pair: pair[1].whole.total)
            row |= {
                "batch": stage.training.batch_size,
                "micro_batch": most.part,
                "memory": {"client": most.held.client, "server": most.held.server, "total": most.held.total},
                "whole_batch_memory": most.whole.total,
            }
        row["hours"] = _hours(stages, gpu, args)


def _hours(stages: list[RunConfig], gpu: Gpu, args: argparse.Namespace) -> float | None:
    """Hours of the given runs, from their FLOPs; None without the data, whose texts it counts."""
    rate = args.tflops or GPU_USED * gpu.tflops
    options = api.settings(**machine(args))
    try:
        return sum(derive_cell_flops(each, counted(each, options).clients) for each in stages) / (rate * 1e12 * 3600)
    except UserError:
        return None


def needs_table(chosen: Selection, rows: list[dict[str, Any]], gpu: Gpu) -> Table:
    """A line per method and tasks with the same requirements."""
    names = {column.task: column.name for column in chosen.columns}
    table = Table(title=f"Memory and hours on one {gpu.name} ({gpu.memory / 2**30:.0f} GiB), by shapes")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in _HEADINGS[:2] else "right")
    lines = [(chosen.benchmark.row(row["method"]).name, *_texts(row), names[row["task"]]) for row in rows]
    frame = pd.DataFrame(lines, columns=[*_HEADINGS[1:], "task"])
    for keys, group in frame.groupby(list(_HEADINGS[1:]), sort=False):
        tasks = list(group["task"])
        table.add_row(f"all {len(tasks)} tasks" if len(tasks) == len(names) > 3 else ", ".join(tasks), *keys)
    return table


def _texts(row: dict[str, Any]) -> list[str]:
    hours = UNKNOWN if row["hours"] is None else f"{row['hours']:.2g}" if row["hours"] < 10 else f"{row['hours']:,.0f}"
    if row["memory"] is None:
        return [*[UNKNOWN] * 4, hours]
    sizes = [row["memory"]["client"], row["memory"]["server"], row["whole_batch_memory"]]
    return [*(f"{size / 2**30:.1f} GiB" for size in sizes), f"{row['micro_batch']} of {row['batch']}", hours]


def needs_notes(rows: list[dict[str, Any]], gpu: Gpu, tflops: float | None) -> Iterator[str]:
    """How memory and hours are derived, and the assumptions."""
    share = f"{100 * GPU_USED:.0f} % of its {gpu.tflops:.0f} TFLOP/s in {gpu.precision}, an assumption"
    rate = f"{tflops:g} TFLOP/s" if tflops else share
    yield "* Includes one process's state of other clients. Both numbers are peaks of the most demanding stage."
    yield "Memory counts tensors, for full-length texts; a tenth of the GPU stays free."
    yield f"† One seed with its earlier runs, from FLOPs at {rate}; full-length texts, without scoring and loading."
    if any(row["hours"] is None for row in rows):
        yield "–: hours need the number of texts, which the data directory (--data-dir or DATA_DIR) lacks."


def hours_notes(plan: dict[str, Any], tflops: float | None) -> Iterator[str]:
    """The estimated time: from FLOPs if a rate is given, else from records of similar cells."""
    known, unknown = plan["cells_of_known_hours"], plan["cells_of_unknown_hours"]
    if tflops:
        length = " or ".join(dict.fromkeys(str(row["longest_text"]) for row in plan["rows"]))
        yield f"{plan['hours']:.2f} h from FLOPs at a steady {tflops:g} TFLOP/s, if every text has {length} tokens."
        yield "Shorter texts need less; loading, checkpoints and, on a GPU, many small steps need more."
    elif not known + unknown:
        yield "Nothing is left to compute."
    if known:
        yield f"About {plan['hours']:.1f} h of one process for {known} cells, from records of the same method and task."
    if unknown:
        yield f"{unknown} cells have no similar record: --tflops N estimates their time at N · 10^12 operations/s."
