"""Bytes until a target: what a run sent until its score reached it, and the gain over another method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Literal

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.results import RunResult
from reports import ReportError
from reports.evidence.equations import numbers_of
from reports.evidence.published import PrintedCost, as_decimal, published_for
from reports.evidence.records import PAPER, Request
from reports.evidence.scores import best_by_seed, round_reaching
from reports.evidence.statistics import mean, printed
from reports.evidence.traffic import Cost, bytes_until, derived_cost, measured_cost, values_until

Kind = Literal["printed", "baseline"]
KINDS: tuple[Kind, ...] = ("baseline", "printed")
_SIGNS = {"stated/megabytes_nearly": "≈", "stated/megabytes_at_least": "≥", "stated/megabytes_below": "<"}


@dataclass(frozen=True)
class Attempt:
    """One run at a target: what it sent until then, or in all of its rounds where it does not reach the target."""

    is_reached: bool
    rounds: int
    values: int
    bytes: int

    @property
    def when(self) -> str:
        """In words; a run that does not reach the target is censored, not dropped."""
        return f"round {self.rounds}" if self.is_reached else f"not within {self.rounds} rounds"


def attempt(record: RunResult, score: str, target: float, directions: Sequence[str] = ("up",)) -> Attempt:
    """What a run needed to reach the target (as recorded), in these directions and all clients together."""
    reached = round_reaching(record, score, target)
    rounds = len(record.rounds) if reached is None else reached
    sent = values_until(record, rounds, directions), bytes_until(record, rounds, directions)
    return Attempt(reached is not None, rounds, *sent)


@dataclass(frozen=True)
class Sent:
    """What was sent until a target: rounds, numbers before and bytes after their codec.

    values: in any unit that both sides of a ratio share, such as bytes of the same numbers in fp32.
    """

    rounds: Fraction
    values: Fraction
    bytes: Fraction


def mean_sent(attempts: Sequence[Attempt]) -> Sent | None:
    """What the attempts sent, on average and exactly; None without one."""
    sums = (sum(getattr(found, name) for found in attempts) for name in ("rounds", "values", "bytes"))
    return Sent(*(Fraction(total, len(attempts)) for total in sums)) if attempts else None


@dataclass(frozen=True)
class Gain:
    """How many times fewer bytes, by fewer values a round (layers), fewer rounds and fewer bytes a value."""

    layers: Fraction
    rounds: Fraction
    precision: Fraction

    @property
    def total(self) -> Fraction:
        return self.layers * self.rounds * self.precision


def gain_over(baseline: Sent, method: Sent) -> Gain | None:
    """The method's gain, whose total is exactly the ratio of bytes; None where a side sends nothing."""
    if not (baseline.bytes and method.bytes):
        return None
    layers = (baseline.values / baseline.rounds) / (method.values / method.rounds)
    precision = (baseline.bytes / baseline.values) / (method.bytes / method.values)
    return Gain(layers, baseline.rounds / method.rounds, precision)


@dataclass(frozen=True)
class Outcome:
    """One method on one task and target.

    target: the mean over seeds, in the metric's unit; None where the baseline that sets it was not run. cost: None
    where the method was not run. attempts: one a seed that has a target. gain: over the baseline; None where one of the
    two was not run, or the method is censored. is_bound: the baseline is censored, so the gain is at least that.
    """

    row: Row
    column: Column
    kind: Kind
    target: float | None
    seeds: int
    cost: Cost | None
    attempts: tuple[Attempt, ...]
    gain: Gain | None = None
    is_bound: bool = False

    @property
    def reached(self) -> int:
        return sum(found.is_reached for found in self.attempts)

    @property
    def is_complete(self) -> bool:
        return bool(self.attempts) and self.reached == len(self.attempts)

    @property
    def sent(self) -> Sent | None:
        """Means over seeds; a seed that does not reach the target counts with all of its rounds."""
        return mean_sent(self.attempts)


@dataclass(frozen=True)
class Derived:
    """One method until a target: a round's bytes from shapes, rounds from the paper, and what follows from both.

    sent: all rounds. size_gb: of a round, rounded as in the paper; cost_gb: that times the rounds, as the paper
    computes; rounded_gain: ratio of such costs; gain: ratio of exact bytes. published: None for a row that is not
    printed, whose rounds are the baseline's.
    """

    row: Row
    sent: Sent
    size_gb: Decimal
    rounded_gain: Decimal
    gain: Gain
    published: PrintedCost | None

    @property
    def cost_gb(self) -> Decimal:
        return self.size_gb * as_decimal(self.sent.rounds)


