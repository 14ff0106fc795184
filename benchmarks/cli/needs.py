"""A plan's GPU requirements: memory, micro-batches and hours."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, TypeVar

import pandas as pd
from rich.table import Table

from benchmarks.cli.progress import tracked
from benchmarks.costs import GPU_USED, GPUS, LAUNCH_S, Fit, Gpu
from benchmarks.dry_run.shapes import derive_cell_flops, derive_fit, derive_work
from benchmarks.errors import UserError
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import chain_of
from benchmarks.running.counts import Counted, counted_or_published
from benchmarks.running.run_options import RunOptions, gpu_memory
from benchmarks.selection import Selection
from fedsim.errors import plural

SIDE = 4096  # of the square matrices whose product measures the speed of this machine's GPU
_HEADINGS = ("Task", "Method", "Client", "Server *", "Whole batch", "Texts at once", "Host ‡", "Hours †")
UNKNOWN = "–"
T = TypeVar("T")


def gpu_of(args: argparse.Namespace) -> Gpu | None:
    """The GPU from the arguments, else this machine's first one; None without a GPU."""
    if args.gpu:
        return GPUS[args.gpu]
    if not (memory := gpu_memory()):
        return None
    from fedsim.precision import DTYPES, product_seconds, resolve_precision  # loads torch

    precision, name = resolve_precision().name, "this machine's GPU"
    rate = 2 * SIDE**3 / product_seconds(DTYPES[precision], SIDE, 5, "cuda") / 1e12
    return Gpu(name, memory[0], rate, precision)


def add_needs(chosen: Selection, plan: dict[str, Any], gpu: Gpu, args: argparse.Namespace) -> None:
    """Add the GPU requirements of each row's run and parent runs to a plan, and the hours of all runs."""
    cells = {cell.spec_id: cell for _, _, cell in chosen.cells()}
    options = RunOptions(args.results_dir, args.data_dir, args.backbone)
    for row in tracked(plan["rows"], "Memory"):
        row |= needs_of(cells[row["cell"]], gpu, options, args.tflops)
    of_rows = {(row["method"], row["task"]): row["stage_hours"] for row in plan["rows"]}
    plan["gpu_hours"] = summed(of_stages(chosen, of_rows).values())


def of_stages(chosen: Selection, of_rows: Mapping[tuple[str, str], Sequence[T]]) -> dict[str, T]:
    """The value of each distinct run and parent run, by id: a stage that rows or seeds share counts once.

    of_rows: for each method and task, the values of a run's stages in order, for any seed.
    """
    return {
        stage.spec_id: value
        for row, column, cell in chosen.cells()
        for stage, value in zip(chain_of(cell), of_rows[row.id, column.task], strict=False)
    }


def summed(hours: Iterable[float | None]) -> float | None:
    """The sum; None if one of them is unknown."""
    each = list(hours)
    return None if None in each else sum(filter(None, each))


def needs_of(cell: RunConfig, gpu: Gpu, options: RunOptions, tflops: float | None = None) -> dict[str, Any]:
    """The GPU requirements of a run and its parent runs.

    Memory and texts at once are for the most demanding stage; hours are for all stages.
    """
    chain = list(map(options.located, chain_of(cell)))
    fits = [(stage, *fit) for stage in chain if (fit := _fit(stage, gpu))]
    needs: dict[str, Any] = dict.fromkeys(
        ("batch", "micro_batch", "scored_at_once", "memory", "whole_batch_memory")
    ) | {"checkpointed": any(checkpoints for _, _, checkpoints in fits)}
    if fits:
        stage, most, _ = max(fits, key=lambda each: each[1].whole.training)
        needs |= {
            "batch": stage.training.batch_size,
            "micro_batch": most.part,
            "scored_at_once": most.scored,
            "memory": {
                "client": most.held.client,
                "server": most.held.server,
                "host": max(each.held.host for _, each, _ in fits),
                "total": max(each.total for _, each, _ in fits),
            },
            "whole_batch_memory": most.whole.training,
        }
    parts = {stage.spec_id: fit.part for stage, fit, _ in fits}
    timed = [_hours(stage, parts.get(stage.spec_id), gpu, tflops, options) for stage in chain]
    needs["stage_hours"] = [hours for hours, _ in timed]
    return needs | {
        "hours": summed(needs["stage_hours"]),
        "published_sizes": any(is_published for _, is_published in timed),
    }


def _fit(cell: RunConfig, gpu: Gpu) -> tuple[Fit, bool] | None:
    """How a run fits a GPU, and whether only with activation checkpointing; None for a run that needs no GPU."""
    try:
        fit, checkpoints = derive_fit(cell, gpu.memory, gpu.precision), False
    except UserError:  # not even one text fits
        fit, checkpoints = derive_fit(cell, gpu.memory, gpu.precision, True), True
    return (fit, checkpoints) if fit else None


def _hours(
    stage: RunConfig, part: int | None, gpu: Gpu, tflops: float | None, options: RunOptions
) -> tuple[float | None, bool]:
    """A run's hours from its FLOPs, and whether its number of texts is the published one; None without a number.

    part: texts per part of a batch; None for a run that needs no GPU.
    """
    if part is None:
        return 0.0, False
    if (flops_of_texts := flops_of(stage, options)) is None:
        return None, False
    flops, of = flops_of_texts
    seconds = flops / 1e12 / (tflops or GPU_USED * gpu.tflops)
    if not tflops:
        seconds = max(seconds, launch_seconds(stage, of.examples, part))
    return seconds / 3600, of.published


