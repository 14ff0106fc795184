"""Judged claims as tables."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console

from benchmarks.claims import At, Better, Claim
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark
from reports.claims.judge import judge
from reports.claims.tables import RULE, claims_markdown, print_claims, summary

TABLE = "fedsplitbert-table3"


def test_a_line_for_each_claim_with_both_verdicts(
    seeds_of: Callable[..., list[RunRecord]],
    table3: Benchmark,
    opened: Callable[..., tuple[Benchmark, list[RunRecord]]],
) -> None:
    better = Better((At(TABLE, "fedsplitbert"),), (At(TABLE, "fedavg"),), tasks=("qqp",))
    claims = (
        Claim("1a", "c < 6 is better", "section I", (better,), reading="less than 6 layers."),
        Claim("1b", "and this too", "section II", (Better((At(TABLE, "fedprox"),), better.than),)),
    )
    records = seeds_of("fedsplitbert", "qqp", [65.0, 65.0]) + seeds_of("fedavg", "qqp", [60.0, 60.0])
    table, records = opened(table3, records)
    judged = judge("FedSplitBERT", claims, {}, records, {TABLE: table}, table3.scale("lite"))
    text = claims_markdown(judged)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(claims)
    assert lines[2].startswith(
        r"| 1a | “c \< 6 is better”<br>section I | not printed | supported | "
        r"FedSplitBERT − FedAvg, QQP +5.00 \[+4.10, +5.90\]<br>n = 2 | sees 1.37 |"
    )
    assert lines[3].endswith("| not printed | not run |  |  |")
    assert "- 1a: reported: no numbers; reproduced: n = 2; FedSplitBERT − FedAvg, QQP +5.00" in text
    assert text.startswith("### FedSplitBERT, claims · scale lite: real data, MiniLM\n")
    assert "- 1a: less than 6 layers." in text
    assert text.count("Rule (docs/statistics.md says why). Reported:") == 1
    assert summary(judged) == "2 claims: as reported 2 not printed; reproduced 1 supported, 1 not run."
    console = Console(file=io.StringIO(), width=2000)
    print_claims(judged, console)
    terminal = console.file.getvalue()  # type: ignore[attr-defined]
    for part in ("“c < 6 is better”", "supported", judged[0].ours_numbers, summary(judged), RULE):
        assert part in terminal


def test_no_claims_no_table() -> None:
    console = Console(file=io.StringIO())
    print_claims((), console)
    assert (claims_markdown(()), console.file.getvalue()) == ("", "")  # type: ignore[attr-defined]


def test_one_line_says_what_keeps_a_claim_open(
    seeds_of: Callable[..., list[RunRecord]],
    table3: Benchmark,
    opened: Callable[..., tuple[Benchmark, list[RunRecord]]],
) -> None:
    """Effect with interval, seeds, why, the smallest effect that they would have seen, and what to know besides."""
    better = Better((At(TABLE, "fedsplitbert"),), (At(TABLE, "fedavg"),), tasks=("qqp", "qnli"))
    claim = Claim(
        "1",
        "A sentence",
        "section I",
        (better,),
        caveats={"lite": "a small encoder", "paper": "a large one"},
        otherwise={"QQP alone": (Better(better.rows, better.than, tasks=("qqp",)),)},
    )
    records = seeds_of("fedsplitbert", "qqp", [61.0, 63.0, 65.0]) + seeds_of("fedavg", "qqp", [60.0] * 3)
    records += seeds_of("fedsplitbert", "qnli", [61.0, 63.0, 65.0]) + seeds_of("fedavg", "qnli", [60.0] * 3)
    table, records = opened(table3, records, shut=("qnli",))
    judged = judge("FedSplitBERT", (claim,), {}, records, {TABLE: table}, table3.scale("lite"))
    line = next(line for line in claims_markdown(judged).splitlines() if line.startswith("| 1 |"))
    cells = [cell.strip() for cell in line.strip("|").split(" | ")]
    assert cells[2:4] == ["not printed", "undecided"]
    assert cells[4].startswith("FedSplitBERT − FedAvg, QQP +3.00")
    assert cells[4].endswith("<br>n = 3")
    why, _, seen = cells[5].partition("; would have seen ")
    assert why == (
        "QNLI not judged: the encoder is too weak here: centralised training 90.0, a linear model 95.0, n = 8; 1 of 2 "
        r"on both sides of \> 0; a small encoder"
    )
    seen, _, more = seen.partition("; ")
    assert float(seen) > 3
    assert more == "5 seeds would decide this comparison at its effect and spread"
    console = Console(file=io.StringIO(), width=2000)
    print_claims(judged, console)
    terminal = console.file.getvalue()  # type: ignore[attr-defined]
    for part in (
        "; a small encoder; would have seen ",
        "read as QQP alone: reported not printed (no numbers); reproduced ",
    ):
        assert part in terminal


def test_a_reason_that_several_claims_share_is_told_once(
    seeds_of: Callable[..., list[RunRecord]],
    table3: Benchmark,
    opened: Callable[..., tuple[Benchmark, list[RunRecord]]],
) -> None:
    """Below the claims, with its columns; the site's cards, each of which may be linked to, tell it themselves."""
    rows, rivals = (At(TABLE, "fedsplitbert"),), (At(TABLE, "fedavg"),)
    asked = {"1": ("qqp", "qnli"), "2": ("qnli",), "3": ("qqp", "mrpc")}
    claims = [
        Claim(name, "A sentence", "section I", (Better(rows, rivals, tasks=tasks, scores=("test/accuracy",)),))
        for name, tasks in asked.items()
    ]
    records = [
        record
        for task in ("qqp", "qnli", "mrpc")
        for row, level in (("fedsplitbert", 65.0), ("fedavg", 60.0))
        for record in seeds_of(row, task, [level, level])
    ]
    table, records = opened(table3, records, shut=("qnli", "mrpc"))
    judged = judge("FedSplitBERT", claims, {}, records, {TABLE: table}, table3.scale("lite"))
    text = claims_markdown(judged)
    cells = [line.strip("|").split(" | ")[5] for line in text.splitlines() if line.startswith("| ")][2:]
    weak = "the encoder is too weak here: centralised training 90.0, a linear model 95.0, n = 8"
    assert [cell.split(";")[0].strip() for cell in cells] == [
        "QNLI not judged¹",
        "QNLI not judged¹",
        "MRPC not judged¹",
    ]
    assert text.count(weak) == 1
    assert f"\n\n¹ QNLI, MRPC: {weak}.\n\n" in text
    assert all(
        f"{name} not judged: {weak}" in found.remarks
        for name, found in zip(("QNLI", "QNLI", "MRPC"), judged, strict=True)
    )
    console = Console(file=io.StringIO(), width=2000)
    print_claims(judged, console)
    assert f"\n¹ QNLI, MRPC: {weak}.\n" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_reading_that_ends_otherwise_stands_beside_a_claim(
    seeds_of: Callable[..., list[RunRecord]],
    table3: Benchmark,
    opened: Callable[..., tuple[Benchmark, list[RunRecord]]],
) -> None:
    rows, rivals = (At(TABLE, "fedsplitbert"),), (At(TABLE, "fedavg"),)
    on_qqp = (Better(rows, rivals, tasks=("qqp",)),)
    claims = (
        Claim("1", "on all", "section I", (Better(rows, rivals),), otherwise={"QQP alone": on_qqp}),
        Claim("2", "on QQP", "section I", on_qqp, otherwise={"still QQP": on_qqp, "all": (Better(rows, rivals),)}),
    )
    records = seeds_of("fedsplitbert", "qqp", [65.0, 65.0]) + seeds_of("fedavg", "qqp", [60.0, 60.0])
    table, records = opened(table3, records)
    judged = judge("FedSplitBERT", claims, {}, records, {TABLE: table}, table3.scale("lite"))
    assert [found.ours for found in judged] == ["undecided", "supported"]
    assert [found.elsewhere for found in judged] == ["read as QQP alone: supported", "read as all: undecided"]
    assert all(found.remarks.endswith(f"; {found.elsewhere}") for found in judged)
