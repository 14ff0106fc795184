"""The cells in claims: rows and columns of benchmarks, and their records, paired by seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, Self

from benchmarks.claims import At
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.results import ROUND, Find, RunResult, among
from benchmarks.run_config import RunConfig
from reports import ReportError
from reports.evidence.caching import once
from reports.evidence.gate import Gate, failed, gate_of, home
from reports.evidence.records import CellRecords, Index, is_partial, newest_by_place, paired, select
from reports.evidence.scores import score_label
from reports.evidence.traffic import Cost, measured_cost


class Pair(NamedTuple):
    """Two rows on a task, and the score if one is compared."""

    row: At
    other: At
    task: str
    score: str = ""


@dataclass(frozen=True)
class Tables:
    """Benchmarks by id.

    instead: a task without records -> the task that replaces it. is_measured: they are of runs, where no comparison
    counts twice: a task has one score in a claim that names none, and a row that is another one of the claim with
    another codec adds none.
    """

    benchmarks: Mapping[str, Benchmark]
    instead: Mapping[str, str] = field(default_factory=dict)
    is_measured: bool = False

    def benchmark(self, at: At) -> Benchmark:
        """The benchmark of a row; ReportError if it is unknown."""
        return _named(self.benchmarks, at.benchmark, "a benchmark")

    def row(self, at: At) -> Row:
        """The row; ReportError if its benchmark has no such row."""
        table = self.benchmark(at)
        rows = {row.id: row for row in (*table.rows, *table.without_training)}
        return _named(rows, at.row, f"a row of {at.benchmark}")

    def floor(self, at: At) -> At | None:
        """The row that answers without learning, from the row's table or from the table that judges its columns."""
        return self._reference(at, home(self.benchmark(at)).yardstick.least)

    def idle(self, at: At) -> tuple[At, ...]:
        """The rows without any of the compared treatments, from the same tables."""
        names = home(self.benchmark(at)).yardstick.idle
        return tuple(row for name in names if (row := self._reference(at, name)) is not None)

    def _reference(self, at: At, name: str) -> At | None:
        tables = (self.benchmark(at), home(self.benchmark(at)))
        given = (table for table in tables if table.id in self.benchmarks and name != at.row)
        return next((At(table.id, name) for table in given if name in {row.id for row in table.rows}), None)

    def column(self, at: At, task: str) -> Column | None:
        return {column.task: column for column in self.benchmark(at).columns}.get(task)

    def task(self, at: At, task: str) -> str:
        """The name of a task's column."""
        column = self.column(at, task)
        return task if column is None else column.name

    def tasks(self, at: At, chosen: Iterable[str] = ()) -> tuple[str, ...]:
        """The chosen tasks, or all that are not replacements; each replaced if it has a replacement."""
        every = (column.task for column in self.benchmark(at).columns if not column.instead_of)
        return tuple(self.instead.get(task, task) for task in tuple(chosen) or every)

    def costed(self, at: At, task: str) -> tuple[At, str]:
        """The row and task of the runs that determine a row's cost: its earlier runs, if it has any."""
        stage = self.benchmark(at).stage
        return (at, task) if stage is None else (At(stage.benchmark.id, at.row), stage.tasks[task])

    def independent(self, rows: Iterable[At]) -> tuple[At, ...]:
        """The rows; of runs, without those that are another one of them with a codec."""
        every = tuple(rows)
        plain = [(at.benchmark, self.row(at).changes) for at in every]

        def is_repeated(at: At) -> bool:
            changes = self.row(at).changes
            without = {name: value for name, value in changes.items() if name != "codec"}
            return "codec" in changes and (at.benchmark, without) in plain

        return tuple(at for at in every if not (self.is_measured and is_repeated(at)))

    def pairs(
        self, rows: Iterable[At], others: Iterable[At], tasks: Iterable[str] = (), scores: Iterable[str] = ()
    ) -> Iterator[Pair]:
        """Every row with every other one on every (chosen) task and score that both tables have.

        A score may be of some clients, such as "test/f1@worst".
        """
        chosen = tuple(scores)
        for row, other in product(self.independent(rows), self.independent(others)):
            for task in self.tasks(row, tasks):
                columns = self.column(row, task), self.column(other, task)
                of_row, of_other = (_scores(column, chosen) if column else () for column in columns)
                both = [score for score in of_row if score in of_other]
                shared = [each for score in both for each in chosen or (score,) if each.partition("@")[0] == score]
                primary = columns[0].primary or columns[0].averaged if columns[0] else ""
                is_one = self.is_measured and not chosen and primary in shared
                yield from (Pair(row, other, task, score) for score in ([primary] if is_one else shared))

    def score_name(self, pair: Pair) -> str:
        """The column's name with the score's."""
        column = self.column(pair.row, pair.task)
        return pair.task if column is None else f"{column.name} {score_label(column, pair.score)}"


