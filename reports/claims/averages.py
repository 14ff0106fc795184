"""Averages over a table's tasks, over our records: sums of what single tasks give, by Satterthwaite's freedom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.claims import At
from reports.claims.asked import unjudged
from reports.claims.cells import Runs
from reports.claims.paired import gains, ratio_of
from reports.evidence.inference import estimate, resampled
from reports.evidence.statistics import Estimate, mean
from reports.pages.text import number


def weighted_sum(parts: Sequence[tuple[float, Estimate]], note: str = "") -> Estimate:
    """A sum of independent means, each with a weight; its freedom by Satterthwaite (1946).

    No interval where a part has no error.
    """
    known = [(weight, part.value, part.error, part.freedom) for weight, part in parts]
    value = math.fsum(weight * (part or 0.0) for weight, part, _, _ in known)
    n = min((part.n for _, part in parts), default=0)
    squares = [((weight * error) ** 2, freedom) for weight, _, error, freedom in known if error is not None]
    if len(squares) < len(parts):
        return Estimate(value, None, n, note)
    variance = math.fsum(square for square, _ in squares)
    spread = math.fsum(square**2 / freedom for square, freedom in squares)
    return estimate(value, math.sqrt(variance), variance**2 / spread if spread else math.inf, n, note)


@dataclass(frozen=True)
class _Table:
    """The rows of one table, and their rival there: on each of its tasks the rows' mean gain."""

    runs: Runs
    rows: tuple[At, ...]
    rival: At

    @property
    def place(self) -> str:
        return self.runs.tables.benchmark(self.rows[0]).place

    def name(self, task: str) -> str:
        return self.runs.tables.task(self.rows[0], task)

    @property
    def counted(self) -> tuple[str, ...]:
        """The tasks that enter: all but those whose split leaks, as scores measure no learning there."""

        def leaks(task: str) -> bool:
            column, gate = self.runs.tables.column(self.rows[0], task), self.runs.gate(self.rows[0], task)
            return bool(column and column.leak and column.leak in gate.why)

        return tuple(task for task in self.runs.tables.tasks(self.rows[0]) if not leaks(task))

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
        by_row = []
        records = []
        for row in self.rows:
            pairs = self.runs.paired(row, self.rival, task)
            found = zip(pairs, gains(pairs, column.averaged), strict=True)
            by_row.append({own.cell.seed: gain for (own, _), gain in found if gain is not None})
            records += [own for own, _ in pairs]
        seeds = sorted(set.intersection(*map(set, by_row)))
        if not seeds:
            return None
        values = [mean([of[seed] for of in by_row]) for seed in seeds]
        return resampled(values, ratio_of(records, column.averaged))


def average_margin(runs: Runs, rows: Sequence[At], rivals: Mapping[str, At]) -> Estimate | None:
    """The average above one rival of each table, mean over the rows.

    rivals: by benchmark. Without what leaks by declaration; no interval unless every other task of the tables was run,
    and nothing is concluded unless all of them are evidence. Tables are independent, as their clients are others.
    """
    parts: list[tuple[float, Estimate]] = []
    texts: list[str] = []
    closed: dict[str, str] = {}
    is_whole = True
    for name, rival in rivals.items():
        table = _Table(runs, tuple(row for row in rows if row.benchmark == name), rival)
        found = {task: gain for task in table.counted if (gain := table.gain(task)) is not None}
        is_whole = is_whole and len(found) == len(table.counted)
        if found:
            weight = len(table.rows) / len(found)
            parts += [(weight, gain) for gain in found.values()]
            closed |= {table.name(task): why for task in found if (why := runs.gate(table.rows[0], task).why)}
            texts.append(table.in_words(found))
    if not parts:
        return None
    whole = math.fsum(weight for weight, _ in parts)
    found_sum = weighted_sum([(weight / whole, part) for weight, part in parts], ", ".join(texts))
    if closed:
        return unjudged(found_sum, list(closed.items()))
    return found_sum if is_whole else replace(found_sum, interval=None, error=None)
