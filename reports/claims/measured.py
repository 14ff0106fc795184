"""Numbers of our records at one scale as evidence: paired by seed, and only where a column is evidence at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.claims import At, AtMost, AverageBetter, Better, CostBound, Reaches, Sends, Target
from benchmarks.experiment import Benchmark, Column, Row
from benchmarks.measures import TRAIN_LOSS, metric
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig
from reports import ReportError
from reports.claims.cells import Pair, Runs, Tables, once
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
)
from reports.evidence.equations import Costs
from reports.evidence.gate import lead
from reports.evidence.paired import Pairs, difference, level
from reports.evidence.published import Numbers
from reports.evidence.records import PAPER, Derive, machine, request_for
from reports.evidence.resources import Resources
from reports.evidence.scores import known, round_scores, score_label, scores_of
from reports.evidence.statistics import Estimate, mean
from reports.evidence.traffic import Cost, bytes_until, derived_cost
from reports.pages.text import number
from reports.views.split import Split, way_of

NO_EVIDENCE = "p-values prove no equality"
ABOVE = "one round is above the limit"
SENDS_NOTHING = "sends nothing as tuned: no ratio of bytes means anything"
DeriveFlops = Callable[[RunConfig], float | None]  # a run -> FLOPs of one client's training on a text
ONE_MACHINE = "times are not comparable: they are of another machine than the paper's"
MODELLED = "times are not comparable: they are modelled from times on one machine"
BESIDE_OTHERS = "times are not comparable: records are timed beside other work on their machines"


@dataclass(frozen=True)
class MeasuredNumbers:
    """Records of one scale. Every answer is None if nothing was run.

    Args:
        numbers: Paper id -> its published numbers, for limits in bytes.
        derive: What a benchmark's rounds send by shapes, for bytes without a run.
        derive_flops: FLOPs of one client's training on a text by shapes.
    """

    runs: Runs
    numbers: Mapping[str, Numbers]
    derive: Callable[[Benchmark], Derive] | None = None
    derive_flops: DeriveFlops | None = None

    @property
    def tables(self) -> Tables:
        return self.runs.tables

    @property
    def is_paper(self) -> bool:
        """Whether the records are of the paper's own scale, where its absolute targets mean something."""
        return self.runs.scale.id == PAPER

    def _directions(self, at: At) -> tuple[str, ...]:
        return self.tables.benchmark(at).paper.directions

    def _checked(self, pair: Pair, estimate: Estimate | None, reason: str = "") -> Evidence | None:
        """The number, with the reason for which nothing may be concluded from it, if there is one.

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

    # ---- scores ------------------------------------------------------------------------------------------------

    def difference(self, pair: Pair, relation: Better) -> Evidence | None:
        """By how much the row is better by what the relation measures: in its unit, or percent."""
        pairs = self._pairs(pair)
        if not pairs:
            return self._checked(pair, None)
        failed = "" if relation.over_failed else self.runs.failed(pair.other, pair.task)
        if relation.measure == "rounds":
            target = relation.target or Target({}, relation.than, pair.score)
            wanted = goal(self.runs, target, pair.task, pair.score, _seeds(pairs))
            fewer = fewer_rounds(pairs, wanted, pair.score) if wanted else None
            return self._checked(pair, fewer, (wanted.reason if wanted else "") or failed)
        if relation.since:
            before = self.runs.paired(*relation.since, pair.task)
            return self._checked(pair, difference_of_gains(pairs, before, pair.score), failed)
        score = TRAIN_LOSS if relation.measure == "loss" else pair.score
        compare = relative_difference if relation.relative else difference
        return self._checked(pair, self._compared(compare, pair._replace(score=score)), failed)

    def identities(self, pair: Pair) -> tuple[str, ...]:
        """The ids of the two rows' runs with seed 0; () unless both exist at the scale."""
        cells = [self.runs.cell(at, pair.task) for at in (pair.row, pair.other)]
        return tuple(cell.spec_id for cell in cells if cell is not None) if None not in cells else ()

    def _pairs(self, pair: Pair) -> Pairs:
        return self.runs.paired(pair.row, pair.other, pair.task)

    @once
    def _compared(self, compare: Callable[[Pairs, str], Estimate], pair: Pair) -> Estimate | None:
        """Two rows compared by a score; claims and their readings share comparisons."""
        pairs = self._pairs(pair)
        return compare(pairs, pair.score) if pairs else None

    def leads(self, pair: Pair, relative: bool) -> Iterator[tuple[At, Evidence | None]]:
        """By how much the other row is better than each row that does nothing.

        A constant answer has no correlation: against it, the other's own correlation counts.
        """
        for idle in self.tables.idle(pair.other):
            compare = relative_difference if relative else lead
            estimate = self._compared(compare, Pair(pair.other, idle, pair.task, pair.score))
            yield idle, None if estimate is None else evidence(estimate)

    def p_value(self, pair: Pair, table: str) -> Evidence | None:
        pairs = self._pairs(pair)
        if not pairs:
            return self._checked(pair, None)
        return evidence(unpaired_p(pairs, pair.score), reasons=((self.tables.task(pair.row, pair.task), NO_EVIDENCE),))

    def average_margin(self, relation: AverageBetter, rivals: Mapping[str, At]) -> Evidence | None:
        return average_margin(self.runs, relation, rivals)

    def level(self, relation: AtMost, row: At, task: str) -> Evidence | None:
        """The score of an attack: what it recovers is no ordering, so no gate is asked."""
        records, column = self.runs.of(row, task), self.tables.column(row, task)
        if not records or column is None:
            return None
        note = ""
        if relation.beside:
            beside = scores_of(records, relation.beside)
            values, label = known(beside.at()), score_label(column, relation.beside)
            note = f"{label} {beside.metric.in_unit(number(mean(values)))}" if values else ""
        return evidence(level(records, relation.score), note=note)

    def gap(self, pair: Pair) -> Evidence | None:
        """The largest difference of any number of any round. Machines may differ in last bits: no verdict over two."""
        every = self._pairs(pair)
        pairs = [(own, its) for own, its in every if machine(own) == machine(its)] or every
        if not pairs:
            return None
        largest = max((_gap(own, its) for own, its in pairs), key=abs)
        if largest and machine(pairs[0][0]) != machine(pairs[0][1]):
            return Evidence(largest, None, len(pairs), "run on different machines")
        return derived(largest, len(pairs), "equal scores, but other losses or bytes" if math.isinf(largest) else "")

    # ---- targets -----------------------------------------------------------------------------------------------

    def above_target(self, relation: Reaches, row: At, task: str) -> Evidence | None:
        """By how much the best score of the rounds that count is better than the target of the same seed."""
        records, score, pair = self.runs.of(row, task), relation.target.score, Pair(row, row, task)
        wanted = goal(self.runs, relation.target, task, score, [record.cell.seed for record in records])
        if wanted is None:
            return self._checked(pair, None)
        runs = [record for record in records if record.cell.seed in wanted.by_seed]
        limits = [self._limit(relation, row, record, task) for record in runs]
        if 0 not in limits:
            return self._checked(pair, above(runs, limits, wanted, score), wanted.reason)
        reason = wanted.reason or ("" if self.is_paper else f"as tuned, {ABOVE}")  # tuning chose what a round sends
        return self._checked(pair, derived(-math.inf, len(runs), ABOVE), reason)

    def _limit(self, relation: Reaches, at: At, record: RunResult, task: str) -> int:
        """How many rounds are within the limit."""
        rounds = len(record.rounds) if relation.within_rounds is None else relation.within_rounds
        if relation.below_bytes is None:
            return rounds
        limit = self._byte_limit(relation, relation.below_bytes, task)
        return sum(bytes_until(record, count, self._directions(at)) < limit for count in range(1, rounds + 1))

    def _byte_limit(self, relation: Reaches, limit: float, task: str) -> float:
        """The paper's limit at its scale; elsewhere the same share of a round of the first baseline."""
        reference = relation.target.baselines[0]
        cost = self.runs.cost(reference, task)
        if self.is_paper or cost is None:
            return limit
        if relation.sizes is None:
            raise ReportError("claims: expected the published sizes of a round with a limit in bytes, found none.")
        paper = self.tables.benchmark(reference).paper
        numbers = self.numbers.get(paper.id, Numbers({}))
        size = numbers.at(relation.sizes.table, reference.published or reference.row, relation.sizes.column)
        return limit / (float(size) * paper.gigabyte) * cost.round_bytes

    def bytes_to_target(self, relation: CostBound, pair: Pair) -> Evidence | None:
        """Bytes until a target depend on who reaches it, and when."""
        if relation.target is None:
            return None
        pairs, score = self._pairs(pair), relation.target.score
        wanted = goal(self.runs, relation.target, pair.task, score, _seeds(pairs))
        if wanted is None:
            return self._checked(pair, None)
        ratio = byte_ratio(pairs, wanted, score, self._directions(pair.row))
        cost = self.runs.cost(pair.row, pair.task)
        idle = SENDS_NOTHING if cost and not cost.round_bytes else self.runs.failed(pair.other, pair.task)
        return self._checked(pair, ratio, wanted.reason or idle)

    # ---- costs -------------------------------------------------------------------------------------------------

    def cost(self, relation: CostBound, pair: Pair) -> Evidence | None:
        """Two rows' costs compared; what training takes in seconds depends on what else a machine did."""
        rows, task = (pair.row, pair.other), pair.task
        if relation.of == "flops":
            flops = [self._flops(at, task) for at in rows]
            return None if None in flops else derived(relation.compare(*flops), 0, f"FLOPs {self._by_shapes(pair.row)}")
        if relation.of == "seconds":
            return self._seconds(relation, pair)
        if relation.of == "epoch":
            return self._modelled(relation, pair)

        def compare(*costs: Cost) -> float:
            quotient: float = relation.compare(*(getattr(cost, f"{relation.of}_bytes") for cost in costs))
            return quotient

        return self._by_bytes(rows, task, compare, " %" if relation.share else " ×", relation.texts)

    def _seconds(self, relation: CostBound, pair: Pair) -> Evidence | None:
        """Seconds of training, timed side by side with the paper's encoder where that was done, and in our runs."""
        rows, task = (pair.row, pair.other), pair.task
        costs = [cost for at in rows if (cost := self.runs.cost(at, task)) is not None]
        times = [cost.train_seconds / cost.rounds for cost in costs if cost.train_seconds is not None]
        ours = relation.compare(*times) if len(times) == len(rows) else None
        n, name = min((cost.seeds for cost in costs), default=0), self.tables.task(pair.row, task)
        timed = self._timed(pair)
        if timed is None:
            return None if ours is None else Evidence(ours, None, n, reasons=((name, BESIDE_OTHERS),))
        in_runs = "no run" if ours is None else f"{number(ours)} % in our runs"
        note = f"timed side by side on a CPU {self._by_shapes(pair.row).replace('by', 'with', 1)}; {in_runs}"
        return Evidence(timed, None, n, note, reasons=((name, ONE_MACHINE),))

    def _timed(self, pair: Pair) -> float | None:
        """The row's seconds in percent of its table's baseline, from the run that timed both; None without one."""
        table = self.tables.benchmark(pair.row)
        if table.costing is None or table.costing.baseline != pair.other.row:
            return None
        timed = Resources(request_for(table, table.scale(PAPER), ())).timed
        return None if timed is None else timed.percent.get(pair.row.row)

    def _modelled(self, relation: CostBound, pair: Pair) -> Evidence | None:
        """All clients' epoch as split learning's table models it: the case with the largest quotient, others in a note."""
        table = self.tables.benchmark(pair.row)
        if self.derive is None or table.view.name != "split":
            return None
        split = Split(request_for(table, table.scale(PAPER), (), derive=self.derive(table)))
        ways = [way_of(self.tables.row(at)) for at in (pair.row, pair.other)]
        cases = {
            ", ".join(case): relation.compare(*(times[way] for way in ways)) for case, times in split.modelled.items()
        }
        if not cases:
            return None
        texts = [f"{case}: {number(value)}" for case, value in sorted(cases.items(), key=lambda each: -each[1])]
        return Evidence(
            max(cases.values()), None, 0, "; ".join(texts), reasons=((self.tables.task(pair.row, pair.task), MODELLED),)
        )

    def total(self, relation: Sends, row: At, task: str) -> Evidence | None:
        """GB of so many rounds. Only the paper's encoder decides about a number of bytes."""
        if not self.is_paper and self._derived(row, task) is None:
            return None
        gigabyte = self.tables.benchmark(row).paper.gigabyte
        return self._by_bytes((row,), task, lambda cost: relation.rounds * cost.round_bytes / gigabyte, " GB")

    def _by_bytes(
        self, rows: Sequence[At], task: str, compare: Callable[..., float], unit: str, texts: int | None = None
    ) -> Evidence | None:
        """By the paper's own encoder: measured at its scale, else by its shapes, with our runs' value as a note."""
        costs = [cost for at in rows if (cost := self.runs.cost(*self.tables.costed(at, task))) is not None]
        is_run = len(costs) == len(rows)
        measured, n = (compare(*costs), min(cost.seeds for cost in costs)) if is_run else (None, 0)
        shapes = [cost for at in rows if (cost := self._derived(at, task, texts)) is not None]
        if len(shapes) < len(rows) or (measured is not None and self.is_paper):
            return None if measured is None else derived(measured, n)
        ours = "no run" if measured is None else f"{number(measured)}{unit} in our runs"
        return derived(compare(*shapes), n, f"{self._by_shapes(rows[0])}; {ours}")

    def _flops(self, at: At, task: str) -> float | None:
        """Of one client's training on a text, with the paper's own encoder."""
        costed = self._costed(at, task)
        if self.derive_flops is None or costed is None:
            return None
        table, row, column = costed
        return self.derive_flops(table.cell(row, column, table.scale(PAPER), 0))

    def _by_shapes(self, at: At) -> str:
        return f"by {self.tables.benchmark(at).scale(PAPER).backbone}'s shapes"

    def _costed(self, at: At, task: str) -> tuple[Benchmark, Row, Column] | None:
        """The runs whose cost is a row's at the paper's scale: its own, or earlier ones with its table's encoder."""
        table, column = self.tables.benchmark(at), self.tables.column(at, task)
        if column is None or PAPER not in {scale.id for scale in table.scales}:
            return None
        if table.stage is None:
            return table, self.tables.row(at), column
        scale, (earlier_at, earlier_task) = table.scale(PAPER), self.tables.costed(at, task)
        earlier = self.tables.benchmark(earlier_at)
        at_paper = replace(earlier.scale(PAPER), backbone=scale.backbone, depth=scale.depth)
        scales = tuple(at_paper if each.id == PAPER else each for each in earlier.scales)
        earlier_column = self.tables.column(earlier_at, earlier_task)
        return earlier_column and (replace(earlier, scales=scales), self.tables.row(earlier_at), earlier_column)

    @once
    def _derived(self, at: At, task: str, texts: int | None = None) -> Cost | None:
        """What the paper's own encoder sends; with as many texts as its equation says, if it has one."""
        costed = self._costed(at, task)
        if self.derive is None or costed is None:
            return None
        table, row, column = costed
        request = request_for(replace(table, columns=(column,)), table.scale(PAPER), (), derive=self.derive(table))
        if texts is None and row.id in table.closed_forms:
            return Costs(request).derived_run(row)
        return derived_cost(request, row, texts)


def _seeds(pairs: Pairs) -> list[int]:
    return [own.cell.seed for own, _ in pairs]


def _gap(own: RunResult, its: RunResult) -> float:
    """The largest difference of two runs' scores, in their units; infinite if only other numbers differ."""
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
