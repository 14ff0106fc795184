"""The sentences of a paper's text, judged on what its tables print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.claims import Claim
from benchmarks.spec import Benchmark
from reports.audit.finding import Finding, Numbers
from reports.claims import judge_in_print
from reports.claims.case import State
from reports.claims.opinion import printed_numbers

SENTENCES = "Sentences of the text"


def in_print(
    _: Numbers, claims: Sequence[Claim], published: Mapping[str, Numbers], benchmarks: Mapping[str, Benchmark]
) -> Iterator[Finding]:
    """Every claim that printed numbers decide, with all comparisons that speak against it.

    published: a paper's id -> its numbers, of every paper that the claims speak of.
    """
    for claim in claims:
        found = judge_in_print(claim, published, benchmarks)
        if found.state in (State.YES, State.NO):
            asked = dict.fromkeys(case.asked.text for case in found.cases)
            yield Finding(
                f"claim {claim.id}",
                SENTENCES,
                f"Claim {claim.id}, {claim.place}: “{claim.quotation}”",
                ", ".join(asked),
                printed_numbers(found, most=None),
                found.state is State.YES,
                claim.reading,
            )
