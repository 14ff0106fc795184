"""Which records stand behind a cell of a table, for a part of a benchmark that somebody asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Protocol

from benchmarks.costs import ClientCosts, WirePlan
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig

DEMO = "demo"  # the scale whose generated data say nothing of a paper
PAPER = "paper"  # the scale of the paper's own encoder, at which its absolute numbers mean something
_MACHINE = ("device", "precision", "threads")  # what the last bits of a result hang on


def digests(record: RunResult) -> dict[str, str]:
    """Input name -> digest, or id of the cell that made it: what, with the definition, identifies a run.

    Without the earlier cell that the definition itself names, which is another for each seed and row.
    """
    named = record.cell.initial is not None
    return {name: known for name, known in record.known_by.items() if not (named and name == "initial")}


def agree(own: RunResult, its: RunResult) -> bool:
    """Whether two rows' records stand on the same data and weights: on the same inputs, of those that both are told by.

    Another encoder, where their definitions name two, is no reason against it.
    """
    ours, theirs = digests(own), digests(its)
    named_apart = {"backbone"} if own.cell.backbone != its.cell.backbone else set()
    return all(ours[name] == theirs[name] for name in ours.keys() & theirs.keys() - named_apart)


def paired(own: Sequence[RunResult], others: Sequence[RunResult]) -> list[tuple[RunResult, RunResult]]:
    """The records of two rows, seed by seed, that stand on the same data and weights."""
    by_seed = {record.cell.seed: record for record in others}
    pairs = ((record, by_seed[record.cell.seed]) for record in own if record.cell.seed in by_seed)
    return [pair for pair in pairs if agree(*pair)]


def is_partial(record: RunResult) -> bool:
    """Whether some of the task's data were lacking."""
    return any(str(note).startswith("partial") for note in record.inputs["data"].get("notes", ()))


def machine(record: RunResult, *keys: str) -> tuple[str, ...]:
    """What a run was computed on and in: device, precision and threads, or those of them that are named."""
    return tuple(str(record.environment.get(key)) for key in keys or _MACHINE)


class Index(dict[str, list[RunResult]]):
    """definition_id -> its records; not changed once it is made."""

    @cached_property
    def seeds(self) -> Mapping[tuple[str, str, str, str], Sequence[int]]:
        """What all seeds of a cell share -> the seeds of the records that have it: the only ones worth asking for."""
        found: dict[tuple[str, str, str, str], set[int]] = {}
        for records in self.values():
            for record in records:
                found.setdefault(_kind(record.cell), set()).add(record.cell.seed)
        return {kind: sorted(seeds) for kind, seeds in found.items()}


def _kind(cell: RunConfig) -> tuple[str, str, str, str]:
    return cell.task, cell.algorithm, cell.codec, cell.head


def by_definition(records: Iterable[RunResult]) -> Index:
    """definition_id -> its records in the order in which they finished, each run once.

    Of each task those of the newest engine version that any of its records has: versions are not compared.
    """
    runs = {
        (record.cell.spec_id, *sorted(digests(record).items())): record
        for record in sorted(records, key=lambda record: record.finished)
    }
    newest: dict[str, int] = {}
    for record in runs.values():
        newest[record.cell.task] = max(newest.get(record.cell.task, 0), record.cell.engine_version)
    return indexed(run for run in runs.values() if run.cell.engine_version == newest[run.cell.task])


def indexed(records: Iterable[RunResult]) -> Index:
    """All of the records, by definition."""
    index = Index()
    for record in records:
        index.setdefault(record.cell.definition_id, []).append(record)
    return index


@dataclass(frozen=True)
class Selection:
    """The records of one cell, one a seed in the order of seeds, and how many others were left out.

    diverged: those whose training left the finite numbers: they have no score, and are none of `records`.
    """

    records: tuple[RunResult, ...] = ()
    left_out: int = 0
    diverged: tuple[RunResult, ...] = ()

    @property
    def is_run(self) -> bool:
        return bool(self.records or self.diverged)

    @property
    def divergence(self) -> str:
        """When those diverged, in words: "diverged in round 2"; "" without any."""
        return " and ".join(dict.fromkeys(record.divergence for record in self.diverged))


def _definition_ids(benchmark: Benchmark, scale: Scale, row: Row, column: Column, seeds: Sequence[int]) -> list[str]:
    """A cell's definition by seed, each made once for a benchmark: tables, claims and gates all ask for the same."""
    known: dict[tuple[int, ...], tuple[str, object]] = vars(benchmark).setdefault("_definition_ids", {})
    found = []
    for seed in seeds:
        at = id(scale), id(row), id(column), seed
        if at not in known:  # with the objects, as their ids are theirs only as long as they live
            known[at] = benchmark.cell(row, column, scale, seed).definition_id, (scale, row, column)
        found.append(known[at][0])
    return found


