"""Relations on our records at one scale: paired by seed, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.claims import At, AtMost, AverageBetter, Cheaper, Reaches, Target
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark
from reports.audit.finding import Numbers
from reports.claims.averages import average_margin
from reports.claims.estimate import Estimate, censored, exact, over_seeds, ratio_over_seeds
from reports.claims.relations import Measure
from reports.claims.runs import Runs, in_words, last_score, reached, sampling_error
from reports.claims.tables import Pair, Tables
from reports.cost import measure as cost_of
from reports.errors import ReportError
from reports.layout import number, score_label
from reports.page import Derive, request_for
from reports.statistics import mean
from reports.targets import bytes_until, round_reaching, round_scores
from reports.views.costs.traffic import derived_run

PAPER = "paper"  # the scale at which a paper's absolute targets mean something
_MACHINE = ("device", "precision", "threads")  # what the last bits of a result hang on


@dataclass(frozen=True)
class InRecords:
    """A Source of records."""

    runs: Runs
    published: Mapping[str, Numbers]  # a paper's id -> its numbers, for limits that are given in bytes
    derive: Callable[[Benchmark], Derive] | None = None  # what a benchmark's rounds send, for bytes of whole runs

    @property
    def tables(self) -> Tables:
        """The benchmarks."""
        return self.runs.tables

    def difference(self, pair: Pair, measure: Measure, relative: bool) -> Estimate | None:
        """Of last scores, last losses, or rounds until the other's last score of the same seed."""
        found = self.runs.paired(pair.row, pair.other, pair.task)
        if not found:
            return None
        if measure == "loss":
            losses = [(own.rounds[-1].train_loss, its.rounds[-1].train_loss) for own, its in found]
            return over_seeds([None if None in both else both[1] - both[0] for both in losses])  # type: ignore[operator]
        if measure == "rounds":
            return _fewer_rounds(found, pair.score)
        values, errors = zip(*(_score_difference(own, its, pair.score, relative) for own, its in found), strict=True)
        return over_seeds(values, errors)

    def average_margin(self, relation: AverageBetter) -> Estimate | None:
        """By stratified bootstrap."""
        return average_margin(self.runs, relation)

    def _target(self, target: Target, task: str) -> tuple[float, str] | None:
        """The target as a fraction, and whose it is; None where its reference was not run."""
        if self.runs.scale.id == PAPER:
            percent = target.percent[task]
            return percent / 100, f"target {percent:g}"
        scores = [last_score(record, target.score) for record in self.runs.of(target.reference, task)]
        known = [score for score in scores if score is not None]
        if not known:
            return None
        name = self.tables.row(target.reference).name
        return mean(known), f"target {number(100 * mean(known))}, {name}'s last"

    def _limit(self, relation: Reaches, record: RunRecord, task: str) -> int:
        """How many of a run's rounds count."""
        rounds = len(record.rounds) if relation.within_rounds is None else relation.within_rounds
        if relation.below_bytes is None:
            return rounds
        limit = self._byte_limit(relation, relation.below_bytes, task)
        return sum(bytes_until(record, count) < limit for count in range(1, rounds + 1))

    def _byte_limit(self, relation: Reaches, limit: float, task: str) -> float:
        """The limit of the paper's encoder, as the same share of a round of the reference with another one."""
        reference = relation.target.reference
        cost = cost_of(self.runs.of(reference, task))
        if self.runs.scale.id == PAPER or cost is None:
            return limit
        if relation.sizes is None:
            raise ReportError("claims: expected the printed sizes of a round beside a limit in bytes, found none.")
        paper = self.tables.benchmark(reference).paper
        numbers = self.published.get(paper.id, Numbers({}))
        printed = numbers.at(relation.sizes.table, reference.printed or reference.row, relation.sizes.column)
        return limit / (float(printed) * paper.gigabyte) * cost.round_bytes

    def above_target(self, relation: Reaches, row: At, task: str) -> Estimate | None:
        """The best score of the rounds that count less the target, paired by seed where that is our own."""
        target, reference = self._target(relation.target, task), relation.target.reference
        is_printed = self.runs.scale.id == PAPER
        if target is None or not self.runs.of(row, task):
            return None
        if row == reference and not is_printed:
            return exact(0.0, len(self.runs.of(row, task)), "sets the target")
        pairs: list[tuple[RunRecord, RunRecord | None]] = [(own, None) for own in self.runs.of(row, task)]
        if not is_printed:
            pairs = [*self.runs.paired(row, reference, task)]
        score = relation.target.score
        values: list[float | None] = []
        errors: list[float | None] = []
        notes: list[str] = []
        for own, its in pairs:
            limit = self._limit(relation, own, task)
            if limit == 0:
                return exact(-math.inf, len(pairs), "one round is above the limit")
            known = [value for value in round_scores(own, score)[:limit] if value is not None]
            wanted = target[0] if its is None else last_score(its, score)
            values.append(100 * (max(known) - wanted) if known and wanted is not None else None)
            errors.append(_combined(sampling_error(own, score), 0.0 if its is None else sampling_error(its, score)))
            notes.append(reached(own, round_reaching(own, score, target[0])))
        return over_seeds(values, errors, f"{in_words(notes)}; {target[1]}") if pairs else None

    def ratio(self, relation: Cheaper, pair: Pair) -> Estimate | None:
        """Bytes of a round or a run, which are exact, or until the target, with those that never reach it as bounds."""
        if relation.whole_run:
            return self._run_ratio(pair)
        if relation.target is None:
            return self._measured_ratio(pair, whole_run=False)
        target, pairs = self._target(relation.target, pair.task), self.runs.paired(pair.row, pair.other, pair.task)
        if target is None or not pairs:
            return None
        own, its = ([_Cost.of(both[side], relation.target.score, target[0]) for both in pairs] for side in (0, 1))
        words = (in_words(cost.when for cost in costs) for costs in (its, own))
        ratios = [other.bytes / cost.bytes if cost.bytes else math.inf for cost, other in zip(own, its, strict=True)]
        estimate = ratio_over_seeds(ratios, f"{' against '.join(words)}; {target[1]}")
        return censored(estimate, any(cost.is_bound for cost in own), any(cost.is_bound for cost in its))

    def _run_ratio(self, pair: Pair) -> Estimate | None:
        """Of the paper's own encoder: measured at its scale, else by shapes, with what the records say beside it."""
        measured = self._measured_ratio(pair, whole_run=True)
        own, its = map(self._derived_bytes, (pair.row, pair.other))
        if own is None or its is None or (measured is not None and self.runs.scale.id == PAPER):
            return measured
        backbone = self.tables.benchmark(pair.row).scale(PAPER).backbone
        here = "no run" if measured is None else f"{number(measured.value)} × in our runs"
        return exact(its / own, measured.n if measured else 0, f"by {backbone}'s shapes; {here}")

    @cached_property
    def _known(self) -> dict[At, float | None]:
        return {}

    def _derived_bytes(self, at: At) -> float | None:
        """Bytes of a run with the paper's own encoder, in the directions of the paper's convention."""
        table = self.tables.benchmark(at)
        if self.derive is None or at.row not in table.closed_forms:
            return None
        if at not in self._known:
            request = request_for(table, table.scale(PAPER), (), derive=self.derive(table))
            run = derived_run(request, self.tables.row(at))
            by_direction = {"up": run.up_bytes, "down": run.down_bytes} if run else {}
            self._known[at] = sum(by_direction[way] for way in table.paper.directions) if run else None
        return self._known[at]

    def _measured_ratio(self, pair: Pair, whole_run: bool) -> Estimate | None:
        """The other's bytes over the row's, in the directions of the paper's convention."""
        directions = self.tables.benchmark(pair.row).paper.directions
        records = [self.runs.of(at, pair.task) for at in (pair.row, pair.other)]
        costs = [cost for found in records if (cost := cost_of(found, directions)) is not None]
        if len(costs) < len(records):
            return None
        own, its = (cost.run_bytes if whole_run else cost.round_bytes for cost in costs)
        return exact(its / own if own else math.inf, min(map(len, records)))

    def level(self, relation: AtMost, row: At, task: str) -> Estimate | None:
        """The last round's score in percent, with the one that stands beside it."""
        records = self.runs.of(row, task)
        if not records:
            return None
        values = _percent([last_score(record, relation.score) for record in records])
        errors = _percent([sampling_error(record, relation.score) for record in records])
        beside = _percent([last_score(record, relation.beside) for record in records]) if relation.beside else []
        known = [value for value in beside if value is not None]
        note = f"{score_label(relation.beside)} {number(mean(known))} %" if known else ""
        return over_seeds(values, errors, note)

    def gap(self, pair: Pair) -> Estimate | None:
        """Of every number of every round; no verdict across machines, whose last bits may differ."""
        pairs = self.runs.paired(pair.row, pair.other, pair.task)
        if not pairs:
            return None
        largest = max((_gap(own, its) for own, its in pairs), key=abs)
        machines = {tuple(str(record.environment.get(key)) for key in _MACHINE) for both in pairs for record in both}
        if largest and len(machines) > 1:
            return Estimate(largest, None, len(pairs), "run on different machines")
        note = "equal scores, but other losses or bytes" if math.isinf(largest) else ""
        return exact(largest, len(pairs), note)


