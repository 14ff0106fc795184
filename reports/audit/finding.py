"""What an audit may ask for, whatever its paper, and what it finds. Exact decimals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from benchmarks.claims import Claim
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark
from reports.evidence.published import Numbers
from reports.evidence.records import PAPER, Derive, Request, request_for


@dataclass(frozen=True)
class Finding:
    """One statement of a paper beside what the paper's own numbers give.

    agrees: None where nothing that is given decides it, such as a size that no reading of the method yields.
    """

    id: str
    subject: str  # the part of the audit that it belongs to
    statement: str
    printed: str
    recomputed: str
    agrees: bool | None
    explanation: str = ""  # the rule applied, and what else a reader should know

    @property
    def verdict(self) -> str:
        return {True: "agrees", False: "does not agree", None: "not derivable"}[self.agrees]


Check = Callable[[Numbers], Iterable[Finding]]


def audit(numbers: Numbers, checks: Iterable[Check]) -> tuple[Finding, ...]:
    """The findings of a list of checks, in its order."""
    return tuple(finding for check in checks for finding in check(numbers))


@dataclass(frozen=True)
class Material:
    """A paper's numbers and sentences, and what is known beside them.

    published: a paper's id -> its numbers; benchmarks: by id. Of this paper, and of others that its claims speak of.
    derive: what the rounds of a benchmark's cells send; without it, findings by exact bytes are left out.
    """

    paper: str
    published: Mapping[str, Numbers]
    benchmarks: Mapping[str, Benchmark]
    claims: tuple[Claim, ...] = ()
    records: tuple[RunRecord, ...] = ()
    derive: Callable[[Benchmark], Derive] | None = None

    @property
    def numbers(self) -> Numbers:
        return self.published[self.paper]

    def request(self, benchmark_id: str, row_ids: Collection[str]) -> Request:
        whole = self.benchmarks[benchmark_id]
        table = replace(whole, rows=tuple(row for row in whole.rows if row.id in row_ids))
        return request_for(table, table.scale(PAPER), (), derive=self.derive(table) if self.derive else None)