def flops_of(run: RunConfig, options: RunOptions) -> tuple[int, Counted] | None:
    """A run's operations, and its numbers of texts; None if these are unknown."""
    try:
        of = counted_or_published(run, options)
    except UserError:
        return None
    return derive_cell_flops(run, of.examples, of.scored), of


def launch_seconds(cell: RunConfig, examples: Sequence[int], part: int) -> float:
    """The least time in which the host can launch the kernels of a run's training.

    examples: the number of each client's training texts. part: texts per part of a batch.
    """
    work = derive_work(cell)
    if work is None or work.features:  # the trained head has few kernels
        return 0.0
    config = cell.training
    steps = config.local_epochs * sum(ceil(count / config.batch_size) for count in examples)
    return config.last_round * config.participation * steps * ceil(config.batch_size / part) * LAUNCH_S


def needs_table(chosen: Selection, plan: dict[str, Any], gpu: Gpu) -> Table:
    """A line per method and tasks with the same requirements."""
    names = {column.task: column.name for column in chosen.columns}
    title = f"Memory and hours on one {gpu.name} ({gpu.memory / 2**30:.0f} GiB), by shapes"
    table = Table(title=title, show_footer=True)
    footers = [
        f"Sum, {plural(plan['unique_cells'], 'run')} ◊",
        *[""] * (len(_HEADINGS) - 2),
        _hours_text(plan["gpu_hours"]),
    ]
    for heading, footer in zip(_HEADINGS, footers, strict=True):
        table.add_column(heading, footer, justify="left" if heading in _HEADINGS[:2] else "right")
    lines = [(chosen.benchmark.row(row["method"]).name, *_texts(row), names[row["task"]]) for row in plan["rows"]]
    frame = pd.DataFrame(lines, columns=[*_HEADINGS[1:], "task"])
    for keys, group in frame.groupby(list(_HEADINGS[1:]), sort=False):
        tasks = list(group["task"])
        table.add_row(f"all {len(tasks)} tasks" if len(tasks) == len(names) > 3 else ", ".join(tasks), *keys)
    return table


def _texts(row: dict[str, Any]) -> list[str]:
    hours = _hours_text(row["hours"]) + (" §" if row["published_sizes"] else "")
    if row["memory"] is None:
        return [*[UNKNOWN] * 5, hours]
    sizes = [row["memory"]["client"], row["memory"]["server"], row["whole_batch_memory"], row["memory"]["host"]]
    *on_gpu, host = (f"{size / 2**30:.1f} GiB" for size in sizes)
    parts = f"{row['micro_batch']} of {row['batch']}{' ¶' if row['checkpointed'] else ''}"
    return [*on_gpu, parts, host, hours]


def _hours_text(hours: float | None) -> str:
    if hours is None:
        return UNKNOWN
    return "< 0.001" if 0 < hours < 0.001 else f"{hours:.2g}" if hours < 10 else f"{hours:,.0f}"


def needs_notes(rows: list[dict[str, Any]], gpu: Gpu, tflops: float | None) -> Iterator[str]:
    """How memory and hours are derived, with the assumptions."""
    share = f"{100 * GPU_USED:.0f} % (assumed) of its {gpu.tflops:.0f} TFLOP/s in {gpu.precision}"
    launched = f"at least {1000 * LAUNCH_S:g} ms per part of a batch (measured: docs/performance.md)"
    rate = f"{tflops:g} TFLOP/s" if tflops else f"{share}, {launched}"
    yield "* Includes other clients' tensors in the process. Client + server is the peak of the most demanding stage."
    yield "Memory counts tensors, for texts of the full length; a tenth of the GPU stays free."
    yield f"† For one seed with its parent runs, from FLOPs at {rate}; full-length texts, without scoring and loading."
    yield "◊ All seeds and parent runs, finished or not; a run that rows or seeds share counts once."
    yield "‡ All clients' state between rounds: private tensors, optimiser moments, codec residuals."
    if any(row["published_sizes"] for row in rows):
        yield "§ From the published number of texts, as the data are missing."
    if any(row["checkpointed"] for row in rows):
        yield "¶ With --checkpoint-activations: without it, not even one text fits."
    if any(row["hours"] is None for row in rows):
        yield "–: hours need the number of texts; name a folder with the data (--data-dir or DATA_DIR)."


def hours_notes(plan: dict[str, Any], tflops: float | None, by_gpu: bool) -> Iterator[str]:
    """The estimated time: from FLOPs if a rate is given, else from records of similar runs.

    by_gpu: whether a table shows each row's hours on a GPU.
    """
    timed_cells, untimed_cells = plan["cells_of_known_hours"], plan["cells_of_unknown_hours"]
    if tflops and timed_cells:
        length = " or ".join(dict.fromkeys(str(row["longest_text"]) for row in plan["rows"]))
        yield f"{plan['hours']:.2f} h with parent runs, from FLOPs at a steady {tflops:g} TFLOP/s."
        yield f"That is for texts of {length} tokens; shorter ones take less time."
        yield "Loading, checkpoints and, on a GPU, many small steps take more."
    if tflops:
        if untimed_cells:
            yield f"No hours for {plural(untimed_cells, 'run')}: count the texts with --data-dir or DATA_DIR."
        return
    if not timed_cells + untimed_cells:
        yield "Nothing is left to compute."
    if timed_cells:
        hours = f"About {plan['hours']:.1f} h in one process for {plural(timed_cells, 'run')}"
        yield f"{hours}, from records of the same method and task."
    if untimed_cells and not by_gpu:
        estimate = "--tflops N estimates the time at N · 10^12 operations/s, from the data."
        yield f"No similar record for {plural(untimed_cells, 'run')}: {estimate}"
