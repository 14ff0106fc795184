"""Averages over a table's tasks, over our records: means of what single tasks give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.claims import At, AverageBetter
from reports.claims.asked import are_most, unjudged
from reports.claims.cells import Runs
from reports.claims.paired import mean_difference
from reports.evidence.inference import average_of, average_together
from reports.evidence.statistics import Estimate, mean
from reports.pages.text import number


@dataclass(frozen=True)
class _Table:
    """The rows of one table, and their rival there: on each of its tasks the rows' mean gain."""

    runs: Runs
    rows: tuple[At, ...]
    rival: At
    counts_failed: bool

    @property
    def place(self) -> str:
        return self.runs.tables.benchmark(self.rows[0]).place

    def name(self, task: str) -> str:
        return self.runs.tables.task(self.rows[0], task)

    @property
    def counted(self) -> tuple[str, ...]:
        """The tasks that enter: those that can be judged, where they are most of them; else all."""
        every = self.runs.tables.tasks(self.rows[0])
        counted = tuple(task for task in every if not self.runs.gate(self.rows[0], task).is_settled)
        return counted if are_most(counted, every) else every

    def why_not(self, task: str) -> str:
        """Why nothing may be concluded on a task, if so."""
        failed = "" if self.counts_failed else self.runs.failed(self.rival, task)
        return self.runs.gate(self.rows[0], task).why or failed or self.runs.untuned((*self.rows, self.rival), task)

    def in_words(self, found: Mapping[str, Estimate]) -> str:
        """The table's part of the sum, and of which tasks it is."""
        every, value = self.runs.tables.tasks(self.rows[0]), mean([gain.value or 0.0 for gain in found.values()])
        left_out = ", ".join(self.name(task) for task in every if task not in self.counted)
        part = f" without {left_out}" if left_out else ""
        if len(found) < len(self.counted):
            part = f" on {len(found)} of {len(every)} tasks"
        return f"{self.place} {number(value, '+')}{part}"

    def gain(self, task: str) -> Estimate | None:
        """The rows' mean gain on a task, paired by seed; None unless all of them ran."""
        column = self.runs.tables.column(self.rows[0], task)
        if column is None or self.runs.tables.column(self.rival, task) is None:
            return None
        pairs = [self.runs.paired(row, self.rival, task) for row in self.rows]
        return mean_difference(pairs, column.averaged) if all(pairs) else None


def average_margin(runs: Runs, relation: AverageBetter, rivals: Mapping[str, At]) -> Estimate | None:
    """The average above one rival of each table, mean over the table's rows, then over the tables.

    rivals: by benchmark, one of the relation's choices.
    Without what cannot be judged; no interval unless every other task of the tables was run, and nothing is
    concluded unless all of them are evidence. Tables share data, seed by seed: their errors are taken to go together.
    """
    averages: list[Estimate] = []
    texts: list[str] = []
    closed: dict[str, str] = {}
    is_whole = True
    for name, rival in rivals.items():
        rows = tuple(row for row in relation.rows if row.benchmark == name)
        table = _Table(runs, rows, rival, relation.over_failed)
        found = {task: gain for task in table.counted if (gain := table.gain(task)) is not None}
        is_whole = is_whole and len(found) == len(table.counted)
        if found:
            averages.append(average_of(tuple(found.values())))
            texts.append(table.in_words(found))
        lost = [task for task in table.counted if runs.gate(rows[0], task).is_settled]
        closed |= {table.name(task): why for task in (*lost, *found) if (why := table.why_not(task))}
    if not averages:
        return unjudged(None, list(closed.items())) if closed else None
    whole = average_together(averages, ", ".join(texts))
    if closed:
        return unjudged(whole, list(closed.items()))
    return whole if is_whole else replace(whole, interval=None, components=None)