@dataclass(frozen=True)
class Targets:
    """Outcomes of a request by kind of target and task, what the paper's own encoder gives, what the text states.

    stated: (row id, task) -> sign and megabytes, such as "≥" and 5000; nothing at the demo scale. ReportError where a
    record, an option or the published values are damaged.
    """

    request: Request

    @cached_property
    def baseline(self) -> Row:
        return self.request.rows_named("baseline")[0]

    @cached_property
    def outcomes(self) -> dict[tuple[Kind, str], tuple[Outcome, ...]]:
        pairs = product(KINDS, self.request.columns)
        return {(kind, column.task): tuple(self._outcomes(column, kind)) for kind, column in pairs}

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns in which a method was run, or all where none was."""
        run = (at for at in self.request.columns if any(found.seeds for found in self.outcomes["printed", at.task]))
        return tuple(run) or self.request.columns

    def _targets(self, column: Column, kind: Kind, baseline: Sequence[RunResult]) -> Mapping[int, float]:
        """By seed, as recorded: the printed target, or the best that the baseline scores after any round."""
        request = self.request
        if kind == "baseline":
            return best_by_seed(baseline, column.averaged)
        try:
            wanted = float(request.benchmark.view.options["targets"][column.task]) / metric(column.averaged).factor
        except KeyError:
            raise ReportError(f"{request.benchmark.id}: expected a target for {column.task}, found none.") from None
        rows = (baseline, *(request.records_of(row, column) for row in request.rows))
        return {record.cell.seed: wanted for records in rows for record in records}

    def _outcomes(self, column: Column, kind: Kind) -> Iterator[Outcome]:
        request, score = self.request, column.averaged
        baseline = replace(request, rows=(self.baseline,)).records_of(self.baseline, column)  # also where not shown
        targets, ways = self._targets(column, kind, baseline), request.benchmark.paper.directions

        def attempts(records: Sequence[RunResult]) -> tuple[Attempt, ...]:
            seeds = (record for record in records if record.cell.seed in targets)
            return tuple(attempt(record, score, targets[record.cell.seed], ways) for record in seeds)

        of_baseline = attempts(baseline)
        base, is_bound = mean_sent(of_baseline), not all(entry.is_reached for entry in of_baseline)
        target = metric(score).shown(mean(list(targets.values()))) if targets else None
        for row in request.rows:
            records = request.records_of(row, column)
            cost = measured_cost(request.benchmark, column, records, request.find)
            found = Outcome(row, column, kind, target, len(records), cost, attempts(records))
            if found.is_complete and found.sent is not None and base is not None:
                found = replace(found, gain=gain_over(base, found.sent), is_bound=is_bound)
            yield found

    @cached_property
    def derived(self) -> tuple[Derived, ...]:
        """Every method that sends something; none where bytes are not derived, or the paper prints no sizes."""
        request, numbers = self.request, numbers_of(self.request)
        place, gigabyte = request.benchmark.place, request.benchmark.paper.gigabyte
        if request.derive is None or not numbers.has_cost(place, self.baseline.id):
            return ()
        base_rounds = numbers.cost(place, self.baseline.id).rounds
        base = _derived_sent(request, self.baseline, base_rounds)
        found = []
        for row in request.rows if base is not None else ():
            published = numbers.cost(place, row.id) if numbers.has_cost(place, row.id) else None
            sent = _derived_sent(request, row, published.rounds if published else base_rounds)
            gain = gain_over(base, sent) if base and sent else None
            if base and sent and gain:
                size, base_size = (printed(as_decimal(one.bytes / one.rounds) / gigabyte) for one in (sent, base))
                ratio = base_size * as_decimal(base.rounds) / (size * as_decimal(sent.rounds))
                found.append(Derived(row, sent, size, ratio, gain, published))
        return tuple(found)

    @cached_property
    def stated(self) -> dict[tuple[str, str], tuple[str, float]]:
        values = published_for(self.request)
        places = product(self.request.columns, self.request.rows, _SIGNS.items())
        entries = ((row.id, at.task, sign, values.get((row.id, at.task, score))) for at, row, (score, sign) in places)
        return {(row, task): (sign, entry.value) for row, task, sign, entry in entries if entry is not None}


def _derived_sent(request: Request, row: Row, rounds: Fraction) -> Sent | None:
    """What a method sends in so many rounds, its numbers in the unit of their bytes in fp32; None where not derived."""
    in_fp32, coded = derived_cost(request, row.changed({"codec": "fp32"})), derived_cost(request, row)
    if in_fp32 is None or coded is None:
        return None
    return Sent(rounds, rounds * int(in_fp32.round_bytes), rounds * int(coded.round_bytes))


def is_comparable(request: Request) -> bool:
    """Whether measured bytes are comparable with what is stated: the paper's encoder and settings."""
    return request.scale.id == PAPER and not request.scale.changed
