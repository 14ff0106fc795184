"""A selected part of a benchmark: its rows, tasks and seeds at one scale, and its finished cells."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.overrides import is_within, read_assignment
from benchmarks.registry import benchmark, columns_of, folder_of, rows_of, scale_of, with_backbone
from benchmarks.results import RunResult, all_stages, among, read_folders
from benchmarks.run_config import JSON, SCALES, RunConfig
from benchmarks.running.completed import earlier_stages
from benchmarks.running.events import CellFailed
from benchmarks.running.timings import glimpses
from benchmarks.sweeps.tuning import Values, best_values, read_sweep
from fedsim.errors import plural

_CELL = '"cell": '


@dataclass(frozen=True)
class Selection:
    """The selected part of a benchmark.

    Args:
        rows: The rows whose runs it needs.
        named: The rows that its page shows, if they are named; () for `rows` and those that correct them.
    """

    benchmark: Benchmark
    scale: Scale
    rows: Sequence[Row]
    columns: Sequence[Column]
    seeds: Sequence[int]
    named: Sequence[Row] = ()

    @property
    def title(self) -> str:
        """Benchmark and scale: fedsplitbert-table3 @ lite."""
        return f"{self.benchmark.id} @ {self.scale.id}"

    def cells(self) -> list[tuple[Row, Column, RunConfig]]:
        """The selected cells."""
        return self.benchmark.cells(self.scale, self.seeds, self.rows, self.columns)

    def runs(self) -> list[RunConfig]:
        """The distinct configurations of the selected cells."""
        return list({cell.spec_id: cell for _, _, cell in self.cells()}.values())

    def names(self) -> dict[str, str]:
        """spec_id -> a name in messages, for cells and their earlier runs."""
        names: dict[str, str] = {}
        for row, column, cell in self.cells():
            for stage in earlier_stages(cell):
                text = f"first: {stage.task} · {stage.algorithm} on {stage.backbone} · seed {stage.seed}"
                names.setdefault(stage.spec_id, text)
            names[cell.spec_id] = f"{column.name} · {row.name} · seed {cell.seed}"
        return names

    def stages(self) -> dict[str, list[RunConfig]]:
        """The earlier runs outside the selection: description -> the run of each seed."""
        runs, by_text = self.runs(), dict[str, list[RunConfig]]()
        chosen = {run.spec_id for run in runs}
        for stage in {stage.spec_id: stage for run in runs for stage in earlier_stages(run)}.values():
            if stage.spec_id not in chosen:
                text = f"{stage.task} by {stage.algorithm} on {stage.backbone}, {stage.training.rounds} rounds"
                by_text.setdefault(text, []).append(stage)
        return by_text

    def failed(self, failures: Sequence[CellFailed]) -> str:
        """One message for all failures: each distinct reason with its failed cells."""
        reasons: dict[str, list[str]] = {}
        names, count = self.names(), len(self.runs())
        for failure in failures:
            reasons.setdefault(failure.message, []).append(names[failure.cell.spec_id])
        failed = len({failure.cell.spec_id for failure in failures})
        if failed == count and len(reasons) == 1:
            return next(iter(reasons))
        lines = [f"{reason} ({'; '.join(stopped)})" for reason, stopped in reasons.items()]
        rest = "; the others are finished" if failed < count else ""
        return f"{failed} of {plural(count, 'cell')} failed{rest}. " + "\n".join(lines)

    @property
    def sweep_file(self) -> Path:
        """The path, in a results folder, of the sweeps for this benchmark and scale."""
        return self._sweep_file(self.benchmark.id)

    def _sweep_file(self, table: str) -> Path:
        return Path("sweeps", f"{table}-{self.scale.id}.json")

    def tuned(self, results_dir: Path) -> dict[tuple[str, str], dict[str, object]]:
        """(task, row) -> the best values from the sweeps in a results folder with the same changes and encoder."""
        labels = {column.task: self.benchmark.label(self.scale, [column]) for column in self.columns}
        judging = self.benchmark.gate.rows if self.benchmark.gate else ()
        rows = {id for row in (*self.benchmark.rows, *judging) for id in (row.id, row.tuned_as)}
        best: dict[tuple[str, str], Values] = {}
        for table in (self.benchmark.swept_as, self.benchmark.id):  # its own sweep overrides the other table's
            best |= best_values(read_sweep(results_dir / self._sweep_file(table)), labels)
        return {place: dict(values) for place, values in best.items() if place[1] in rows}

    def with_sweep(self, results_dir: Path) -> Selection:
        """The selection with its rows set to its sweeps' best values; UserError without a sweep."""
        swept = self.tuned(results_dir)
        if not swept:
            raise UserError(
                f"--from-sweep: expected a sweep of this selection, with the same --set, in "
                f"{results_dir / self.sweep_file}, found none; run "
                f"`python -m benchmarks sweep {self.benchmark.id} --scale {self.scale.id}` first"
            )
        search = replace(self.benchmark.search(self.scale), swept=swept)
        names = ", ".join(dict.fromkeys(row for _, row in swept))
        changes = *self.scale.changes, f"settings of {names} chosen by a sweep on validation data"
        return replace(self, scale=replace(self.scale, search=search, changes=changes))


