"""Claims that docs/protocol.md decides, by comparisons on fresh seeds, read only when all runs are finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.claims import Relation
from reports.claims.cells import Runs
from reports.claims.hypothesis import Verdict, decide
from reports.claims.measured import MeasuredNumbers
from reports.claims.relations import hypotheses_of


@dataclass(frozen=True)
class Deciding:
    """The comparisons that decide a claim, and the runs that they compare.

    missing: the finished runs, such as "21 of 36", while some are missing; "" if all are finished.
    """

    relations: Sequence[Relation]
    runs: Runs
    missing: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict on all comparisons; without a number until every run is finished."""
        runs = replace(self.runs, records=()) if self.missing else self.runs
        verdict = decide(hypotheses_of(self.relations, MeasuredNumbers(runs, {})))
        return replace(verdict, missing=self.missing)
