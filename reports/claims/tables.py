"""The benchmarks that claims speak of, and the cells that a relation pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from benchmarks.claims import At
from benchmarks.spec import Benchmark, Column, Row
from reports.errors import ReportError
from reports.layout import score_label


@dataclass(frozen=True)
class Pair:
    """Two rows on a task, and the score where one is compared."""

    row: At
    other: At
    task: str
    score: str = ""


@dataclass(frozen=True)
class Tables:
    """Benchmarks by id."""

    benchmarks: Mapping[str, Benchmark]

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

    def column(self, at: At, task: str) -> Column | None:
        """The column of a task, None where the table lacks it."""
        return {column.task: column for column in self.benchmark(at).columns}.get(task)

    def task(self, at: At, task: str) -> str:
        """A task's name as the table's header prints it."""
        column = self.column(at, task)
        return task if column is None else column.name

    def task_name(self, task: str) -> str:
        """A task's name as the first table that has it prints it."""
        columns = (column for benchmark in self.benchmarks.values() for column in benchmark.columns)
        return next((column.name for column in columns if column.task == task), task)

    def tasks(self, at: At, chosen: Iterable[str] = ()) -> tuple[str, ...]:
        """The chosen tasks, all of the table where none is named."""
        return tuple(chosen) or tuple(column.task for column in self.benchmark(at).columns)

    def pairs(
        self, rows: Iterable[At], others: Iterable[At], tasks: Iterable[str] = (), scores: Iterable[str] = ()
    ) -> Iterator[Pair]:
        """Every row beside every other one on every (chosen) task and score that both tables print."""
        chosen, others = tuple(scores), tuple(others)
        for row in rows:
            for other in others:
                for task in self.tasks(row, tasks):
                    own, its = self.column(row, task), self.column(other, task)
                    for score in () if own is None or its is None else own.scores:
                        if its is not None and score in its.scores and (not chosen or score in chosen):
                            yield Pair(row, other, task, score)

    def score_name(self, pair: Pair) -> str:
        """The task, with the score where the table prints several."""
        column = self.column(pair.row, pair.task)
        several = column is not None and len(column.scores) > 1
        return self.task(pair.row, pair.task) + (f" {score_label(pair.score)}" if several else "")
