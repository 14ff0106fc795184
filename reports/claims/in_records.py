"""Relations on our records at one scale: paired by seed, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.claims import At, AtMost, AverageBetter, Cheaper, Reaches, Target
from benchmarks.measures import TRAIN_LOSS, metric
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark
from reports import ReportError
from reports.claims.averages import average_margin
from reports.claims.cases import Measure
from reports.claims.cells import Pair, Runs, Tables
from reports.evidence.equations import Costs
from reports.evidence.published import Numbers
from reports.evidence.records import PAPER, Derive, machine, request_for
from reports.evidence.scores import Scores, known, last_mean, round_reaching, round_scores, score_label, scores_of
from reports.evidence.statistics import Estimate, censored, exact, mean, over_seeds, ratio_over_seeds
from reports.evidence.targets import attempt
from reports.evidence.traffic import bytes_until
from reports.pages.text import number

Paired = Sequence[tuple[RunRecord, RunRecord]]


@dataclass(frozen=True)
class InRecords:
    """A Source of records."""

    runs: Runs
    published: Mapping[str, Numbers]  # a paper's id -> its numbers, for limits that are given in bytes
    derive: Callable[[Benchmark], Derive] | None = None  # what a benchmark's rounds send, for bytes of whole runs

    @property
    def tables(self) -> Tables:
        return self.runs.tables

    @property
    def is_paper(self) -> bool:
        """Whether the records are of the paper's own scale, at which its absolute targets mean something."""
        return self.runs.scale.id == PAPER

    def directions(self, at: At) -> tuple[str, ...]:
        return self.tables.benchmark(at).paper.directions

    def difference(self, pair: Pair, measure: Measure, relative: bool) -> Estimate | None:
        """Of last scores, last losses, or rounds until the other's last score of the same seed."""
        found = self.runs.paired(pair.row, pair.other, pair.task)
        if not found:
            return None
        if measure == "rounds":
            return _fewer_rounds(found, pair.score)
        own, its = (
            scores_of(side, TRAIN_LOSS if measure == "loss" else pair.score) for side in zip(*found, strict=True)
        )
        values, errors = zip(*(_seed_difference(own, its, seed, relative) for seed in range(len(found))), strict=True)
        return over_seeds(values, errors)

    def average_margin(self, relation: AverageBetter) -> Estimate | None:
        return average_margin(self.runs, relation)

    def level(self, relation: AtMost, row: At, task: str) -> Estimate | None:
        records, column = self.runs.of(row, task), self.tables.column(row, task)
        if not records or column is None:
            return None
        found, note = scores_of(records, relation.score), ""
        if relation.beside:
            beside = scores_of(records, relation.beside)
            values, label = known(beside.at()), score_label(column, relation.beside)
            note = f"{label} {beside.metric.in_unit(number(mean(values)))}" if values else ""
        return over_seeds(found.at(), found.errors, note)

    def gap(self, pair: Pair) -> Estimate | None:
        """Of every number of every round; no verdict across machines, whose last bits may differ."""
        pairs = self.runs.paired(pair.row, pair.other, pair.task)
        if not pairs:
            return None
        largest = max((_gap(own, its) for own, its in pairs), key=abs)
        machines = {machine(record) for both in pairs for record in both}
        if largest and len(machines) > 1:
            return Estimate(largest, None, len(pairs), "run on different machines")
        note = "equal scores, but other losses or bytes" if math.isinf(largest) else ""
        return exact(largest, len(pairs), note)

    def _target(self, target: Target, task: str) -> tuple[float, str] | None:
        measured = metric(target.score)
        if self.is_paper:
            wanted = target.percent[task]
            return wanted / measured.factor, f"target {wanted:g}"
        last = last_mean(self.runs.of(target.reference, task), target.score)
        if last is None:
            return None
        return last, f"target {number(measured.shown(last))}, {self.tables.row(target.reference).name}'s last"

    def _limit(self, relation: Reaches, at: At, record: RunRecord, task: str) -> int:
        rounds = len(record.rounds) if relation.within_rounds is None else relation.within_rounds
        if relation.below_bytes is None:
            return rounds
        limit = self._byte_limit(relation, relation.below_bytes, task)
        return sum(bytes_until(record, count, self.directions(at)) < limit for count in range(1, rounds + 1))

    def _byte_limit(self, relation: Reaches, limit: float, task: str) -> float:
        reference = relation.target.reference
        cost = self.runs.cost(reference, task)
        if self.is_paper or cost is None:
            return limit
        if relation.sizes is None:
            raise ReportError("claims: expected the printed sizes of a round beside a limit in bytes, found none.")
        paper = self.tables.benchmark(reference).paper
        numbers = self.published.get(paper.id, Numbers({}))
        printed = numbers.at(relation.sizes.table, reference.printed or reference.row, relation.sizes.column)
        return limit / (float(printed) * paper.gigabyte) * cost.round_bytes

    def above_target(self, relation: Reaches, row: At, task: str) -> Estimate | None:
        """The best score of the rounds that count, against the target, paired by seed where that is our own."""
        target, reference, score = self._target(relation.target, task), relation.target.reference, relation.target.score
        if target is None or not self.runs.of(row, task):
            return None
        if row == reference and not self.is_paper:
            return exact(0.0, len(self.runs.of(row, task)), "sets the target")
        pairs: list[tuple[RunRecord, RunRecord | None]] = [(own, None) for own in self.runs.of(row, task)]
        if not self.is_paper:
            pairs = [*self.runs.paired(row, reference, task)]
        measured = metric(score)
        values, errors, notes = [], [], []
        for own, its in pairs:
            limit = self._limit(relation, row, own, task)
            if limit == 0:
                return exact(-math.inf, len(pairs), "one round is above the limit")
            best = measured.best(round_scores(own, score)[:limit])
            wanted = target[0] if its is None else round_scores(its, score)[-1]
            values.append(None if best is None or wanted is None else measured.shown(measured.gain(best, wanted)))
            error = _combined(own.sampling_error(score), 0.0 if its is None else its.sampling_error(score))
            errors.append(None if error is None else measured.shown(error))
            notes.append(attempt(own, score, target[0], self.directions(row)).when)
        return over_seeds(values, errors, f"{_in_words(notes)}; {target[1]}") if pairs else None

    def ratio(self, relation: Cheaper, pair: Pair) -> Estimate | None:
        """Bytes of a round or a run, which are exact, or until the target, with those that never reach it as bounds."""
        if relation.whole_run:
            return self._run_ratio(pair)
        if relation.target is None:
            return self._measured_ratio(pair, whole_run=False)
        target, pairs = self._target(relation.target, pair.task), self.runs.paired(pair.row, pair.other, pair.task)
        if target is None or not pairs:
            return None
        directions, score = self.directions(pair.row), relation.target.score
        own, its = ([attempt(both[side], score, target[0], directions) for both in pairs] for side in (0, 1))
        words = (_in_words(until.when for until in side) for side in (its, own))
        ratios = [other.bytes / until.bytes if until.bytes else math.inf for until, other in zip(own, its, strict=True)]
        estimate = ratio_over_seeds(ratios, f"{' against '.join(words)}; {target[1]}")
        return censored(
            estimate, any(not until.is_reached for until in own), any(not until.is_reached for until in its)
        )

    def _run_ratio(self, pair: Pair) -> Estimate | None:
        """Of the paper's own encoder: measured at its scale, else by shapes, with what the records say beside it."""
        measured = self._measured_ratio(pair, whole_run=True)
        own, its = map(self._derived_bytes, (pair.row, pair.other))
        if own is None or its is None or (measured is not None and self.is_paper):
            return measured
        backbone = self.tables.benchmark(pair.row).scale(PAPER).backbone
        here = "no run" if measured is None else f"{number(measured.value)} × in our runs"
        return exact(its / own, measured.n if measured else 0, f"by {backbone}'s shapes; {here}")

    @cached_property
    def _known(self) -> dict[At, float | None]:
        return {}

    def _derived_bytes(self, at: At) -> float | None:
        table = self.tables.benchmark(at)
        if self.derive is None or at.row not in table.closed_forms:
            return None
        if at not in self._known:
            request = request_for(table, table.scale(PAPER), (), derive=self.derive(table))
            run = Costs(request).derived_run(self.tables.row(at))
            self._known[at] = run.run_bytes if run else None
        return self._known[at]

    def _measured_ratio(self, pair: Pair, whole_run: bool) -> Estimate | None:
        own, its = (self.runs.cost(at, pair.task) for at in (pair.row, pair.other))
        if own is None or its is None:
            return None
        sizes = (own.run_bytes, its.run_bytes) if whole_run else (own.round_bytes, its.round_bytes)
        return exact(sizes[1] / sizes[0] if sizes[0] else math.inf, min(own.seeds, its.seeds))