def part_of(
    table: str | Benchmark,
    scale: str = "",
    methods: Sequence[str] = (),
    tasks: Sequence[str] = (),
    seeds: Sequence[int] = (0,),
    changes: Sequence[str] = (),
    backbone: str | None = None,
) -> Selection:
    """Select a part of a table or figure by ids; UserError for unknown ids, with the valid ones.

    scale: "" for the default, demo. methods, tasks: empty for all. changes: "field=value" texts, as in `--set`.
    backbone: a folder or hub name that replaces the scale's encoder.
    """
    changed = with_settings(table if isinstance(table, Benchmark) else benchmark(table), changes)
    if not scale and SCALES[0] not in changed.scales_by_id:
        others = ", ".join(changed.scales_by_id)
        raise UserError(f"{changed.id} has no scale {SCALES[0]}, the default; name one with --scale: {others}")
    at = with_backbone(scale_of(changed, scale or SCALES[0]), backbone)
    rows, columns = rows_of(changed, methods, at), columns_of(changed, tasks, at)
    return Selection(changed, at, rows, columns, seeds, [changed.row(name) for name in dict.fromkeys(methods)])


def with_settings(benchmark: Benchmark, assignments: Sequence[str]) -> Benchmark:
    """The benchmark with "field=value" applied to every run and shown in scale labels.

    Fields are sorted by name, so that the order of assignments makes no other table. Of a repeated field the last value
    counts; a group, such as partition, replaces earlier assignments inside it.
    """
    if not assignments:
        return benchmark
    last: dict[str, tuple[str, JSON]] = {}  # field -> its last assignment, and its value
    for assignment in assignments:
        name, value = read_assignment(assignment)
        last = {field: kept for field, kept in last.items() if not is_within(field, name)}
        last[name] = assignment, value
    if "seed" in last:
        raise UserError("--set seed: the seed is not a setting; choose seeds with --seeds or --seed")
    changes = sorted(last.items())

    def label(scale: Scale) -> str:
        return ", ".join(
            f"{text} ({benchmark.shown(name, value, scale)})" if name in benchmark.units else text
            for name, (text, value) in changes
        )

    scales = tuple(replace(scale, changes=(*scale.changes, f"changed: {label(scale)}")) for scale in benchmark.scales)
    overrides = (*benchmark.overrides, *((name, value) for name, (_, value) in changes))
    return replace(benchmark, overrides=overrides, scales=scales)


class FinishedCells:
    """The recorded cells of one scale. It compares only definitions, so that `list` is fast."""

    def __init__(self, cells: Iterable[RunConfig], scale: str) -> None:
        """cells: recorded cells of any scale."""
        cells = [cell for cell in cells if cell.scale == scale]
        self._places = {cell.place_id for cell in cells}
        self._methods = {(cell.task, cell.algorithm) for cell in cells}

    def of(self, table: Benchmark, scale: Scale) -> tuple[int, int]:
        """The number of cells in the paper's columns with a record of any seed, and of all such cells."""
        columns = [column for column in table.columns_at(scale) if table.counts(column)]
        return self.run(table, scale, columns), len(table.rows_at(scale)) * len(columns)

    def places(self, table: Benchmark, scale: Scale) -> dict[str, bool]:
        """Each cell and whether it has a record of any seed; a cell in several tables has one key.

        It covers the paper's columns, even those that the scale lacks, or all columns of a study.
        """
        printed = [column for column in table.columns if SCALES[-1] in column.scales] if table.is_printed else []
        places = {}
        for column in printed or table.columns_at(scale):
            for row in table.rows_at(scale):
                missing = f"{table.id} {row.id} {column.task}"
                key = table.cell(row, column, scale, 0).place_id if scale.id in column.scales else missing
                places[key] = key in self._places
        return places

    def run(self, table: Benchmark, scale: Scale, columns: Iterable[Column]) -> int:
        """The number of cells in these columns with a record of any seed."""
        return sum(
            # Building cells is slow, so build only those with a record of the same task and method.
            (column.task, row.algorithm) in self._methods and table.cell(row, column, scale, 0).place_id in self._places
            for row, column in product(table.rows_at(scale), columns)
        )


def all_records(results_dir: Path, tables: Iterable[Benchmark]) -> list[RunResult]:
    """The records in a results folder, and the committed ones of the tables' papers."""
    folders = {folder_of(table.paper.id) / "records" for table in tables} | {results_dir / "records"}
    return read_folders(folder for folder in sorted(folders) if folder.is_dir())


def of_seeds(records: Sequence[RunResult], seeds: Container[int]) -> list[RunResult]:
    """The runs with these seeds, with their earlier runs."""
    find, chosen = among(records), [record for record in records if record.cell.seed in seeds]
    return list({stage.cell_id: stage for record in chosen for stage in all_stages(record, find) or [record]}.values())


def recorded_cells(folders: Iterable[Path]) -> list[RunConfig]:
    """The cells of all records in folders; one of those that differ only in the seed, as reading a cell is slow."""
    cells: dict[str, RunConfig] = {}

    def read(text: str) -> None:
        value, _ = json.JSONDecoder().raw_decode(text, text.index(_CELL) + len(_CELL))
        place = json.dumps(value | {"seed": 0}, sort_keys=True)
        if place not in cells:
            cells[place] = RunConfig.from_json(value)

    list(glimpses(folders, read))
    return [*cells.values()]
