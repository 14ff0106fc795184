"""What an audit may ask for, whatever its paper."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from benchmarks.claims import Claim
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark
from reports.audit.finding import Numbers
from reports.page import Derive, Request, request_for


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
        """The paper's own."""
        return self.published[self.paper]

    def request(self, benchmark_id: str, row_ids: Collection[str]) -> Request:
        """Some rows of a benchmark at the paper's own scale, without records."""
        whole = self.benchmarks[benchmark_id]
        table = replace(whole, rows=tuple(row for row in whole.rows if row.id in row_ids))
        return request_for(table, table.scale("paper"), (), derive=self.derive(table) if self.derive else None)