def _in_words(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _combined(first: float | None, second: float | None) -> float | None:
    """Sampling error of a difference: conservative, as the two share their test sets."""
    return None if first is None or second is None else math.hypot(first, second)


def _seed_difference(own: Scores, its: Scores, seed: int, relative: bool) -> tuple[float | None, float | None]:
    """By how much a seed's last score is better, and its sampling error: in its unit, or percent of the other's."""
    value, other, errors = own.last[seed], its.last[seed], (own.sampling[seed], its.sampling[seed])
    if value is None or other is None or (relative and other == 0):
        return None, 0.0
    factor, unit = (100, other) if relative else (own.metric.factor, 1.0)
    error = _combined(*errors)
    return factor * own.metric.gain(value, other) / unit, None if error is None else factor * error / abs(unit)


def _fewer_rounds(pairs: Paired, score: str) -> Estimate:
    """Rounds that the other needs to its own last score, less those that the row needs to it."""
    values: list[float | None] = []
    late = False
    for own, its in pairs:
        target = round_scores(its, score)[-1]
        if target is None:
            values.append(None)
            continue
        needed = round_reaching(own, score, target)
        late = late or needed is None
        values.append((round_reaching(its, score, target) or 0) - (needed or len(own.rounds) + 1))
    estimate = over_seeds(values, note=f"not within {len(pairs[0][0].rounds)} rounds" if late else "")
    return censored(estimate, below=late, above=False)


def _gap(own: RunRecord, its: RunRecord) -> float:
    """The largest difference of two runs' scores, in their units; infinite where only other numbers differ."""
    if own.rounds == its.rounds:
        return 0.0
    scores = {f"{evaluation}/{name}" for evaluation, found in own.rounds[-1].scores.items() for name in found}
    differences = (
        metric(score).shown(first - second)
        for score in sorted(scores)
        for first, second in zip(round_scores(own, score), round_scores(its, score), strict=False)
        if first is not None and second is not None
    )
    return max(differences, key=abs, default=0.0) or math.inf
