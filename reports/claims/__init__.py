"""Claims, judged twice: on the paper's own printed numbers, and on our records at one scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.claims import Claim
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark, Scale
from reports.audit.finding import Numbers
from reports.claims.in_print import InPrint
from reports.claims.in_records import InRecords
from reports.claims.opinion import PRINT_WORDS, RECORD_WORDS, Opinion, opinion, printed_numbers, record_numbers
from reports.claims.runs import Runs
from reports.claims.tables import Tables
from reports.page import Derive

DEMO = "demo"  # generated data say nothing about a paper


@dataclass(frozen=True)
class Judgement:
    """A claim with its two verdicts.

    in_print: "holds", "does not hold" or "not printed"; ours: "supported", "contradicted", "inconclusive" or
    "not run". Each with its numbers in words.
    """

    claim: Claim
    paper: str
    scale: Scale
    in_print: str
    in_print_numbers: str
    ours: str
    ours_numbers: str


def judge_in_print(claim: Claim, published: Mapping[str, Numbers], benchmarks: Mapping[str, Benchmark]) -> Opinion:
    """What printed numbers say of a claim; those that were derived from its own words are left out.

    published: a paper's id -> its numbers; benchmarks: by id. Of every paper that the claim speaks of.
    """
    if not claim.is_source:
        return opinion(claim, InPrint(Tables(benchmarks), published), PRINT_WORDS)
    printed = {paper: numbers.printed for paper, numbers in published.items()}
    found = opinion(claim, InPrint(Tables(benchmarks), printed), PRINT_WORDS)
    return replace(found, note="what is derived from this very sentence is left out")


def judge(
    paper: str,
    claims: Sequence[Claim],
    published: Mapping[str, Numbers],
    records: Iterable[RunRecord],
    benchmarks: Mapping[str, Benchmark],
    scale: Scale,
    derive: Callable[[Benchmark], Derive] | None = None,
) -> tuple[Judgement, ...]:
    """Judge a paper's claims in print and on the records of a scale; none at the demo scale, whose data are generated.

    paper: its name. published: a paper's id -> its numbers. benchmarks: by id. Of all papers that the claims speak of;
    ReportError where a benchmark or one of its rows is missing. derive: what a benchmark's rounds send; without it,
    bytes of whole runs are those of the scale's records.
    """
    if scale.id == DEMO:
        return ()
    source = InRecords(Runs(Tables(benchmarks), scale, tuple(records)), published, derive)
    judged = []
    for claim in claims:
        in_print = judge_in_print(claim, published, benchmarks)
        ours = opinion(claim, source, RECORD_WORDS)
        partial = source.runs.partial(task for case in ours.known for task in case.tasks)
        judged.append(
            Judgement(
                claim,
                paper,
                scale,
                in_print.verdict,
                printed_numbers(in_print),
                ours.verdict,
                record_numbers(ours, partial),
            )
        )
    return tuple(judged)
