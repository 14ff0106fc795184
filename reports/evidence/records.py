"""The records of a table's cells, and a request for a part of a benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from benchmarks.costs import WirePlan
from benchmarks.dry_run import shapes
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.results import Find, RunResult, among
from reports.evidence.corrections import corrected
from reports.evidence.statistics import FEWEST_SEEDS

DAGGER = "†"  # marks a method that the paper's table lacks
DEMO = "demo"  # the scale with generated data, which is not evidence about a paper
PAPER = "paper"  # the scale with the paper's encoder, at which its absolute numbers apply


def digests(record: RunResult) -> dict[str, str]:
    """Input name -> digest, or id of the run that produced it; with the definition, this identifies a run.

    The parent run in the definition is left out, as it differs by seed and row.
    """
    is_named = record.cell.initial is not None
    return {name: digest for name, digest in record.input_digests.items() if not (is_named and name == "initial")}


def agree(one: RunResult, other: RunResult) -> bool:
    """Whether the records of two rows agree in every input that both have.

    Encoders may differ if the definitions name two, and so may the rows' methods.
    """
    first, second = digests(one), digests(other)
    exempt = {"code", *(["backbone"] if one.cell.backbone != other.cell.backbone else [])}
    return all(first[name] == second[name] for name in first.keys() & second.keys() - exempt)


def preferring(records: Iterable[RunResult], used: Iterable[RunResult]) -> list[RunResult]:
    """The records without those of other inputs than the used records, in places that also have fitting records.

    A report shows each place's newest inputs; after a run, its inputs count, although older ones may be reused.
    """
    listed, of_task = list(records), dict[tuple[str, str], list[RunResult]]()
    for record in used:
        of_task.setdefault((record.cell.scale, record.cell.task), []).append(record)

    def fits(record: RunResult) -> bool:
        return all(
            digests(record) == digests(other) if record.cell.place_id == other.cell.place_id else agree(record, other)
            for other in of_task.get((record.cell.scale, record.cell.task), ())
        )

    fitting = {record.cell_id for record in listed if fits(record)}
    places = {record.cell.place_id for record in listed if record.cell_id in fitting}
    return [one for one in listed if one.cell_id in fitting or one.cell.place_id not in places]


def paired(records: Sequence[RunResult], others: Sequence[RunResult]) -> list[tuple[RunResult, RunResult]]:
    """The records of two rows with the same seed, data and weights, in pairs."""
    by_seed = {record.cell.seed: record for record in others}
    pairs = ((record, by_seed[record.cell.seed]) for record in records if record.cell.seed in by_seed)
    return [pair for pair in pairs if agree(*pair)]


def comparable(runs: Mapping[str, Sequence[RunResult]]) -> dict[str, tuple[RunResult, ...]]:
    """The rows that are compared, with their records of the seeds that all of them have; {} if these are not two.

    Rows join by their number of seeds, most first. A row is left out if it would leave fewer than FEWEST_SEEDS in
    common, or fewer than the first row has if that has less. Seeds are paired as in `paired`.
    """
    ordered = sorted(runs, key=lambda name: -len(runs[name]))
    first = runs[ordered[0]] if ordered else ()
    seeds, names = {record.cell.seed for record in first}, set()
    fewest = min(FEWEST_SEEDS, len(first))
    for name in ordered:
        shared = seeds & {record.cell.seed for record, _ in paired(runs[name], first)}
        if shared and len(shared) >= fewest:
            seeds = shared
            names.add(name)
    kept = {name: tuple(one for one in runs[name] if one.cell.seed in seeds) for name in runs if name in names}
    return kept if len(kept) > 1 else {}


def is_partial(record: RunResult) -> bool:
    """Whether data of the task were missing or replaced."""
    data = record.inputs["data"]
    return bool(data.get("stand_in")) or any(str(note).startswith("partial") for note in data.get("notes", ()))


def machine(record: RunResult, *keys: str) -> tuple[str, ...]:
    """Device, precision and threads of a run, or only the named ones."""
    return tuple(str(record.environment.get(key)) for key in keys or ("device", "precision", "threads"))


Index = Mapping[str, Sequence[RunResult]]  # place_id -> its records, by seed


def newest_by_place(records: Iterable[RunResult]) -> Index:
    """The records by place, each run once, for each seed in the order of finishing.

    Only records of each task's newest engine version are used.
    """
    ordered = sorted(records, key=lambda record: record.finished)
    runs = {(record.cell.spec_id, *sorted(digests(record).items())): record for record in ordered}
    newest: dict[str, int] = {}
    for record in runs.values():
        newest[record.cell.task] = max(newest.get(record.cell.task, 0), record.cell.engine_version)
    return by_place(run for run in runs.values() if run.cell.engine_version == newest[run.cell.task])


def by_place(records: Iterable[RunResult]) -> Index:
    """All of the records by place."""
    index: dict[str, list[RunResult]] = {}
    for record in sorted(records, key=lambda record: record.cell.seed):
        index.setdefault(record.cell.place_id, []).append(record)
    return index


@dataclass(frozen=True)
class CellRecords:
    """The records of one cell, one per seed in the order of seeds, and the number of others left out.

    diverged: runs with infinite or undefined numbers; they have no score and are not in `records`.
    """

    records: tuple[RunResult, ...] = ()
    left_out: int = 0
    diverged: tuple[RunResult, ...] = ()

    @property
    def is_run(self) -> bool:
        return bool(self.records or self.diverged)

    @property
    def divergence(self) -> str:
        """The rounds of divergence, such as "diverged in round 2"; "" without any."""
        return " and ".join(dict.fromkeys(record.divergence for record in self.diverged))


def select(benchmark: Benchmark, scale: Scale, row: Row, column: Column, index: Index) -> CellRecords:
    """The records with this cell's definition and any seed, all with the inputs of the newest one.

    For a row without training: the corrected records of the row that it corrects.
    """
    if row.corrects:
        answered = select(benchmark, scale, benchmark.row(row.corrects), column, index)
        corrections = (corrected(record, row.correction) for record in answered.records)
        return CellRecords(tuple(record for record in corrections if record is not None))
    records = index.get(benchmark.cell(row, column, scale, 0).place_id)
    if not records:
        return CellRecords()
    newest = digests(max(records, key=lambda record: record.finished))
    kept = [record for record in records if digests(record) == newest]
    finished = tuple(record for record in kept if not record.diverged)
    return CellRecords(finished, len(records) - len(kept), tuple(record for record in kept if record.diverged))


@dataclass(frozen=True)
class Request:
    """The part of a benchmark to show, with the available records; records of other scales are ignored."""

    benchmark: Benchmark
    scale: Scale
    records: tuple[RunResult, ...]
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    score_at: str = "chosen"

    @property
    def label(self) -> str:
        """The scale's description, for all columns."""
        return self.benchmark.label(self.scale, self.columns)

    @property
    def heading(self) -> str:
        return self.heading_of(*self.columns)

    def heading_of(self, *columns: Column) -> str:
        """Paper, table and scale of some columns."""
        benchmark, scale = self.benchmark, self.scale
        return f"{benchmark.paper.name}, {benchmark.place} · scale {scale.id}: {benchmark.label(scale, columns)}"

    def name_of(self, row: Row) -> str:
        """The method's name, with a dagger if the paper's table lacks it; a study is not a paper's table."""
        return f"{row.name} {DAGGER}" if self.benchmark.is_printed and not row.printed else row.name

    @property
    def paper_scale(self) -> Scale:
        return self.benchmark.scale(PAPER)

    def plan(self, row: Row, scale: Scale | None = None, texts: int | None = None) -> WirePlan | None:
        """The bytes of the first task's rounds, by shapes; None if they depend on the texts.

        Args:
            row: The method.
            scale: The encoder's; None for the paper's.
            texts: Training examples of all clients together, if bytes depend on their number.
        """
        return shapes.plan_of(self.benchmark.cell(row, self.columns[0], scale or self.paper_scale, 0), texts)

    @cached_property
    def index(self) -> Index:
        """The scale's records by place."""
        return newest_by_place(record for record in self.records if record.cell.scale == self.scale.id)

    @cached_property
    def find(self) -> Find:
        """Finds the records of parent runs, also of other tables and scales."""
        return among(self.records)

    @cached_property
    def selections(self) -> dict[tuple[str, str], CellRecords]:
        """(row id, task) -> the records of that cell."""
        return {
            (row.id, column.task): select(self.benchmark, self.scale, row, column, self.index)
            for row, column in product(self.rows, self.columns)
        }

    def cells_run(self, columns: Iterable[Column]) -> tuple[int, int]:
        """The numbers of finished cells and of all cells in some columns; a row without training has those it needs."""
        run_rows = [self.benchmark.row(row.corrects) if row.corrects else row for row in self.rows]
        distinct = {row.id: row for row in run_rows}.values()
        cells = [self._cell(row, column) for row, column in product(distinct, columns)]
        return sum(cell.is_run for cell in cells), len(cells)

    @property
    def run(self) -> tuple[int, int]:
        """The numbers of finished cells and of all cells in the paper's columns."""
        return self.cells_run(column for column in self.columns if self.benchmark.counts(column))

    @property
    def coverage(self) -> str:
        """The finished cells of the paper's columns and of our columns, as text."""
        ours = [column for column in self.columns if not self.benchmark.counts(column)]
        counted = [("{} of {} cells run", self.run)] if len(ours) < len(self.columns) else []
        counted += [(f"{column.name} (column of ours): {{}} of {{}}", self.cells_run([column])) for column in ours]
        return "; ".join(text.format(*numbers) for text, numbers in counted)

    def records_of(self, row: Row, column: Column) -> tuple[RunResult, ...]:
        """The finished records of a cell, which may be in a hidden row."""
        return self._cell(row, column).records

    def _cell(self, row: Row, column: Column) -> CellRecords:
        selection = self.selections.get((row.id, column.task))
        return selection or select(self.benchmark, self.scale, row, column, self.index)

    @property
    def columns_run(self) -> tuple[Column, ...]:
        """Columns with at least one run."""
        run = {task for (_, task), selection in self.selections.items() if selection.is_run}
        return tuple(column for column in self.columns if column.task in run)

    @cached_property
    def scored_at(self) -> str:
        """`score_at`; "last" if it is "chosen" but no record chose its round."""
        is_chosen = any(record.chosen_by for selection in self.selections.values() for record in selection.records)
        return self.score_at if is_chosen or self.score_at != "chosen" else "last"

    def rows_named(self, option: str) -> tuple[Row, ...]:
        """The rows named by an option of the view, in its order, shown or hidden."""
        named = self.benchmark.view.options[option]
        return tuple(map(self.benchmark.row, (named,) if isinstance(named, str) else named))