def select(benchmark: Benchmark, scale: Scale, row: Row, column: Column, index: Index) -> Selection:
    """The records, by definition, whose cell is this one up to the seed, all with the inputs of the newest one."""
    seeds = index.seeds.get(_kind(benchmark.cell(row, column, scale, 0)), ())
    cells = _definition_ids(benchmark, scale, row, column, seeds)
    found = [record for cell in cells for record in index.get(cell, ())]
    if not found:
        return Selection()
    newest = digests(max(found, key=lambda record: record.finished))
    kept = [record for record in found if digests(record) == newest]
    ended = tuple(record for record in kept if not record.diverged)
    return Selection(ended, len(found) - len(kept), tuple(record for record in kept if record.diverged))


class Derive(Protocol):
    """What one round of a cell sends, derived from shapes without training."""

    def __call__(self, row: Row, column: Column, scale: Scale, examples: int | None = None) -> WirePlan | None:
        """examples: of all clients together; None where the bytes depend on them unknown, or on the texts' lengths."""


DeriveClient = Callable[[RunConfig], ClientCosts | None]  # a client's costs by shapes; None where unknown


@dataclass(frozen=True)
class Request:
    """The part of a benchmark that is to be shown, with the records at hand; records of other scales are ignored."""

    benchmark: Benchmark
    scale: Scale
    records: tuple[RunResult, ...]
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    score_at: str = "chosen"
    derive: Derive | None = None  # where a view shows what the paper's own encoder would send
    derive_client: DeriveClient | None = None  # where it shows what one client's training costs

    @property
    def label(self) -> str:
        """The scale in words, for all columns."""
        return self.benchmark.label(self.scale, self.columns)

    @property
    def heading(self) -> str:
        """Of all columns."""
        return self.heading_of(*self.columns)

    def heading_of(self, *columns: Column) -> str:
        """Of some columns, with what they stand on."""
        benchmark, scale = self.benchmark, self.scale
        return f"{benchmark.paper.name}, {benchmark.place} · scale {scale.id}: {benchmark.label(scale, columns)}"

    @property
    def paper_scale(self) -> Scale:
        return self.benchmark.scale(PAPER)

    @cached_property
    def selections(self) -> dict[tuple[str, str], Selection]:
        """(row id, task) -> the records of that cell."""
        index = by_definition(record for record in self.records if record.cell.scale == self.scale.id)
        return {
            (row.id, column.task): select(self.benchmark, self.scale, row, column, index)
            for row, column in product(self.rows, self.columns)
        }

    def records_of(self, row: Row, column: Column) -> tuple[RunResult, ...]:
        """Those of a cell that came to their end."""
        return self.selections[row.id, column.task].records

    def seeds_of(self, row: Row, column: Column) -> tuple[int, ...]:
        return tuple(record.cell.seed for record in self.records_of(row, column))

    @property
    def columns_run(self) -> tuple[Column, ...]:
        """Columns with a run of some row."""
        run = {task for (_, task), selection in self.selections.items() if selection.is_run}
        return tuple(column for column in self.columns if column.task in run)

    @cached_property
    def scored_at(self) -> str:
        """`score_at`; "last" where it is "chosen" and no record chose its round."""
        chosen = any(record.chosen_by for found in self.selections.values() for record in found.records)
        return self.score_at if chosen or self.score_at != "chosen" else "last"

    def rows_named(self, option: str) -> tuple[Row, ...]:
        """The rows that an option of the view names, whether they are shown or not, in its order."""
        named = self.benchmark.view.options[option]
        rows = {row.id: row for row in self.benchmark.rows}
        return tuple(rows[name] for name in ((named,) if isinstance(named, str) else named))


def request_for(
    benchmark: Benchmark,
    scale: Scale,
    records: Iterable[RunResult],
    rows: Sequence[Row] = (),
    columns: Sequence[Column] = (),
    score_at: str = "chosen",
    derive: Derive | None = None,
    derive_client: DeriveClient | None = None,
) -> Request:
    """A request for a part of a benchmark; no rows or columns means all of them."""
    shown = tuple(rows) or benchmark.rows_at(scale), tuple(columns) or benchmark.columns_at(scale)
    return Request(benchmark, scale, tuple(records), *shown, score_at, derive, derive_client)
