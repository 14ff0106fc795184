"""The cells that claims speak of: rows and columns of benchmarks, and their records, paired by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import product
from typing import Self

from benchmarks.claims import At
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.results import RunResult
from reports import ReportError
from reports.evidence.gate import OPEN, Gate, failed, gate_of, home
from reports.evidence.records import Index, by_definition, is_partial, paired, select
from reports.evidence.scores import score_label
from reports.evidence.traffic import Cost, measured_cost

_CORRECT = "Correct the paper's claims.py."


@dataclass(frozen=True)
class Pair:
    """Two rows on a task, and the score if one is compared."""

    row: At
    other: At
    task: str
    score: str = ""

    @property
    def rows(self) -> tuple[At, At]:
        return self.row, self.other


@dataclass(frozen=True)
class Tables:
    """Benchmarks by id. instead: a task without records -> the task that replaces it."""

    benchmarks: Mapping[str, Benchmark]
    instead: Mapping[str, str] = field(default_factory=dict)

    def benchmark(self, at: At) -> Benchmark:
        """The benchmark of a row; ReportError if it is unknown."""
        if at.benchmark not in self.benchmarks:
            known = ", ".join(self.benchmarks) or "none"
            raise ReportError(f"claims: expected a benchmark, one of {known}, found {at.benchmark!r}. {_CORRECT}")
        return self.benchmarks[at.benchmark]

    def row(self, at: At) -> Row:
        """The row; ReportError if its benchmark has no such row."""
        rows = {row.id: row for row in self.benchmark(at).rows}
        if at.row not in rows:
            expected = f"expected a row of {at.benchmark}, one of {', '.join(rows)}"
            raise ReportError(f"claims: {expected}, found {at.row!r}. {_CORRECT}")
        return rows[at.row]

    def floor(self, at: At) -> At | None:
        """The row that answers without learning: of the row's own table, or of the one that judges its columns."""
        return self._reference(at, home(self.benchmark(at)).yardstick.least)

    def idle(self, at: At) -> tuple[At, ...]:
        """The rows that do nothing of what a row's table compares, found in the same way."""
        names = home(self.benchmark(at)).yardstick.idle
        return tuple(row for name in names if (row := self._reference(at, name)) is not None)

    def _reference(self, at: At, name: str) -> At | None:
        tables = (self.benchmark(at), home(self.benchmark(at)))
        known = (table for table in tables if table.id in self.benchmarks and name != at.row)
        return next((At(table.id, name) for table in known if name in {row.id for row in table.rows}), None)

    def column(self, at: At, task: str) -> Column | None:
        return {column.task: column for column in self.benchmark(at).columns}.get(task)

    def task(self, at: At, task: str) -> str:
        """The name of a task's column."""
        column = self.column(at, task)
        return task if column is None else column.name

    def tasks(self, at: At, chosen: Iterable[str] = ()) -> tuple[str, ...]:
        """The chosen tasks, or all that are not replacements; each replaced if it has a replacement."""
        own = (column.task for column in self.benchmark(at).columns if not column.instead_of)
        return tuple(self.instead.get(task, task) for task in tuple(chosen) or own)

    def pairs(
        self, rows: Iterable[At], others: Iterable[At], tasks: Iterable[str] = (), scores: Iterable[str] = ()
    ) -> Iterator[Pair]:
        """Every row with every other one on every (chosen) task and score that both tables have."""
        chosen = tuple(scores)
        for row, other in product(rows, others):
            for task in self.tasks(row, tasks):
                columns = self.column(row, task), self.column(other, task)
                for score in () if columns[0] is None else columns[0].scores:
                    if columns[1] is not None and score in columns[1].scores and (not chosen or score in chosen):
                        yield Pair(row, other, task, score)

    def score_name(self, pair: Pair) -> str:
        column = self.column(pair.row, pair.task)
        name = f" {score_label(column, pair.score)}" if column is not None and len(column.scores) > 1 else ""
        return self.task(pair.row, pair.task) + name


