"""Bytes to a score: every method on every task against the printed target, and the best that the baseline reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Literal

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.results import RunResult
from reports import ReportError
from reports.evidence.equations import Derived, derive_costs
from reports.evidence.published import published_for
from reports.evidence.records import PAPER, Request
from reports.evidence.scores import best_by_seed, round_reaching
from reports.evidence.statistics import mean
from reports.evidence.traffic import Cost, Gain, Sent, bytes_until, gain_over, measured_cost, values_until

Kind = Literal["printed", "baseline"]
KINDS: tuple[Kind, ...] = ("baseline", "printed")
_SIGNS = {"stated/megabytes_nearly": "≈", "stated/megabytes_at_least": "≥", "stated/megabytes_below": "<"}


@dataclass(frozen=True)
class Attempt:
    """One run at a target: what it sent until there, or in all of its rounds where it is not reached."""

    is_reached: bool
    rounds: int
    values: int
    bytes: int

    @property
    def when(self) -> str:
        """In words; a run that does not reach the target is censored, not dropped."""
        return f"round {self.rounds}" if self.is_reached else f"not within {self.rounds} rounds"


def attempt(record: RunResult, score: str, target: float, directions: Sequence[str] = ("up",)) -> Attempt:
    """The run's way to the target (as recorded), in these directions and all clients together."""
    reached = round_reaching(record, score, target)
    rounds = len(record.rounds) if reached is None else reached
    sent = values_until(record, rounds, directions), bytes_until(record, rounds, directions)
    return Attempt(reached is not None, rounds, *sent)


def mean_sent(attempts: Sequence[Attempt]) -> Sent | None:
    """What the attempts sent, on average and exactly; None without one."""
    if not attempts:
        return None
    sums = (sum(getattr(found, name) for found in attempts) for name in ("rounds", "values", "bytes"))
    return Sent(*(Fraction(total, len(attempts)) for total in sums))


@dataclass(frozen=True)
class Outcome:
    """One method on one task and target.

    targets: by seed, as recorded; empty where the baseline that sets them was not run. attempts: one a seed that has a
    target. gain: over the baseline, None where the method or the baseline was not run, or the method is censored.
    """

    row: Row
    column: Column
    kind: Kind
    targets: Mapping[int, float]
    seeds: tuple[int, ...]
    cost: Cost | None
    attempts: tuple[Attempt, ...]
    gain: Gain | None = None
    is_bound: bool = False  # the baseline is censored, so the gain is at least that

    @property
    def is_run(self) -> bool:
        return bool(self.seeds)

    @property
    def target_shown(self) -> float | None:
        """The mean over seeds, in the metric's unit."""
        return metric(self.column.averaged).shown(mean(list(self.targets.values()))) if self.targets else None

    @property
    def reached(self) -> int:
        return sum(found.is_reached for found in self.attempts)

    @property
    def is_complete(self) -> bool:
        return bool(self.attempts) and self.reached == len(self.attempts)

    @property
    def sent(self) -> Sent | None:
        """Means over seeds, those that do not reach the target with all of their rounds; None without an attempt."""
        return mean_sent(self.attempts)


@dataclass(frozen=True)
class Stated:
    """What the text states of a method on a task: about, at least or less than so many megabytes."""

    row: Row
    column: Column
    sign: str
    megabytes: float

    @property
    def text(self) -> str:
        """As "≥ 5000 MB"."""
        return f"{self.sign} {self.megabytes:g} MB"


@dataclass(frozen=True)
class Targets:
    """Outcomes of a request by kind of target and task, what the paper's own encoder gives, what the text states."""

    request: Request
    baseline: Row  # that gains are over
    by_target: dict[tuple[Kind, str], tuple[Outcome, ...]]
    derived: tuple[Derived, ...]
    stated: tuple[Stated, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        run = [column for column in self.request.columns if any(found.is_run for found in self.of("printed", column))]
        return tuple(run) or self.request.columns

    def of(self, kind: Kind, column: Column) -> tuple[Outcome, ...]:
        return self.by_target[kind, column.task]

    def at(self, kind: Kind, row: Row, column: Column) -> Outcome:
        return next(found for found in self.of(kind, column) if found.row.id == row.id)


def _targets(request: Request, column: Column, kind: Kind, baseline: Sequence[RunResult]) -> Mapping[int, float]:
    """Of each seed: the printed target, or the best that the baseline scores after any round."""
    if kind == "baseline":
        return best_by_seed(baseline, column.averaged)
    try:
        wanted = float(request.benchmark.view.options["targets"][column.task]) / metric(column.averaged).factor
    except KeyError:
        raise ReportError(f"{request.benchmark.id}: expected a target for {column.task}, found none.") from None
    rows = (baseline, *(request.records_of(row, column) for row in request.rows))
    return {record.cell.seed: wanted for records in rows for record in records}


def _outcomes(request: Request, column: Column, kind: Kind, baseline: Sequence[RunResult]) -> tuple[Outcome, ...]:
    targets, directions = _targets(request, column, kind, baseline), request.benchmark.paper.directions

    def attempts(records: Sequence[RunResult]) -> tuple[Attempt, ...]:
        seeds = ((record, targets.get(record.cell.seed)) for record in records)
        return tuple(attempt(one, column.averaged, target, directions) for one, target in seeds if target is not None)

    its = attempts(baseline)
    found = []
    for row in request.rows:
        records = request.records_of(row, column)
        seeds, cost = tuple(record.cell.seed for record in records), measured_cost(request.benchmark, column, records)
        outcome = Outcome(row, column, kind, targets, seeds, cost, attempts(records))
        own, base = outcome.sent, mean_sent(its)
        if outcome.is_complete and own is not None and base is not None:
            is_bound = not all(entry.is_reached for entry in its)
            outcome = replace(outcome, gain=gain_over(base, own), is_bound=is_bound)
        found.append(outcome)
    return tuple(found)


def find_targets(request: Request) -> Targets:
    """Bytes until both targets; ReportError where a record, an option or the published values are damaged."""
    (row,) = request.rows_named("baseline")
    reference = replace(request, rows=(row,))  # gains need it even where it is not shown
    pairs = [(kind, column) for kind in KINDS for column in request.columns]
    its = {column.task: reference.records_of(row, column) for column in request.columns}
    found = {(kind, column.task): _outcomes(request, column, kind, its[column.task]) for kind, column in pairs}
    return Targets(request, row, found, derive_costs(request), stated_of(request))


def is_comparable(request: Request) -> bool:
    """Whether our bytes may be held against what is stated: the paper's encoder and settings."""
    return request.scale.id == PAPER and not request.scale.changed


def stated_of(request: Request) -> tuple[Stated, ...]:
    """What is stated of the rows and columns shown: never at the demo scale."""
    values = published_for(request)
    places = product(request.columns, request.rows, _SIGNS.items())
    known = ((row, column, sign, values.get((row.id, column.task, score))) for column, row, (score, sign) in places)
    return tuple(Stated(row, column, sign, entry.value) for row, column, sign, entry in known if entry is not None)
