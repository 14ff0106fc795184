"""From the arguments of a command to the part of a benchmark, its cells and the settings."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Column, Row, Scale, with_settings
from benchmarks.registry import benchmark, benchmark_ids, columns_of, rows_of, scale_of, with_backbone
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import earlier_stages
from benchmarks.running.events import CellFailed
from benchmarks.running.run_options import RunOptions, default_workers
from benchmarks.sweeps.tuning import best_values, read_sweep


@dataclass(frozen=True)
class Selection:
    """The chosen part of a benchmark."""

    benchmark: Benchmark
    scale: Scale
    rows: Sequence[Row]
    columns: Sequence[Column]
    seeds: Sequence[int]

    @property
    def title(self) -> str:
        """Benchmark and scale: fedsplitbert-table3 @ lite."""
        return f"{self.benchmark.id} @ {self.scale.id}"

    def cells(self) -> list[tuple[Row, Column, RunConfig]]:
        """The chosen cells."""
        return self.benchmark.cells(self.scale, self.seeds, self.rows, self.columns)

    def names(self) -> dict[str, str]:
        """spec_id -> a name for the cell in messages, also of the earlier runs that it begins from."""
        names: dict[str, str] = {}
        for row, column, cell in self.cells():
            for stage in earlier_stages(cell):
                text = f"first: {stage.task} · {stage.algorithm} on {stage.backbone} · seed {stage.seed}"
                names.setdefault(stage.spec_id, text)
            names[cell.spec_id] = f"{column.name} · {row.name} · seed {cell.seed}"
        return names


def tables_of(name: str) -> list[str]:
    """The ids of a paper's tables, or the name itself if it is not a paper."""
    return [own for own in benchmark_ids() if own.startswith(f"{name}-")] or [name]


def part_of(
    benchmark_id: str,
    scale: str,
    methods: list[str],
    tasks: list[str],
    seeds: Sequence[int],
    changes: Sequence[str],
    backbone: str | None,
) -> Selection:
    """A part of a benchmark by ids; empty lists mean all. UserError names what exists.

    Args:
        benchmark_id: A table or figure.
        scale: One of its scales.
        methods: Ids of rows.
        tasks: Ids of tasks.
        seeds: The seeds themselves.
        changes: "field=value" texts, as `--set` takes them.
        backbone: A folder or hub name that replaces the scale's encoder.
    """
    changed = with_settings(benchmark(benchmark_id), changes)
    at = with_backbone(scale_of(changed, scale), backbone)
    return Selection(changed, at, rows_of(changed, methods, at), columns_of(changed, tasks, at), seeds)


def selection(args: argparse.Namespace, benchmark_id: str | None = None) -> Selection:
    """The part of a benchmark that the arguments choose."""
    seeds = args.seeds if getattr(args, "seed", None) is None else (args.seed,)
    chosen = part_of(
        benchmark_id or args.id, args.scale or "demo", args.methods, args.tasks, seeds, args.set, args.backbone
    )
    return _from_sweep(chosen, args.results_dir) if getattr(args, "from_sweep", False) else chosen


def sweep_file(results_dir: Path, chosen: Selection) -> Path:
    """Where the sweeps of a benchmark at a scale are kept."""
    return results_dir / "sweeps" / f"{chosen.benchmark.id}-{chosen.scale.id}.json"


def _from_sweep(chosen: Selection, results_dir: Path) -> Selection:
    """The selection with the best values of its sweeps, under the same --set and encoder, as the rows' settings."""
    path = sweep_file(results_dir, chosen)
    labels = {column.task: chosen.benchmark.label(chosen.scale, [column]) for column in chosen.columns}
    rows = {row.id for row in chosen.benchmark.rows}
    swept = {place: values for place, values in best_values(read_sweep(path), labels).items() if place[1] in rows}
    if not swept:
        raise UserError(
            f"--from-sweep: expected a sweep of this selection, with the same --set, in {path}, found none; run "
            f"`python -m benchmarks sweep {chosen.benchmark.id} --scale {chosen.scale.id}` first"
        )
    search = replace(chosen.benchmark.search(chosen.scale), swept=swept)
    names = ", ".join(dict.fromkeys(row for _, row in swept))
    changes = *chosen.scale.changes, f"settings of {names} chosen by a sweep on validation data"
    return replace(chosen, scale=replace(chosen.scale, search=search, changes=changes))


def settings(args: argparse.Namespace, cells: int = 1) -> RunOptions:
    """The settings in the arguments, checked. cells: how many are computed, which limits the default of workers."""
    fields = {field.name for field in dataclasses.fields(RunOptions)}
    made = RunOptions(**{name: value for name, value in vars(args).items() if name in fields and value is not None})
    if made.ray_address and not (made.executor == "ray" or made.client_workers > 1):
        raise UserError(f"--ray-address: expected with --executor ray, found {made.executor or 'processes'}")
    if made.slurm and made.executor != "slurm":
        raise UserError(f"--slurm: expected with --executor slurm, found {made.executor or 'processes'}")
    made.check()
    named = getattr(args, "workers", None)
    workers = named or default_workers(made.device, cells, made.executor or None, made.client_workers)
    address = made.ray_address or os.environ.get("RAY_ADDRESS") or None
    return replace(made, workers=workers, ray_address=address, slurm=tuple(made.slurm))


def stages_of(chosen: Selection) -> dict[str, list[RunConfig]]:
    """The earlier runs that are not chosen themselves: a description -> the run of each seed."""
    cells = [cell for _, _, cell in chosen.cells()]
    ids = {cell.spec_id for cell in cells}
    by_text: dict[str, list[RunConfig]] = {}
    for stage in {stage.spec_id: stage for cell in cells for stage in earlier_stages(cell)}.values():
        if stage.spec_id not in ids:
            text = f"{stage.task} by {stage.algorithm} on {stage.backbone}, {stage.training.rounds} rounds"
            by_text.setdefault(text, []).append(stage)
    return by_text


def summary(failures: Sequence[CellFailed], cells: Sequence[RunConfig], chosen: Selection) -> str:
    """Each distinct reason once, with the cells that failed for it."""
    reasons: dict[str, list[str]] = {}
    names = chosen.names()
    for failure in failures:
        reasons.setdefault(failure.message, []).append(names[failure.cell.spec_id])
    failed = len({cell.spec_id for cell in cells} & {failure.cell.spec_id for failure in failures})
    if failed == len(cells) and len(reasons) == 1:
        return next(iter(reasons))
    lines = [f"{reason} ({'; '.join(stopped)})" for reason, stopped in reasons.items()]
    rest = "; the others are finished" if failed < len(cells) else ""
    return f"{failed} of {len(cells)} cells could not be computed{rest}. " + "\n".join(lines)
