"""Every method on every task against two targets: the printed one, and what the baseline reaches in its last round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from benchmarks.record import RunRecord
from benchmarks.spec import Column, Row
from reports.cost import Cost, measure
from reports.errors import ReportError
from reports.gain import Gain, Sent, gain_over
from reports.page import Request
from reports.targets import Attempt, attempt, last_mean

Kind = Literal["printed", "baseline"]
KINDS: tuple[Kind, ...] = ("baseline", "printed")


@dataclass(frozen=True)
class Outcome:
    """One method on one task and target.

    target: as a fraction; None where the baseline that sets it was not run. attempts: one a seed, empty without a
    target. gain: over the baseline, None where the method or the baseline was not run, or the method is censored.
    """

    row: Row
    column: Column
    kind: Kind
    target: float | None
    seeds: tuple[int, ...]
    cost: Cost | None
    attempts: tuple[Attempt, ...]
    gain: Gain | None = None
    is_bound: bool = False  # the baseline is censored, so the gain is at least that

    @property
    def is_run(self) -> bool:
        """Whether a record of this cell exists."""
        return bool(self.seeds)

    @property
    def reached(self) -> int:
        """Seeds that reach the target."""
        return sum(found.is_reached for found in self.attempts)

    @property
    def is_complete(self) -> bool:
        """Whether every seed reaches the target; else the method is censored, if it was run."""
        return bool(self.attempts) and self.reached == len(self.attempts)

    @property
    def sent(self) -> Sent | None:
        """Means over seeds, those that do not reach the target with all of their rounds; None without an attempt."""
        return mean_sent(self.attempts)


def mean_sent(attempts: Sequence[Attempt]) -> Sent | None:
    """What the attempts sent, on average and exactly."""
    if not attempts:
        return None
    rounds, values, size = (
        Fraction(sum(getattr(found, name) for found in attempts), len(attempts))
        for name in ("rounds", "values", "bytes")
    )
    return Sent(rounds, values, size)


def baseline_of(request: Request) -> Row:
    """The row that gains are over, by the view's options, whether it is shown or not."""
    wanted = request.benchmark.view.options["baseline"]
    return next(row for row in request.benchmark.rows if row.id == wanted)


def _target(request: Request, column: Column, kind: Kind, baseline: Sequence[RunRecord]) -> float | None:
    """The target as a fraction; ReportError where the view's options lack a task's."""
    if kind == "baseline":
        return last_mean(baseline, column.averaged)
    try:
        return float(request.benchmark.view.options["targets"][column.task]) / 100
    except KeyError:
        raise ReportError(f"{request.benchmark.id}: expected a target for {column.task}, found none.") from None


def _outcomes(request: Request, column: Column, kind: Kind, baseline: Sequence[RunRecord]) -> tuple[Outcome, ...]:
    """The outcomes of one task and target in the order of the rows."""
    target = _target(request, column, kind, baseline)

    def attempts(records: Sequence[RunRecord]) -> tuple[Attempt, ...]:
        return () if target is None else tuple(attempt(record, column.averaged, target) for record in records)

    def outcome(row: Row) -> Outcome:
        records = request.records_of(row, column)
        seeds = tuple(record.cell.seed for record in records)
        return Outcome(row, column, kind, target, seeds, measure(records), attempts(records))

    its = attempts(baseline)
    return tuple(_with_gain(outcome(row), its) for row in request.rows)


def _with_gain(outcome: Outcome, baseline: Sequence[Attempt]) -> Outcome:
    """The outcome with its gain, if every seed reaches the target."""
    own, its = outcome.sent, mean_sent(baseline)
    if not outcome.is_complete or own is None or its is None:
        return outcome
    return replace(outcome, gain=gain_over(its, own), is_bound=not all(found.is_reached for found in baseline))


@dataclass(frozen=True)
class Outcomes:
    """All outcomes of a request, by kind of target and task."""

    request: Request
    by_target: dict[tuple[Kind, str], tuple[Outcome, ...]]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The tasks that were run, or all where none was."""
        run = [column for column in self.request.columns if any(found.is_run for found in self.of("printed", column))]
        return tuple(run) or self.request.columns

    def of(self, kind: Kind, column: Column) -> tuple[Outcome, ...]:
        """The outcomes of one task and target, in the order of the rows."""
        return self.by_target[kind, column.task]

    def at(self, kind: Kind, row: Row, column: Column) -> Outcome:
        """One outcome."""
        return next(found for found in self.of(kind, column) if found.row.id == row.id)


def find_outcomes(request: Request) -> Outcomes:
    """Every outcome; ReportError where a record or an option is damaged."""
    row = baseline_of(request)
    reference = replace(request, rows=(row,))  # gains need it even where it is not shown
    return Outcomes(
        request,
        {
            (kind, column.task): _outcomes(request, column, kind, reference.records_of(row, column))
            for kind in KINDS
            for column in request.columns
        },
    )
