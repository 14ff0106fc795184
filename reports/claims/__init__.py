"""Claims, judged twice: on the paper's own printed numbers, and on our records at one scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.claims import Claim
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark, Scale
from reports.audit.finding import Numbers
from reports.claims.in_print import InPrint
from reports.claims.in_records import InRecords
from reports.claims.opinion import PRINT_WORDS, RECORD_WORDS, Opinion, opinion, printed_numbers, record_numbers
from reports.claims.runs import Runs
from reports.claims.tables import Tables

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


def judge_in_print(claim: Claim, numbers: Numbers, benchmarks: Mapping[str, Benchmark]) -> Opinion:
    """What the paper's own printed numbers say of a claim."""
    return opinion(claim, InPrint(Tables(benchmarks), numbers), PRINT_WORDS)


def judge(
    claims: Sequence[Claim],
    published_numbers: Numbers,
    records: Iterable[RunRecord],
    benchmarks: Mapping[str, Benchmark],
    scale: Scale,
) -> tuple[Judgement, ...]:
    """Judge every claim in print and on the records of a scale; nothing at the demo scale, whose data are generated.

    benchmarks: by id, all that the claims name; ReportError where one of them, or one of its rows, is missing.
    """
    if scale.id == DEMO:
        return ()
    source = InRecords(Runs(Tables(benchmarks), scale, tuple(records)), published_numbers)
    judged = []
    for claim in claims:
        in_print = judge_in_print(claim, published_numbers, benchmarks)
        ours = opinion(claim, source, RECORD_WORDS)
        paper = next(iter(benchmarks.values())).paper.name
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
