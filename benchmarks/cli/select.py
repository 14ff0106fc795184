"""From the command line's words to a benchmark, its cells and the settings."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.executors.slots import default_workers
from benchmarks.experiment import Benchmark, Column, Row, Scale, with_settings
from benchmarks.registry import benchmark, benchmark_ids, columns_of, rows_of, scale_of, with_backbone
from benchmarks.run_config import RunConfig
from benchmarks.running.run_options import RunOptions, require_machine
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
        """spec_id -> how people call the cell, and each that it begins from."""
        from benchmarks.running.completed import earlier_stages

        cells = self.cells()
        first = {stage.spec_id: stage for _, _, cell in cells for stage in earlier_stages(cell)}
        return {
            spec_id: f"first: {stage.task} · {stage.algorithm} on {stage.backbone} · seed {stage.seed}"
            for spec_id, stage in first.items()
        } | {cell.spec_id: f"{column.name} · {row.name} · seed {cell.seed}" for row, column, cell in cells}


def tables_of(name: str) -> list[str]:
    """The ids of a paper's tables; of any other name itself."""
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
    """A part of a benchmark by ids, all where none is given; changes: as --set has. UserError says what there is."""
    changed = with_settings(benchmark(benchmark_id), changes)
    found = with_backbone(scale_of(changed, scale), backbone)
    return Selection(changed, found, rows_of(changed, methods, found), columns_of(changed, tasks, found), seeds)


def selection(args: argparse.Namespace, benchmark_id: str | None = None) -> Selection:
    """The part of a benchmark that the words choose."""
    scale = "demo" if args.scale is None else args.scale
    found = part_of(benchmark_id or args.id, scale, args.methods, args.tasks, args.seeds, args.set, args.backbone)
    alone = getattr(args, "seed", None)
    found = found if alone is None else replace(found, seeds=(alone,))
    return _from_sweep(found, args.results_dir) if getattr(args, "from_sweep", False) else found


def sweep_file(results_dir: Path, chosen: Selection) -> Path:
    """Where the sweeps of a benchmark at a scale are kept."""
    return results_dir / "sweeps" / f"{chosen.benchmark.id}-{chosen.scale.id}.json"


def _from_sweep(chosen: Selection, results_dir: Path) -> Selection:
    """With the best values of the sweeps under the same --set and backbone in place of the definition's."""
    path = sweep_file(results_dir, chosen)
    labels = {column.task: chosen.benchmark.label(chosen.scale, [column]) for column in chosen.columns}
    rows = {row.id for row in chosen.benchmark.rows}
    swept = {place: values for place, values in best_values(read_sweep(path), labels).items() if place[1] in rows}
    if not swept:
        raise UserError(
            f"--from-sweep: expected a sweep of what is chosen, with the same --set, in {path}, found none; run "
            f"`python -m benchmarks sweep {chosen.benchmark.id} --scale {chosen.scale.id}` first"
        )
    search = replace(chosen.benchmark.search(chosen.scale), swept=swept)
    names = ", ".join(dict.fromkeys(row for _, row in swept))
    changes = *chosen.scale.changes, f"settings of {names} chosen by a sweep on validation data"
    return replace(chosen, scale=replace(chosen.scale, search=search, changes=changes))


def settings(args: argparse.Namespace, cells: int = 1) -> RunOptions:
    """The settings in the words, checked."""
    executor, address, slurm = (getattr(args, name, None) for name in ("executor", "ray_address", "slurm"))
    device, threads, workers = (getattr(args, name, None) for name in ("device", "threads", "workers"))
    client_workers = getattr(args, "client_workers", 1)
    uses_ray = executor == "ray" or client_workers > 1
    for flag, given, only, is_used in (
        ("--ray-address", address, "ray", uses_ray),
        ("--slurm", slurm, "slurm", executor == "slurm"),
    ):
        if given and not is_used:
            raise UserError(f"{flag}: expected with --executor {only}, found {executor or 'processes'}")
    require_machine(device, threads or 1, workers or 1, executor, client_workers)
    made = RunOptions(
        results_dir=args.results_dir,
        data_dir=args.data_dir,
        backbone=getattr(args, "backbone", None),
        lenient=getattr(args, "lenient", False),
        threads=threads or 1,
        workers=workers or default_workers(device, cells, executor, client_workers),
        client_workers=client_workers,
        device=device,
        executor=executor or "",
        ray_address=address or os.environ.get("RAY_ADDRESS") or None,
        slurm=tuple(slurm or ()),
    )
    made.check()
    return made


def stages_of(chosen: Selection) -> dict[str, list[RunConfig]]:
    """The earlier runs that are no chosen cells themselves: in words -> each seed's."""
    from benchmarks.running.completed import earlier_stages

    cells = [cell for _, _, cell in chosen.cells()]
    known = {cell.spec_id for cell in cells}
    found: dict[str, list[RunConfig]] = {}
    for stage in (stage for cell in cells for stage in earlier_stages(cell)):
        if stage.spec_id not in known:
            known.add(stage.spec_id)
            text = f"{stage.task} by {stage.algorithm} on {stage.backbone}, {stage.training.rounds} rounds"
            found.setdefault(text, []).append(stage)
    return found
