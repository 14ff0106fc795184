"""Judged claims as tables."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console

from benchmarks.claims import At, Better, Claim
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark
from reports.claims.judge import RULE, claims_markdown, judge, print_claims, summary, verdicts_markdown

TABLE = "fedsplitbert-table3"


def test_a_line_for_each_claim_with_both_verdicts(seeds_of: Callable[..., list[RunRecord]], table3: Benchmark) -> None:
    better = Better((At(TABLE, "fedsplitbert"),), (At(TABLE, "fedavg"),), tasks=("qqp",))
    claims = (
        Claim("1a", "c < 6 is better", "section I", (better,), reading="less than 6 layers."),
        Claim("1b", "and this too", "section II", (Better((At(TABLE, "fedprox"),), better.than),)),
    )
    records = seeds_of("fedsplitbert", "qqp", [65.0, 65.0]) + seeds_of("fedavg", "qqp", [60.0, 60.0])
    judged = judge("FedSplitBERT", claims, {}, records, {TABLE: table3}, table3.scale("lite"))
    text = claims_markdown(judged)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(claims)
    assert lines[2].startswith(
        r"| 1a | “c \< 6 is better” | section I | not printed | supported | print: no numbers<br>ours: n = 2; "
    )
    assert lines[3].endswith("| not printed | not run | print: no numbers<br>ours: not run |")
    assert text.startswith("### FedSplitBERT, claims · scale lite: real data, MiniLM\n")
    assert "- 1a: less than 6 layers." in text
    assert text.count("Rule. In print:") == 1
    assert summary(judged) == "2 claims: in print 2 not printed; in our records 1 supported, 1 not run."
    brief = [line for line in verdicts_markdown(judged).splitlines() if line.startswith("|")]
    assert brief[2:] == [
        r"| 1a | “c \< 6 is better” | section I | not printed | supported |",
        "| 1b | “and this too” | section II | not printed | not run |",
    ]
    console = Console(file=io.StringIO(), width=2000)
    print_claims(judged, console)
    terminal = console.file.getvalue()  # type: ignore[attr-defined]
    for part in ("“c < 6 is better”", "supported", judged[0].ours_numbers, summary(judged), RULE):
        assert part in terminal


def test_no_claims_no_table() -> None:
    console = Console(file=io.StringIO())
    print_claims((), console)
    assert verdicts_markdown(()) == ""
    assert (claims_markdown(()), console.file.getvalue()) == ("", "")  # type: ignore[attr-defined]
