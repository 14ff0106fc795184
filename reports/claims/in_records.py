"""Relations on our records at one scale: paired by seed, with intervals, and only where a column is evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from benchmarks.claims import (
    At,
    AtMost,
    AverageBetter,
    Better,
    Cheaper,
    CostShare,
    NotTold,
    Reaches,
    Sends,
    Similar,
    Target,
)
from benchmarks.experiment import Benchmark
from benchmarks.measures import TRAIN_LOSS, metric
from benchmarks.results import RunResult
from reports import ReportError
from reports.claims.asked import derivation, unjudged
from reports.claims.averages import average_margin
from reports.claims.cells import Pair, Runs, Tables
from reports.claims.goals import Goal, above, byte_ratio, fewer_rounds, goal
from reports.claims.paired import relative_difference, unpaired_p
from reports.evidence.equations import Costs
from reports.evidence.gate import lead
from reports.evidence.paired import Pairs, difference, level
from reports.evidence.published import Numbers
from reports.evidence.records import PAPER, Derive, DeriveClient, machine, request_for
from reports.evidence.scores import known, round_scores, score_label, scores_of
from reports.evidence.statistics import Estimate, mean
from reports.evidence.traffic import Cost, bytes_until, derived_cost
from reports.pages.text import number

NO_EVIDENCE = "a p above any level is no evidence that two are equal"
ABOVE = "one round is above the limit"
SENDS_NOTHING = "as tuned, it sends nothing, so that no ratio of bytes means anything"
BESIDE_OTHERS = "records are timed beside other work on their machines"


@dataclass(frozen=True)
class InRecords:
    """A Source of records."""

    runs: Runs
    published: Mapping[str, Numbers]  # a paper's id -> its numbers, for limits that are given in bytes
    derive: Callable[[Benchmark], Derive] | None = None  # what a benchmark's rounds send, for bytes without a run
    derive_client: DeriveClient | None = None  # what one client's training costs

    @property
    def tables(self) -> Tables:
        return self.runs.tables

    @property
    def is_paper(self) -> bool:
        """Whether the records are of the paper's own scale, at which its absolute targets mean something."""
        return self.runs.scale.id == PAPER

    def directions(self, at: At) -> tuple[str, ...]:
        return self.tables.benchmark(at).paper.directions

    def _as_evidence(self, found: Estimate | None, rows: Sequence[At], task: str, why: str = "") -> Estimate | None:
        """What is found, or that nothing may be concluded from it: where a row's gate is shut, or for a reason.

        Of several reasons the one that more runs would not remove: it stands before any.
        """
        gates, name = [self.runs.gate(at, task) for at in rows], self.tables.task(rows[0], task)
        for gate in gates:
            if gate.is_shut:
                return unjudged(found, [(name, gate.why)], is_settled=gate.is_settled)
        reasons = [reason for reason in (why, *(gate.why for gate in gates), self.runs.untuned(rows, task)) if reason]
        return unjudged(found, [(name, reasons[0])]) if found is not None and reasons else found

    # ---- scores ------------------------------------------------------------------------------------------------

    def difference(self, relation: Better | Similar, pair: Pair) -> Estimate | None:
        pairs, rows = self.runs.paired(pair.row, pair.other, pair.task), (pair.row, pair.other)
        if not pairs:
            return self._as_evidence(None, rows, pair.task)
        counts_failed = isinstance(relation, Similar) or relation.over_failed
        failed = "" if counts_failed else self.runs.failed(pair.other, pair.task)
        if isinstance(relation, Better) and relation.measure == "rounds":
            target = relation.target or Target({}, relation.than, pair.score)
            wanted = self._goal(target, pair.task, pair.score, pairs)
            fewer = fewer_rounds(pairs, wanted, pair.score) if wanted else None
            return self._as_evidence(fewer, rows, pair.task, (wanted.why_not if wanted else "") or failed)
        score = TRAIN_LOSS if isinstance(relation, Better) and relation.measure == "loss" else pair.score
        found = self._compared(relative_difference if relation.relative else difference, replace(pair, score=score))
        return self._as_evidence(found, rows, pair.task, failed)

    def _compared(self, compare: Callable[[Pairs, str], Estimate], pair: Pair) -> Estimate | None:
        """Two rows by a score, each asked once: claims and their readings share comparisons. None without a seed."""
        key = compare, pair
        if key not in self._comparisons:
            pairs = self.runs.paired(pair.row, pair.other, pair.task)
            self._comparisons[key] = compare(pairs, pair.score) if pairs else None
        return self._comparisons[key]

    @cached_property
    def _comparisons(self) -> dict[tuple[Callable[[Pairs, str], Estimate], Pair], Estimate | None]:
        return {}

    def leads(self, relation: Better | Similar, pair: Pair) -> Iterator[tuple[At, Estimate | None]]:
        """A constant answer has no correlation: over it, the other's own counts."""
        compare = relative_difference if relation.relative else lead
        for idle in self.tables.idle(pair.other):
            yield idle, self._compared(compare, Pair(pair.other, idle, pair.task, pair.score))

    def p_value(self, relation: NotTold, pair: Pair) -> Estimate | None:
        pairs = self.runs.paired(pair.row, pair.other, pair.task)
        if not pairs:
            return self._as_evidence(None, (pair.row, pair.other), pair.task)
        return unjudged(unpaired_p(pairs, pair.score), [(self.tables.task(pair.row, pair.task), NO_EVIDENCE)])

    def average_margin(self, relation: AverageBetter, rivals: Mapping[str, At]) -> Estimate | None:
        return average_margin(self.runs, relation, rivals)

    def level(self, relation: AtMost, row: At, task: str) -> Estimate | None:
        """Of an attack: what it recovers is no ordering, so no gate is asked."""
        records, column = self.runs.of(row, task), self.tables.column(row, task)
        if not records or column is None:
            return None
        note = ""
        if relation.beside:
            beside = scores_of(records, relation.beside)
            values, label = known(beside.at()), score_label(column, relation.beside)
            note = f"{label} {beside.metric.in_unit(number(mean(values)))}" if values else ""
        return replace(level(records, relation.score), note=note)

    def gap(self, pair: Pair) -> Estimate | None:
        """Of every number of every round; no verdict across machines, whose last bits may differ."""
        every = self.runs.paired(pair.row, pair.other, pair.task)
        pairs = [(own, its) for own, its in every if machine(own) == machine(its)] or every
        if not pairs:
            return None
        largest = max((_gap(own, its) for own, its in pairs), key=abs)
        if largest and machine(pairs[0][0]) != machine(pairs[0][1]):
            return Estimate(largest, None, len(pairs), "run on different machines")
        note = "equal scores, but other losses or bytes" if math.isinf(largest) else ""
        return derivation(largest, len(pairs), note)

    # ---- targets -----------------------------------------------------------------------------------------------

    def _goal(self, target: Target, task: str, score: str, pairs: Pairs) -> Goal | None:
        return goal(self.runs, target, task, score, [own.cell.seed for own, _ in pairs])

    def above_target(self, relation: Reaches, row: At, task: str) -> Estimate | None:
        """The best score of the rounds that count, against the target of the same seed."""
        records, score = self.runs.of(row, task), relation.target.score
        wanted = goal(self.runs, relation.target, task, score, [record.cell.seed for record in records])
        if wanted is None:
            return self._as_evidence(None, (row,), task)
        runs = [record for record in records if record.cell.seed in wanted.by_seed]
        limits = [self._limit(relation, row, record, task) for record in runs]
        found = derivation(-math.inf, len(runs), ABOVE) if 0 in limits else above(runs, limits, wanted, score)
        is_tuned = 0 in limits and not self.is_paper  # elsewhere it is tuning that chose what a round sends
        return self._as_evidence(found, (row,), task, wanted.why_not or (f"as tuned, {ABOVE}" if is_tuned else ""))

    def _limit(self, relation: Reaches, at: At, record: RunResult, task: str) -> int:
        """How many rounds are within the limit."""
        rounds = len(record.rounds) if relation.within_rounds is None else relation.within_rounds
        if relation.below_bytes is None:
            return rounds
        limit = self._byte_limit(relation, relation.below_bytes, task)
        return sum(bytes_until(record, count, self.directions(at)) < limit for count in range(1, rounds + 1))

    def _byte_limit(self, relation: Reaches, limit: float, task: str) -> float:
        reference = relation.target.baselines[0]
        cost = self.runs.cost(reference, task)
        if self.is_paper or cost is None:
            return limit
        if relation.sizes is None:
            raise ReportError("claims: expected the printed sizes of a round beside a limit in bytes, found none.")
        paper = self.tables.benchmark(reference).paper
        numbers = self.published.get(paper.id, Numbers({}))
        printed = numbers.at(relation.sizes.table, reference.printed or reference.row, relation.sizes.column)
        return limit / (float(printed) * paper.gigabyte) * cost.round_bytes

    # ---- bytes -------------------------------------------------------------------------------------------------

    def ratio(self, relation: Cheaper, pair: Pair) -> Estimate | None:
        """Bytes of a round or a run follow from shapes; until a target they hang on who reaches it, and when."""
        if relation.target is None:
            return self._byte_ratio(pair, relation.whole_run)
        pairs, score = self.runs.paired(pair.row, pair.other, pair.task), relation.target.score
        wanted, rows = self._goal(relation.target, pair.task, score, pairs), (pair.row, pair.other)
        if wanted is None:
            return self._as_evidence(None, rows, pair.task)
        found = byte_ratio(pairs, wanted, score, self.directions(pair.row))
        own = self.runs.cost(pair.row, pair.task)
        idle = SENDS_NOTHING if own and not own.round_bytes else self.runs.failed(pair.other, pair.task)
        return self._as_evidence(found, rows, pair.task, wanted.why_not or idle)

    def _byte_ratio(self, pair: Pair, whole_run: bool) -> Estimate | None:
        def ratio(own: Cost, its: Cost) -> float:
            sizes = (own.run_bytes, its.run_bytes) if whole_run else (own.round_bytes, its.round_bytes)
            return sizes[1] / sizes[0] if sizes[0] else math.inf

        return self._of_both(pair, ratio, " ×")

    def _of_both(self, pair: Pair, compare: Callable[[Cost, Cost], float], unit: str) -> Estimate | None:
        """Of two costs with the paper's own encoder: measured at its scale, else by shapes, with our runs' beside."""
        own, its = (self.runs.cost(at, pair.task) for at in (pair.row, pair.other))
        measured, n = (compare(own, its), min(own.seeds, its.seeds)) if own and its else (None, 0)
        derived = [self._derived(at, pair.task) for at in (pair.row, pair.other)]
        if None in derived or (measured is not None and self.is_paper):
            return None if measured is None else derivation(measured, n)
        value = compare(*(cost for cost in derived if cost is not None))
        return derivation(value, n, f"{self._by_shapes(pair.row)}; {_beside(measured, unit)}")

    def share(self, relation: CostShare, pair: Pair) -> Estimate | None:
        """Of bytes and FLOPs, which follow from shapes; of seconds, which hang on what else a machine did."""
        if relation.of == "bytes":
            return self._of_both(pair, lambda own, its: _percent(own.round_bytes, its.round_bytes), " %")
        if relation.of == "flops":
            own, its = (self._flops(at, pair.task) for at in (pair.row, pair.other))
            return (
                None
                if own is None or its is None
                else derivation(_percent(own, its), 0, f"FLOPs {self._by_shapes(pair.row)}")
            )
        costs = [cost for at in (pair.row, pair.other) if (cost := self.runs.cost(at, pair.task)) is not None]
        times = [cost.train_seconds / cost.rounds for cost in costs if cost.train_seconds is not None]
        if len(times) < 2:
            return None
        found = Estimate(_percent(*times), None, min(cost.seeds for cost in costs))
        return unjudged(found, [(self.tables.task(pair.row, pair.task), BESIDE_OTHERS)])

    def _flops(self, at: At, task: str) -> float | None:
        """Of one client's training on a text, with the paper's own encoder."""
        table, column = self.tables.benchmark(at), self.tables.column(at, task)
        if self.derive_client is None or column is None or PAPER not in {scale.id for scale in table.scales}:
            return None
        found = self.derive_client(table.cell(self.tables.row(at), column, table.scale(PAPER), 0))
        return None if found is None else found.flops

    def gigabytes(self, relation: Sends, row: At, task: str) -> Estimate | None:
        """With our own encoder beside the paper's: only the paper's says something of so many bytes."""
        rounds, gigabyte = relation.rounds, self.tables.benchmark(row).paper.gigabyte
        derived, measured = self._derived(row, task), self.runs.cost(row, task)
        here = rounds * measured.round_bytes / gigabyte if measured else None
        if measured and here is not None and self.is_paper:
            return derivation(here, measured.seeds)
        if derived is None:
            return None
        note = f"{self._by_shapes(row)}; {_beside(here, ' GB')}"
        return derivation(rounds * derived.round_bytes / gigabyte, measured.seeds if measured else 0, note)

    def _by_shapes(self, at: At) -> str:
        return f"by {self.tables.benchmark(at).scale(PAPER).backbone}'s shapes"

    @cached_property
    def _known(self) -> dict[tuple[At, str], Cost | None]:
        return {}

    def _derived(self, at: At, task: str) -> Cost | None:
        """What the paper's own encoder sends; where an equation has the number of texts, with as many as it says."""
        table, column = self.tables.benchmark(at), self.tables.column(at, task)
        if self.derive is None or column is None or PAPER not in {scale.id for scale in table.scales}:
            return None
        if (at, task) not in self._known:
            scale, row = table.scale(PAPER), self.tables.row(at)
            request = request_for(replace(table, columns=(column,)), scale, (), derive=self.derive(table))
            by_equation = at.row in table.closed_forms
            self._known[at, task] = Costs(request).derived_run(row) if by_equation else derived_cost(request, row)
        return self._known[at, task]


def _percent(own: float, its: float) -> float:
    return 100 * own / its if its else math.inf


def _beside(measured: float | None, unit: str) -> str:
    return "no run" if measured is None else f"{number(measured)}{unit} in our runs"


def _gap(own: RunResult, its: RunResult) -> float:
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
