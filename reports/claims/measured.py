"""Numbers from our records at one scale as evidence: paired by seed, and only in columns that are evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from benchmarks.claims import At, AtMost, AverageBetter, Better, CostBound, Reaches, Target
from benchmarks.measures import TRAIN_LOSS, metric
from benchmarks.results import RunResult
from reports.claims.cells import Pair
from reports.claims.costs import RowCosts
from reports.claims.criterion import Evidence, derived, evidence
from reports.claims.estimates import (
    above,
    average_margin,
    byte_ratio,
    difference_of_gains,
    fewer_rounds,
    goal,
    relative_difference,
    unpaired_p,
    vacuous,
)
from reports.evidence.caching import once
from reports.evidence.corrections import AS_ANSWERED, corrected
from reports.evidence.gate import lead
from reports.evidence.paired import Pairs, difference, gains, level
from reports.evidence.published import Numbers
from reports.evidence.records import machine
from reports.evidence.scores import defined, round_scores, score_label, scores_of
from reports.evidence.statistics import Estimate, mean
from reports.evidence.traffic import sent_by_round
from reports.pages.text import number

ACCURACY = "test/accuracy"
ABOVE = "one round is above the limit"
SENDS_NOTHING = "sends nothing as tuned: no ratio of bytes means anything"


@dataclass(frozen=True)
class MeasuredNumbers(RowCosts):
    """Records of one scale. Every answer is None if nothing was run.

    Args:
        numbers: Paper id -> its published numbers, for limits in bytes.
    """

    numbers: Mapping[str, Numbers]

    def _directions(self, at: At) -> tuple[str, ...]:
        return self.tables.benchmark(at).paper.directions

    def _checked(self, pair: Pair, estimate: Estimate | None, reason: str = "") -> Evidence | None:
        """The number, with the reason why it is no evidence, if there is one.

        The reason of a shut gate comes first, as more runs would not remove it.
        """
        rows, task, name = (pair.row, pair.other), pair.task, self.tables.task(pair.row, pair.task)
        gates = [self.runs.gate(at, task) for at in rows]
        for gate in gates:
            if gate.is_shut:
                return evidence(estimate, reasons=((name, gate.why),), is_settled=gate.is_settled)
        if estimate is None:
            return None
        reasons = (reason, *(gate.why for gate in gates), self.runs.untuned(rows, task))
        why = next(filter(None, reasons), "")
        return evidence(estimate, reasons=((name, why),) if why else ())

    def _shows_nothing(self, pair: Pair, why: str) -> Evidence:
        """No number, as predicting a single class would pass, too: no run and no validity check changes that."""
        return evidence(None, reasons=((self.tables.task(pair.row, pair.task), why),))

    # ---- scores ------------------------------------------------------------------------------------------------

    def difference(self, pair: Pair, relation: Better) -> Evidence | None:
        """The row's advantage in the relation's quantity: in its unit, or in percent."""
        pairs, is_rounds = self._pairs(pair), relation.measure == "rounds"
        if is_rounds and relation.target and (why := vacuous(self.runs, relation.target, pair.task, pair.score)):
            return self._shows_nothing(pair, why)
        if not pairs:
            return self._checked(pair, None)
        if len({*self.identities(pair)}) == 1:
            return derived(0.0, len(pairs), "one run")
        others = () if relation.over_failed else (pair.other, *(relation.since or ()))
        failed = next(filter(None, (self.runs.failed(at, pair.task) for at in others)), "")
        if is_rounds:
            return self._fewer_rounds(pair, relation, failed)
        if relation.since:
            before = self.runs.paired(*relation.since, pair.task)
            gained = difference_of_gains(pairs, before, pair.score, self.runs.score_at, relation.relative)
            return self._checked(pair, gained, failed)
        return self._higher(pair, relation, failed)

    def _higher(self, pair: Pair, relation: Better, failed: str) -> Evidence | None:
        """How much better a row's score or loss is. A score next to others has accuracy, too."""
        score = TRAIN_LOSS if relation.measure == "loss" else pair.score
        compare = relative_difference if relation.relative else difference
        comparison = self._checked(pair, self._compared(compare, pair._replace(score=score)), failed)
        if comparison is None:
            return None
        if relation.p_values:
            return replace(comparison, note=unpaired_p(self._pairs(pair), score))
        diverged = self.runs.divergence((pair.row, pair.other), pair.task)
        if score != pair.score or relation.relative or not (answered := self._by_accuracy(pair)):
            return replace(comparison, note=diverged or comparison.note)
        note = "; ".join(filter(None, (diverged, self._beside(pair, answered))))
        return replace(comparison, note=note, in_mean=difference(answered, ACCURACY, self.runs.score_at))

    def _fewer_rounds(self, pair: Pair, relation: Better, failed: str) -> Evidence | None:
        """How many rounds fewer a row needs to reach the target."""
        pairs, target = self._pairs(pair), relation.target or Target({}, relation.than, pair.score)
        wanted = goal(self.runs, target, pair.task, pair.score, _seeds(pairs))
        fewer = fewer_rounds(pairs, wanted, pair.score) if wanted else None
        return self._checked(pair, fewer, (wanted.reason if wanted else "") or failed)

    def identities(self, pair: Pair) -> tuple[str, ...]:
        """The ids of the two rows' runs with seed 0, and how their answers are corrected; () unless both exist."""
        ids = [
            cell.spec_id + self.tables.row(at).correction
            for at in (pair.row, pair.other)
            if (cell := self.runs.cell(at, pair.task)) is not None
        ]
        return tuple(ids) if len(ids) == 2 else ()

    def _pairs(self, pair: Pair) -> Pairs:
        return self.runs.paired(pair.row, pair.other, pair.task)

    @once
    def _compared(self, compare: Callable[[Pairs, str, str], Estimate], pair: Pair) -> Estimate | None:
        """Two rows compared by a score; claims and their readings share comparisons."""
        pairs = self._pairs(pair)
        if pairs and all(first is other for first, other in pairs):  # both diverged, or one is the majority class
            return Estimate(0.0, (0.0, 0.0), len(pairs))
        return compare(pairs, pair.score, self.runs.score_at) if pairs else None

    @once
    def _by_accuracy(self, pair: Pair) -> Pairs:
        """The pairs with accuracy from stored predictions, if the column has other scores next to it; else ()."""
        column = self.tables.column(pair.row, pair.task)
        return [
            (first, second)
            for one, other in (self._pairs(pair) if column and column.extra else ())
            if (first := corrected(one, AS_ANSWERED)) and (second := corrected(other, AS_ANSWERED))
        ]

    def _beside(self, pair: Pair, answered: Pairs) -> str:
        """The same difference in accuracy and in the scores shown next to the column's."""
        column, texts = self.tables.column(pair.row, pair.task), []
        pooled = [both for both in self._pairs(pair) if all(record.rounds[-1].pooled_scores for record in both)]
        extra = [score for score in (column.extra if column else ()) if score != ACCURACY]
        accuracy = [(ACCURACY, answered)] if pair.score != ACCURACY else []
        for score, pairs in (*accuracy, *((score, pooled) for score in extra)):
            if values := defined(gains(pairs, score, self.runs.score_at)) if pairs else ():
                texts.append(f"{score_label(column, score)} {number(mean(values), '+')}")  # type: ignore[arg-type]
        return ", ".join(texts)

    def leads(self, pair: Pair, relative: bool) -> Iterator[tuple[At, Evidence | None]]:
        """The other row's advantage over each row without a treatment.

        Predictions of a single class have no correlation: against them, the other's own correlation counts.
        """
        for idle in self.tables.idle(pair.other):
            compare = relative_difference if relative else lead
            estimate = self._compared(compare, Pair(pair.other, idle, pair.task, pair.score))
            yield idle, None if estimate is None else evidence(estimate)

    def average_margin(self, relation: AverageBetter, rivals: Mapping[str, At]) -> Evidence | None:
        return average_margin(self.runs, relation, rivals)

    def level(self, relation: AtMost, row: At, task: str) -> Evidence | None:
        """An attack's score; it orders no methods, so it needs no gate."""
        records, column = self.runs.of(row, task), self.tables.column(row, task)
        if not records or column is None:
            return None
        note = ""
        if relation.extra:
            extra = scores_of(records, relation.extra)
            values, label = defined(extra.at()), score_label(column, relation.extra)
            note = f"{label} {extra.metric.in_unit(number(mean(values)))}" if values else ""
        return evidence(level(records, relation.score), note=note)

    def gap(self, pair: Pair) -> Evidence | None:
        """The largest difference in any number of any round. No verdict across machines, as last bits may differ."""
        every = self._pairs(pair)
        pairs = [(first, second) for first, second in every if machine(first) == machine(second)] or every
        if not pairs:
            return None
        largest = max((_gap(first, second) for first, second in pairs), key=abs)
        if largest and machine(pairs[0][0]) != machine(pairs[0][1]):
            return Evidence(largest, None, len(pairs), "run on different machines")
        return derived(largest, len(pairs), "equal scores, but other losses or bytes" if math.isinf(largest) else "")

    # ---- targets -----------------------------------------------------------------------------------------------

    def above_target(self, relation: Reaches, row: At, task: str) -> Evidence | None:
        """The best score of the counted rounds, minus the target of the same seed; positive is better."""
        records, score, pair = self.runs.of(row, task), relation.target.score, Pair(row, row, task)
        if why := vacuous(self.runs, relation.target, task, score):
            return self._shows_nothing(pair, why)
        wanted = goal(self.runs, relation.target, task, score, [record.cell.seed for record in records])
        if wanted is None:
            return self._checked(pair, None)
        runs = [record for record in records if record.cell.seed in wanted.by_seed]
        limits = [self._limit(relation, row, record, task) for record in runs]
        if 0 not in limits:
            return self._checked(pair, above(runs, limits, wanted, score), wanted.reason)
        reason = wanted.reason or ("" if self.is_paper else f"as tuned, {ABOVE}")  # tuning determines a round's bytes
        return self._checked(pair, derived(-math.inf, len(runs), ABOVE), reason)

    def _limit(self, relation: Reaches, at: At, record: RunResult, task: str) -> int:
        """The number of rounds within the limit."""
        rounds = len(record.rounds) if relation.within_rounds is None else relation.within_rounds
        if relation.below_bytes is None:
            return rounds
        limit = self._byte_limit(relation, relation.below_bytes, task)
        return sum(size < limit for size in sent_by_round(record, self._directions(at))[1 : rounds + 1])

    def _byte_limit(self, relation: Reaches, limit: float, task: str) -> float:
        """The paper's limit at its scale; elsewhere the same share of a round of the first baseline."""
        reference = relation.target.baselines[0]
        cost = self.runs.cost(reference, task)
        if self.is_paper or cost is None or relation.sizes is None:
            return limit
        paper = self.tables.benchmark(reference).paper
        numbers = self.numbers.get(paper.id, Numbers({}))
        size = numbers.at(relation.sizes.table, reference.published or reference.row, relation.sizes.column)
        return limit / (float(size) * paper.gigabyte) * cost.round_bytes

    def cost(self, relation: CostBound, pair: Pair) -> Evidence | None:
        """Two rows' costs compared; bytes until a target depend on who reaches it, and when."""
        if relation.target is None:
            return self.compared(relation, pair)
        pairs, score = self._pairs(pair), relation.target.score
        if why := vacuous(self.runs, relation.target, pair.task, score):
            return self._shows_nothing(pair, why)
        wanted = goal(self.runs, relation.target, pair.task, score, _seeds(pairs))
        if wanted is None:
            return self._checked(pair, None)
        ratio = byte_ratio(pairs, wanted, score, self._directions(pair.row))
        cost = self.runs.cost(pair.row, pair.task)
        idle = SENDS_NOTHING if cost and not cost.round_bytes else self.runs.failed(pair.other, pair.task)
        return self._checked(pair, ratio, wanted.reason or idle)


def _seeds(pairs: Pairs) -> list[int]:
    return [first.cell.seed for first, _ in pairs]


def _gap(first: RunResult, second: RunResult) -> float:
    """The largest difference of two runs' scores, in their units; infinite if only other numbers differ."""
    if first.rounds == second.rounds:
        return 0.0
    scores = {f"{evaluation}/{name}" for evaluation, scored in first.rounds[-1].scores.items() for name in scored}
    differences = (
        metric(score).shown(one - other)
        for score in sorted(scores)
        for one, other in zip(round_scores(first, score), round_scores(second, score), strict=False)
        if one is not None and other is not None
    )
    return max(differences, key=abs, default=0.0) or math.inf
