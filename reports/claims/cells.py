"""The cells that claims speak of: rows and columns of benchmarks, and the records behind them, paired by seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Self

from benchmarks.claims import At
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.results import RunResult
from reports import ReportError
from reports.evidence.gate import OPEN, Gate, failed, gate_of, home
from reports.evidence.records import Index, by_definition, is_partial, paired, select
from reports.evidence.scores import Scores, score_label, scores_of
from reports.evidence.traffic import Cost, measured_cost


@dataclass(frozen=True)
class Pair:
    """Two rows on a task, and the score where one is compared."""

    row: At
    other: At
    task: str
    score: str = ""


@dataclass(frozen=True)
class Tables:
    """Benchmarks by id. instead: task -> the one that stands in for it, where it does."""

    benchmarks: Mapping[str, Benchmark]
    instead: Mapping[str, str] = field(default_factory=dict)

    def benchmark(self, at: At) -> Benchmark:
        """The benchmark that a row belongs to; ReportError where it is unknown."""
        if at.benchmark not in self.benchmarks:
            raise ReportError(
                f"claims: expected the benchmark {at.benchmark!r}, found {', '.join(self.benchmarks) or 'none'}. "
                "Correct the paper's claims.py."
            )
        return self.benchmarks[at.benchmark]

    def row(self, at: At) -> Row:
        """The row itself; ReportError where the benchmark has none such."""
        rows = {row.id: row for row in self.benchmark(at).rows}
        if at.row not in rows:
            raise ReportError(
                f"claims: expected a row of {at.benchmark}, one of {', '.join(rows)}, found {at.row!r}. "
                "Correct the paper's claims.py."
            )
        return rows[at.row]

    def floor(self, at: At) -> At | None:
        """The row that answers without having learned: of a row's own table, or of the one that judges its columns."""
        return self._reference(at, home(self.benchmark(at)).yardstick.least)

    def idle(self, at: At) -> tuple[At, ...]:
        """The rows that do nothing of what a row's table compares, found in the same way."""
        found = (self._reference(at, name) for name in home(self.benchmark(at)).yardstick.idle)
        return tuple(row for row in found if row is not None)

    def _reference(self, at: At, name: str) -> At | None:
        tables = (self.benchmark(at), home(self.benchmark(at)))
        known = (table for table in tables if table.id in self.benchmarks and name != at.row)
        return next((At(table.id, name) for table in known if name in {row.id for row in table.rows}), None)

    def column(self, at: At, task: str) -> Column | None:
        return {column.task: column for column in self.benchmark(at).columns}.get(task)

    def task(self, at: At, task: str) -> str:
        column = self.column(at, task)
        return task if column is None else column.name

    def tasks(self, at: At, chosen: Iterable[str] = ()) -> tuple[str, ...]:
        """The chosen tasks, or all that stand for themselves; in place of one its stand-in, where it has one."""
        own = (column.task for column in self.benchmark(at).columns if not column.instead_of)
        return tuple(self.instead.get(task, task) for task in tuple(chosen) or own)

    def pairs(
        self, rows: Iterable[At], others: Iterable[At], tasks: Iterable[str] = (), scores: Iterable[str] = ()
    ) -> Iterator[Pair]:
        """Every row beside every other one on every (chosen) task and score that both tables print."""
        chosen = tuple(scores)
        for row, other in product(rows, others):
            for task in self.tasks(row, tasks):
                own, its = self.column(row, task), self.column(other, task)
                for score in () if own is None or its is None else own.scores:
                    if its is not None and score in its.scores and (not chosen or score in chosen):
                        yield Pair(row, other, task, score)

    def score_name(self, pair: Pair) -> str:
        column = self.column(pair.row, pair.task)
        name = f" {score_label(column, pair.score)}" if column is not None and len(column.scores) > 1 else ""
        return self.task(pair.row, pair.task) + name