def request_for(
    benchmark: Benchmark,
    scale: Scale,
    records: Iterable[RunResult],
    rows: Sequence[Row] = (),
    columns: Sequence[Column] = (),
    score_at: str = "",
) -> Request:
    """A request for a part of a benchmark, with the rows that correct its rows; no rows or columns means all.

    score_at: "" for the table's option "at", or the chosen round. A column is titled by the data of its runs if they
    are not the published ones.
    """
    run_rows, of = tuple(rows) or benchmark.rows_at(scale), tuple(columns) or benchmark.columns_at(scale)
    ids = {row.id for row in run_rows}
    corrections = tuple(row for row in benchmark.without_training if row.corrects in ids and row.id not in ids)
    at = score_at or str(benchmark.view.options.get("at", "chosen"))
    request = Request(benchmark, scale, tuple(records), (*run_rows, *corrections), of, at)
    return replace(request, columns=tuple(_titled(each, request) for each in of)) if scale.id == PAPER else request


def _titled(column: Column, request: Request) -> Column:
    """The column with the data in its name that replaced the published ones."""
    records = (record for row in request.rows for record in request.records_of(row, column))
    read = dict.fromkeys(str(record.inputs["data"].get("stand_in", "")) for record in records)
    others = "; ".join(filter(None, read))
    return replace(column, name=f"{column.name} (not the published data: {others})") if others else column