@dataclass(frozen=True)
class _Cost:
    """Uploaded bytes until a target, a lower bound where the run never reaches it."""

    bytes: int
    is_bound: bool
    when: str

    @classmethod
    def of(cls, record: RunRecord, score: str, target: float) -> _Cost:
        rounds = round_reaching(record, score, target)
        return cls(bytes_until(record, rounds or len(record.rounds)), rounds is None, reached(record, rounds))


def _percent(fractions: Sequence[float | None]) -> list[float | None]:
    return [None if fraction is None else 100 * fraction for fraction in fractions]


def _combined(first: float | None, second: float | None) -> float | None:
    """Sampling error of a difference in points: conservative, as the two share their test sets."""
    return None if first is None or second is None else 100 * math.hypot(first, second)


def _score_difference(own: RunRecord, its: RunRecord, score: str, relative: bool) -> tuple[float | None, float | None]:
    """The difference of two last scores in points, or percent of the second, and its sampling error."""
    value, other = last_score(own, score), last_score(its, score)
    if value is None or other is None or (relative and other == 0):
        return None, 0.0
    unit = other if relative else 1.0
    error = _combined(sampling_error(own, score), sampling_error(its, score))
    return 100 * (value - other) / unit, None if error is None else error / abs(unit)


def _fewer_rounds(pairs: Sequence[tuple[RunRecord, RunRecord]], score: str) -> Estimate:
    """Rounds that the other needs to its own last score, less those that the row needs to it."""
    values: list[float | None] = []
    late = False
    for own, its in pairs:
        target = last_score(its, score)
        if target is None:
            values.append(None)
            continue
        needed = round_reaching(own, score, target)
        late = late or needed is None
        values.append((round_reaching(its, score, target) or 0) - (needed or len(own.rounds) + 1))
    estimate = over_seeds(values, note=reached(pairs[0][0], None) if late else "")
    return censored(estimate, below=late, above=False)


def _gap(own: RunRecord, its: RunRecord) -> float:
    """The largest difference between two runs' scores, in points; 0 only where all numbers of every round are equal.

    Infinite where the scores are equal and other numbers are not.
    """
    if own.rounds == its.rounds:
        return 0.0
    scores = {f"{evaluation}/{metric}" for evaluation, found in own.rounds[-1].scores.items() for metric in found}
    pairs = [
        (first, second)
        for score in sorted(scores)
        for first, second in zip(round_scores(own, score), round_scores(its, score), strict=False)
        if first is not None and second is not None
    ]
    return max((100 * (first - second) for first, second in pairs), key=abs, default=0.0) or math.inf