@dataclass(frozen=True)
class Runs:
    """Records of one scale, found by row and task."""

    tables: Tables
    scale: Scale
    records: tuple[RunResult, ...]

    @classmethod
    def of_all(cls, benchmarks: Mapping[str, Benchmark], scale: Scale, records: Iterable[RunResult]) -> Self:
        """The records of this scale, with stand-ins for the tasks that have none."""
        kept = tuple(record for record in records if record.cell.scale == scale.id)
        run = {record.cell.task for record in kept}
        columns = [column for table in benchmarks.values() for column in table.columns_at(scale) if column.instead_of]
        instead = {one.instead_of: one.task for one in columns if one.task in run and one.instead_of not in run}
        tables = {name: table.narrowed(scale) for name, table in benchmarks.items()}
        return cls(Tables(tables, instead), scale, kept)

    @cached_property
    def _index(self) -> Index:
        return by_definition(self.records)

    @cached_property
    def _found(self) -> dict[tuple[At, str], tuple[RunResult, ...]]:
        return {}

    def _scale(self, at: At) -> Scale | None:
        """This scale as a row's table has it: tables of a paper may have encoders of their own there."""
        return {scale.id: scale for scale in self.tables.benchmark(at).scales}.get(self.scale.id)

    @cached_property
    def _gates(self) -> dict[tuple[str, str], Gate]:
        return {}

    def gate(self, at: At, task: str) -> Gate:
        """Whether scores of a row's table on a task are evidence at this scale."""
        if (at.benchmark, task) not in self._gates:
            benchmark, column = self.tables.benchmark(at), self.tables.column(at, task)
            scale = self._scale(at) or self.scale
            found = OPEN if column is None else gate_of(benchmark, column, scale, self._index)
            self._gates[at.benchmark, task] = found
        return self._gates[at.benchmark, task]

    def untuned(self, rows: Iterable[At], task: str) -> str:
        """Why it proves nothing to compare rows on a task: settings that have still to be chosen; empty otherwise."""
        names = []
        for at in rows:
            scale, column = self._scale(at), self.tables.column(at, task)
            if scale and column and self.tables.row(at) in self.tables.benchmark(at).untuned(column, scale):
                names.append(self.tables.row(at).name)
        return f"not tuned there yet: {', '.join(dict.fromkeys(names))}" if names else ""

    @cached_property
    def _failed(self) -> dict[tuple[At, str], str]:
        return {}

    def failed(self, at: At, task: str) -> str:
        """Why it proves nothing to beat a row on a task; empty where it has learned something, or nobody knows."""
        if (at, task) not in self._failed:
            floor, column = self.tables.floor(at), self.tables.column(at, task)
            found = ""
            if floor is not None and column is not None:
                yardstick = home(self.tables.benchmark(at)).yardstick
                found = failed(self.tables.row(at).name, self.paired(at, floor, task), yardstick, column)
            self._failed[at, task] = found
        return self._failed[at, task]

    def partial(self, tasks: Iterable[str]) -> list[str]:
        found = {record.cell.task for records in self._index.values() for record in records if is_partial(record)}
        return [self._names.get(task, task) for task in dict.fromkeys(tasks) if task in found]

    def stand_ins(self, tasks: Iterable[str]) -> list[str]:
        """Those of the tasks that stand in for another one, with its name."""
        stands = {own: task for task, own in self.tables.instead.items()}
        named = ((task, stands[task]) for task in dict.fromkeys(tasks) if task in stands)
        return [f"{self._names[task]} (for {self._names.get(other, other)})" for task, other in named]

    @cached_property
    def _names(self) -> dict[str, str]:
        """Task -> the name of its column, in the first table that has it."""
        columns = [column for benchmark in self.tables.benchmarks.values() for column in benchmark.columns]
        return {column.task: column.name for column in reversed(columns)}

    def of(self, at: At, task: str) -> tuple[RunResult, ...]:
        """The records of a row on a task, one a seed in the order of seeds."""
        if (at, task) not in self._found:
            benchmark, column = self.tables.benchmark(at), self.tables.column(at, task)
            scale, row = self._scale(at), self.tables.row(at)
            found: tuple[RunResult, ...] = ()
            if column is not None and scale is not None and scale.id in row.scales and scale.id in column.scales:
                found = select(benchmark, scale, row, column, self._index).records
            self._found[at, task] = found
        return self._found[at, task]

    def paired(self, row: At, other: At, task: str) -> list[tuple[RunResult, RunResult]]:
        return paired(self.of(row, task), self.of(other, task))

    def scores(self, at: At, task: str, score: str = "") -> Scores | None:
        """A score of a row's records on a task, the averaged one unless named; None where the table has none."""
        column = self.tables.column(at, task)
        return None if column is None else scores_of(self.of(at, task), score or column.averaged)

    def cost(self, at: At, task: str) -> Cost | None:
        column = self.tables.column(at, task)
        return None if column is None else measured_cost(self.tables.benchmark(at), column, self.of(at, task))