def _scores(column: Column, chosen: tuple[str, ...]) -> tuple[str, ...]:
    """A column's scores; those shown next to them if a claim names only such ones."""
    is_in = not chosen or any(each.partition("@")[0] in column.scores for each in chosen)
    return column.scores if is_in else column.extra


def _named(entries: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in entries:
        names = ", ".join(entries) or "none"
        raise ReportError(f"claims: expected {what}, one of {names}, found {name!r}. Correct the paper's claims.py.")
    return entries[name]


@dataclass(frozen=True)
class Runs:
    """Records of one scale, by row and task.

    score_at: the scored round (`reports.evidence.paired.rule_for`). seeds: task -> the seeds used; {} for all.
    """

    tables: Tables
    scale: Scale
    records: tuple[RunResult, ...]
    score_at: str = "chosen"
    seeds: Mapping[str, range] = field(default_factory=dict)

    @classmethod
    def of_all(cls, benchmarks: Mapping[str, Benchmark], scale: Scale, records: Iterable[RunResult]) -> Self:
        """The records of this scale, with replacements for the tasks that have none."""
        kept = tuple(record for record in records if record.cell.scale == scale.id)
        run = {record.cell.task for record in kept}
        columns = [column for table in benchmarks.values() for column in table.columns_at(scale) if column.instead_of]
        instead = {one.instead_of: one.task for one in columns if one.task in run and one.instead_of not in run}
        tables = {name: replace(table, columns=table.columns_at(scale)) for name, table in benchmarks.items()}
        return cls(Tables(tables, instead, is_measured=True), scale, kept)

    @cached_property
    def _find(self) -> Find:
        return among(self.records)

    @cached_property
    def _index(self) -> Index:
        return newest_by_place(self.records)

    def scale_in(self, at: At) -> Scale | None:
        """This scale in a row's table: tables of one paper may have different encoders at it."""
        return {scale.id: scale for scale in self.tables.benchmark(at).scales}.get(self.scale.id)

    def gate(self, at: At, task: str) -> Gate:
        """Whether scores of a row's table on a task are evidence at this scale."""
        yardstick = self.tables.row(at).yardstick
        return self._gate(At(at.benchmark, yardstick.row if yardstick else ""), task)

    @once
    def _gate(self, judging: At, task: str) -> Gate:
        """The gate by a table's yardstick, or by the yardstick of its rows with the judging reference."""
        benchmark, column = self.tables.benchmark(judging), self.tables.column(judging, task)
        yardsticks = (row.yardstick for row in benchmark.rows if row.yardstick and row.yardstick.row == judging.row)
        if column is None:
            return Gate()
        return gate_of(benchmark, column, self.scale_in(judging) or self.scale, self._index, next(yardsticks, None))

    def untuned(self, rows: Iterable[At], task: str) -> str:
        """The rows without tuned settings on a task, as a reason not to judge them; "" if all are tuned."""
        names = []
        for at in rows:
            scale, column, row = self.scale_in(at), self.tables.column(at, task), self.tables.row(at)
            open_rows = self.tables.benchmark(at).untuned(column, scale) if scale and column else ()
            if (row.corrects or row.id) in {each.id for each in open_rows}:
                names.append(row.name)
        return f"not tuned there yet: {', '.join(dict.fromkeys(names))}" if names else ""

    @once
    def failed(self, at: At, task: str) -> str:
        """Why beating the row there proves nothing; "" if it has learned something, or if that is unknown."""
        floor, column = self.tables.floor(at), self.tables.column(at, task)
        if floor is None or column is None:
            return ""
        yardstick = home(self.tables.benchmark(at)).yardstick
        return failed(self.tables.row(at).name, self.paired(at, floor, task), yardstick, column)

    def _place(self, at: At, task: str) -> tuple[Row, Column, Scale] | None:
        """A row, a column and the scale; None if the table lacks one of them."""
        column, scale, row = self.tables.column(at, task), self.scale_in(at), self.tables.row(at)
        if column is None or scale is None or scale.id not in row.scales or scale.id not in column.scales:
            return None
        return row, column, scale

    @once
    def cell(self, at: At, task: str) -> RunConfig | None:
        """The configuration of a row on a task with seed 0; None if the scale lacks it."""
        place = self._place(at, task)
        return None if place is None else self.tables.benchmark(at).cell(*place, 0)

    def of(self, at: At, task: str) -> tuple[RunResult, ...]:
        """The records of a row on a task, one per seed, in the order of seeds."""
        return self._selected(at, task).records

    @once
    def _selected(self, at: At, task: str) -> CellRecords:
        place = self._place(at, task)
        if place is None:
            return CellRecords()
        row, column, scale = place
        chosen = select(self.tables.benchmark(at), scale, row, column, self._index)

        def counted(records: Iterable[RunResult]) -> tuple[RunResult, ...]:
            return tuple(record for record in records if not self.seeds or record.cell.seed in self.seeds.get(task, ()))

        return replace(chosen, records=counted(chosen.records), diverged=counted(chosen.diverged))

    def paired(self, row: At, other: At, task: str) -> list[tuple[RunResult, RunResult]]:
        """The records of two rows by seed. A diverged run scores as the answer without learning, if that was run."""
        return paired(self._scored(row, task), self._scored(other, task))

    def _scored(self, at: At, task: str) -> tuple[RunResult, ...]:
        return (*self.of(at, task), *self._instead(at, task))

    def _instead(self, at: At, task: str) -> tuple[RunResult, ...]:
        """The records of the answer without learning that score in place of a row's diverged runs."""
        floor, column = self.tables.floor(at), self.tables.column(at, task)
        seeds = {record.cell.seed for record in self._selected(at, task).diverged}
        if not seeds or floor is None or column is None or column.evaluation == ROUND:
            return ()
        return tuple(record for record in self.of(floor, task) if record.cell.seed in seeds)

    def divergence(self, rows: Iterable[At], task: str) -> str:
        """The rows' diverged runs that score as the answer without learning, as text; "" without any."""
        counts = {at: len(self._instead(at, task)) for at in rows}
        texts = (
            f"{self.tables.row(at).name}: {count} diverged, scored as {self.tables.row(floor).name}"
            for at, count in counts.items()
            if count and (floor := self.tables.floor(at))
        )
        return "; ".join(dict.fromkeys(texts))

    def cost(self, at: At, task: str) -> Cost | None:
        column = self.tables.column(at, task)
        if column is None:
            return None
        return measured_cost(self.tables.benchmark(at), column, self.of(at, task), self._find)

    def partial(self, tasks: Iterable[str]) -> list[str]:
        """The names of tasks with partly missing data."""
        tasks_in_part = {record.cell.task for record in self.records if is_partial(record)}
        return [self._names.get(task, task) for task in dict.fromkeys(tasks) if task in tasks_in_part]

    def stand_ins(self, tasks: Iterable[str]) -> list[str]:
        """The tasks that replace another one, with its name."""
        replaced = {task: other for other, task in self.tables.instead.items()}
        named = ((task, replaced[task]) for task in dict.fromkeys(tasks) if task in replaced)
        return [f"{self._names[task]} (for {self._names.get(other, other)})" for task, other in named]

    @cached_property
    def _names(self) -> dict[str, str]:
        """Task -> the name of its column, in the first table that has it."""
        columns = [column for benchmark in self.tables.benchmarks.values() for column in benchmark.columns]
        return {column.task: column.name for column in reversed(columns)}
