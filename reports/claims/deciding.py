"""The comparisons by which the campaign's protocol decides a claim, and their verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from benchmarks.claims import At, AverageBetter, Better, Relation
from benchmarks.results import RunResult
from reports.claims import wording
from reports.claims.cells import Runs
from reports.claims.hypothesis import State, Verdict, decide
from reports.claims.measured import MeasuredNumbers
from reports.claims.relations import hypotheses_of


@dataclass(frozen=True)
class Deciding:
    """The comparisons that decide a claim, and the runs that they compare.

    missing: the finished runs, such as "21 of 36", while some are missing; "" if all are finished. instead: see
    `Decisive`.
    """

    relations: Sequence[Better | AverageBetter]
    runs: Runs
    missing: str = ""
    instead: Mapping[At, At] = field(default_factory=dict)

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict on all comparisons; without a number until every run is finished."""
        runs = replace(self.runs, records=()) if self.missing else self.runs
        verdict = decide(hypotheses_of(self.relations, MeasuredNumbers(runs, {})))
        return replace(verdict, missing=self.missing)

    @property
    def at_rounds(self) -> dict[str, Verdict]:
        """The verdicts on the same runs, scored at other rounds; empty until every run is finished."""
        runs = {} if self.missing else {which: replace(self.runs, score_at=which) for which in ("chosen", "last")}
        verdicts = {
            which: decide(hypotheses_of(self.relations, MeasuredNumbers(each, {}))) for which, each in runs.items()
        }
        return {which: ours for which, ours in verdicts.items() if wording.effect(ours) != wording.effect(self.verdict)}

    def reading(self, relations: Iterable[Relation], every: MeasuredNumbers) -> Verdict:
        """The verdict on another interpretation: by the same runs; without them, by exploratory runs."""
        relations = tuple(relations)
        verdict = decide(hypotheses_of(map(self._as_run, relations), MeasuredNumbers(self.runs, {})))
        return self.on_earlier(relations, every) if self.missing or verdict.state is State.MISSING else verdict

    def _as_run(self, relation: Relation) -> Relation:
        """An interpretation's relation with the rows that were run, on its tasks and scores, or those that decide."""
        if not isinstance(relation, Better | AverageBetter):
            return relation
        rows, than = (tuple(self.instead.get(at, at) for at in side) for side in (relation.rows, relation.than))
        scores = relation.scores or tuple(dict.fromkeys(score for one in self.relations for score in one.scores))
        return replace(relation, rows=rows, than=than, tasks=relation.tasks or tuple(self.runs.seeds), scores=scores)

    def on_earlier(self, relations: Iterable[Relation], every: MeasuredNumbers) -> Verdict:
        """The verdict by those of all runs that do not count here."""
        earlier = tuple(filter(self.is_earlier, every.runs.records))
        return decide(hypotheses_of(relations, replace(every, runs=replace(every.runs, records=earlier))))

    def is_earlier(self, record: RunResult) -> bool:
        """Whether a run does not count here."""
        return record.cell.seed not in self.runs.seeds.get(record.cell.task, ())
