"""The first page: what it counts, what it tells and what it keeps to itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.claims import Claim
from benchmarks.registry import benchmark
from benchmarks.shapes import derive_for
from reports.audit.checks import Finding
from reports.claims.judge import Judgement
from reports.evidence.records import request_for
from reports.front.picture import _sent, front_picture
from reports.front.state import MEASURED, MOST, Headline, Standing, front_markdown

TABLE = benchmark("fedsplitbert-table3")
LITE = TABLE.scale("lite")


def judged(ours: str, headline: bool = False, **fields: Any) -> Judgement:
    claim = Claim("1a", "c < 6 is better", "section I", (), headline=headline)
    return Judgement(claim, "FedSplitBERT", LITE, "holds", "", ours, "5 > 4", **fields)


FOUND = Finding("a", "Costs", "bytes are 4", "5", "4", False, "by shapes")


def standing(*judgements: Judgement, findings: tuple[Finding, ...] = (FOUND,)) -> Standing:
    return Standing(TABLE.paper, "there/README.md", {"Table III": (2, 9), "Figure 3": (0, 4)}, judgements, findings)


def test_a_paper_is_a_line_of_counts() -> None:
    verdicts = ["supported", "holds by derivation", "contradicted", "fails by derivation", "undecided", "not run"]
    text = front_markdown([standing(*map(judged, verdicts))], "lite")
    assert text.splitlines()[-1] == (
        "| [FedSplitBERT](there/README.md) | Table III 2/9 · Figure 3 0/4 | 2, 2, 2 | 0, 1 |"
    )
    assert text.startswith("Scale `lite` (docs/usage.md says what its numbers mean):\n")


def test_headlines_are_told_once_they_are_decided() -> None:
    told = front_markdown([standing(judged("contradicted", headline=True, effect="−1 [−2, −1]"))], "lite")
    assert r"- [FedSplitBERT](there/README.md): “c \< 6 is better” **contradicted**: −1 \[−2, −1\] (claim 1a)" in told
    otherwise = {"on averages": ("", "", "undecided", ""), "on CoLA": ("", "", "contradicted", "")}
    told = front_markdown([standing(judged("contradicted", True, effect="−1", otherwise=otherwise))], "lite")
    assert "“c \\< 6 is better” **contradicted**: −1; read as on averages: undecided (claim 1a)" in told
    for ours, headline in (("contradicted", False), ("undecided", True), ("not judged", True), ("not run", True)):
        assert "What was found" not in front_markdown([standing(judged(ours, headline=headline))], "lite")


def test_checks_that_are_headlines_are_told_with_both_numbers() -> None:
    text = front_markdown([standing(findings=(replace(FOUND, headline=True),))], "lite")
    assert "bytes are 4: **inconsistent**; published 5, recomputed 4 (by shapes)" in text
    underivable = replace(FOUND, headline=True, agrees=None)
    assert "What was found" not in front_markdown([standing(findings=(underivable,))], "lite")


def test_studies_are_told_as_what_was_measured() -> None:
    study = Headline("What a prior gains", MEASURED, "MRPC +7.10 [+1.77, +12.43] (3)", note="a study", study="the-id")
    text = front_markdown([replace(standing(), studies=(study,))], "lite")
    assert r": What a prior gains: **measured**; MRPC +7.10 \[+1.77, +12.43\] (3) (a study)" in text


def test_there_are_not_too_many() -> None:
    text = front_markdown([standing(*[judged("supported", headline=True)] * (MOST + 3))], "lite")
    assert text.count("**supported**") == MOST


def test_the_picture_says_how_many_seeds_stand_behind_it() -> None:
    column = next(column for column in TABLE.columns if column.task == "mrpc")
    request = request_for(TABLE, LITE, (), columns=[column])
    legend = front_picture(request, column, "test/accuracy", "fedavg", "local-majority").legends[0]
    title = " ".join(legend.get_title().get_text().split())
    assert title.startswith("Full marks: reproduced, scale lite (")
    assert ", not run; levels are not comparable" in title
    (shown,) = (text.get_text() for text in legend.get_texts())
    assert shown == "hollow: reported"


def test_what_begins_from_a_row_costs_what_that_costs() -> None:
    """Fine-tuning after FedAvg sends nothing itself."""
    column = next(column for column in TABLE.columns if column.task == "mrpc")
    request = request_for(TABLE, LITE, (), columns=[column], derive=derive_for(TABLE))
    sent = {row.id: _sent(request, row, column, LITE, "fedavg") for row in request.rows}
    assert sent["fedavg-finetuned"] == sent["fedavg-prior"] == sent["fedavg"] == 1
    assert sent["local-only"] == 0
