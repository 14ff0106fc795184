"""Differences of rows over seeds: in percent of the other row, of several rows together, and of table averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.claims import At, AverageBetter
from benchmarks.results import RunResult
from reports.claims.cells import Runs
from reports.claims.criterion import Evidence, evidence
from reports.claims.hypothesis import is_majority
from reports.evidence.inference import average_of, average_together, is_flat, resampled, scaled
from reports.evidence.paired import Pairs, difference, gains, paired_error, resplit_ratio
from reports.evidence.scores import known, scores_of
from reports.evidence.statistics import Estimate, mean, sample_sd, welch_test
from reports.pages.text import number


def relative_difference(pairs: Pairs, score: str) -> Estimate:
    """By how much the first records of pairs are better, in percent of the second ones' mean, taken as exact."""
    found, values = difference(pairs, score), known(scores_of([its for _, its in pairs], score).at())
    level = abs(mean(values)) if values else 0.0
    if not level:
        return Estimate(None, None, found.n, found.note)
    by = 100 / level
    return replace(
        found,
        value=None if found.value is None else found.value * by,
        interval=None if found.interval is None else (found.interval[0] * by, found.interval[1] * by),
        components=None if found.components is None else scaled(found.components, by),
    )


def unpaired_p(pairs: Pairs, score: str) -> Estimate:
    """Two-sided p of Welch's t test of both sides' scores at the chosen round, with seeds as independent draws.

    Papers do it so. No value below two seeds, or if no score varies.
    """
    own, its = (known(scores_of([pair[side] for pair in pairs], score).at()) for side in (0, 1))
    sds, n = [sample_sd(own), sample_sd(its)], [len(own), len(its)]
    spread = [sd for sd in sds if sd is not None]
    if len(spread) < 2 or not any(spread):
        return Estimate(None, None, min(n))
    t, freedom, p = welch_test(mean(own) - mean(its), spread, n)
    note = f"p = {number(p, places=4)}: Welch's t = {number(t)} with {number(freedom)} degrees of freedom"
    return Estimate(p, None, min(n), note)


def unpaired_error(records: Sequence[RunResult], score: str) -> float | None:
    """The sampling error of a difference to another score on the same test sets, as if that had other examples."""
    found = scores_of(records, score)
    return None if found.error is None or None in found.errors else found.error * 2**0.5


def mean_difference(of_rows: Sequence[Pairs], score: str) -> Estimate | None:
    """By how much several rows are better than one rival on average, over the seeds that all of them have.

    Redrawn splits are averaged seed by seed. Where seeds share their test set, errors are added as if they were fully
    correlated, which is wider. None without a shared seed.
    """
    shared = set.intersection(*({own.cell.seed for own, _ in pairs} for pairs in of_rows))
    if not shared:
        return None
    kept = [[pair for pair in pairs if pair[0].cell.seed in shared] for pairs in of_rows]
    if len(kept) == 1:
        return difference(kept[0], score)
    if ratio := resplit_ratio([own for pairs in kept for own, _ in pairs]):
        by_row = [gains(pairs, score) for pairs in kept]
        values = [None if None in row else mean(known(row)) for row in zip(*by_row, strict=True)]
        found = resampled(values, ratio)
        if not is_flat(found):
            return found
        floors = [paired_error(pairs, score) for pairs in kept]
        return resampled(values, ratio, floor=None if None in floors else mean(known(floors)))
    return average_together([difference(pairs, score) for pairs in kept])


def average_margin(runs: Runs, relation: AverageBetter, rivals: Mapping[str, At]) -> Evidence | None:
    """The average above one rival of each table: mean over the table's rows, then over the tables.

    Columns that cannot be judged are left out. There is no interval unless every other task of the tables was run, and
    nothing is concluded unless all of them are evidence. Tables share data seed by seed: their errors are taken as
    fully correlated. rivals: benchmark id -> one of the relation's choices.
    """
    averages, texts, closed, is_complete = [], [], {}, True
    for name, rival in rivals.items():
        rows = tuple(row for row in relation.rows if row.benchmark == name)
        every = runs.tables.tasks(rows[0])
        judged = tuple(task for task in every if not runs.gate(rows[0], task).is_settled)
        counted = judged if is_majority(judged, every) else every
        gains_by_task = {task: gain for task in counted if (gain := _gain(runs, rows, rival, task)) is not None}
        is_complete = is_complete and len(gains_by_task) == len(counted)
        if gains_by_task:
            averages.append(average_of(tuple(gains_by_task.values())))
            texts.append(_part(runs, rows[0], every, counted, gains_by_task))
        for task in (*(task for task in counted if runs.gate(rows[0], task).is_settled), *gains_by_task):
            failed = "" if relation.over_failed else runs.failed(rival, task)
            if why := runs.gate(rows[0], task).why or failed or runs.untuned((*rows, rival), task):
                closed[runs.tables.task(rows[0], task)] = why
    reasons = tuple(closed.items())
    if not averages:
        return evidence(None, reasons=reasons) if closed else None
    whole = average_together(averages, ", ".join(texts))
    if is_complete or closed:
        return evidence(whole, reasons=reasons)
    return evidence(whole, interval=None, components=None)


def _gain(runs: Runs, rows: Sequence[At], rival: At, task: str) -> Estimate | None:
    """The rows' mean gain on a task, paired by seed; None unless all of them ran."""
    column = runs.tables.column(rows[0], task)
    if column is None or runs.tables.column(rival, task) is None:
        return None
    pairs = [runs.paired(row, rival, task) for row in rows]
    return mean_difference(pairs, column.averaged) if all(pairs) else None


def _part(runs: Runs, row: At, every: Sequence[str], counted: Sequence[str], found: Mapping[str, Estimate]) -> str:
    """A table's part of the sum in words, with the tasks that it is of."""
    place, value = runs.tables.benchmark(row).place, mean([gain.value or 0.0 for gain in found.values()])
    left_out = ", ".join(runs.tables.task(row, task) for task in every if task not in counted)
    part = f" without {left_out}" if left_out else ""
    if len(found) < len(counted):
        part = f" on {len(found)} of {len(every)} tasks"
    return f"{place} {number(value, '+')}{part}"