@dataclass(frozen=True)
class Runs:
    """Records of one scale, by row and task. What is asked twice is computed once."""

    tables: Tables
    scale: Scale
    records: tuple[RunResult, ...]

    @classmethod
    def of_all(cls, benchmarks: Mapping[str, Benchmark], scale: Scale, records: Iterable[RunResult]) -> Self:
        """The records of this scale, with replacements for the tasks that have none."""
        kept = tuple(record for record in records if record.cell.scale == scale.id)
        run = {record.cell.task for record in kept}
        columns = [column for table in benchmarks.values() for column in table.columns_at(scale) if column.instead_of]
        instead = {one.instead_of: one.task for one in columns if one.task in run and one.instead_of not in run}
        tables = {name: table.narrowed(scale) for name, table in benchmarks.items()}
        return cls(Tables(tables, instead), scale, kept)

    @cached_property
    def _index(self) -> Index:
        return by_definition(self.records)

    def _scale(self, at: At) -> Scale | None:
        """This scale in a row's table: tables of one paper may have different encoders at it."""
        return {scale.id: scale for scale in self.tables.benchmark(at).scales}.get(self.scale.id)

    def gate(self, at: At, task: str) -> Gate:
        """Whether scores of a row's table on a task are evidence at this scale."""
        return self._gate(at.benchmark, task)

    @cached_property
    def _gate(self) -> Callable[[str, str], Gate]:
        def gate(name: str, task: str) -> Gate:
            at = At(name, "")
            benchmark, column = self.tables.benchmark(at), self.tables.column(at, task)
            return OPEN if column is None else gate_of(benchmark, column, self._scale(at) or self.scale, self._index)

        return cache(gate)

    def untuned(self, rows: Iterable[At], task: str) -> str:
        """Which rows still wait for tuned settings on a task, as a reason not to judge them; "" for none."""
        names = []
        for at in rows:
            scale, column = self._scale(at), self.tables.column(at, task)
            if scale and column and self.tables.row(at) in self.tables.benchmark(at).untuned(column, scale):
                names.append(self.tables.row(at).name)
        return f"not tuned there yet: {', '.join(dict.fromkeys(names))}" if names else ""

    @cached_property
    def failed(self) -> Callable[[At, str], str]:
        """(row, task) -> why it proves nothing to beat the row there; "" if it has learned something, or is unknown."""

        def reason(at: At, task: str) -> str:
            floor, column = self.tables.floor(at), self.tables.column(at, task)
            if floor is None or column is None:
                return ""
            yardstick = home(self.tables.benchmark(at)).yardstick
            return failed(self.tables.row(at).name, self.paired(at, floor, task), yardstick, column)

        return cache(reason)

    @cached_property
    def of(self) -> Callable[[At, str], tuple[RunResult, ...]]:
        """(row, task) -> its records, one a seed in the order of seeds."""

        def records(at: At, task: str) -> tuple[RunResult, ...]:
            column, scale, row = self.tables.column(at, task), self._scale(at), self.tables.row(at)
            if column is None or scale is None or scale.id not in row.scales or scale.id not in column.scales:
                return ()
            return select(self.tables.benchmark(at), scale, row, column, self._index).records

        return cache(records)

    def paired(self, row: At, other: At, task: str) -> list[tuple[RunResult, RunResult]]:
        return paired(self.of(row, task), self.of(other, task))

    def cost(self, at: At, task: str) -> Cost | None:
        column = self.tables.column(at, task)
        return None if column is None else measured_cost(self.tables.benchmark(at), column, self.of(at, task))

    def partial(self, tasks: Iterable[str]) -> list[str]:
        """The names of those tasks some of whose data were missing."""
        tasks_in_part = {record.cell.task for record in self.records if is_partial(record)}
        return [self._names.get(task, task) for task in dict.fromkeys(tasks) if task in tasks_in_part]

    def stand_ins(self, tasks: Iterable[str]) -> list[str]:
        """Those of the tasks that replace another one, with its name."""
        replaced = {own: task for task, own in self.tables.instead.items()}
        named = ((task, replaced[task]) for task in dict.fromkeys(tasks) if task in replaced)
        return [f"{self._names[task]} (for {self._names.get(other, other)})" for task, other in named]

    @cached_property
    def _names(self) -> dict[str, str]:
        """Task -> the name of its column, in the first table that has it."""
        columns = [column for benchmark in self.tables.benchmarks.values() for column in benchmark.columns]
        return {column.task: column.name for column in reversed(columns)}
