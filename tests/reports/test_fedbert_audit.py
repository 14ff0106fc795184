"""The audit of FedBERT's printed numbers, by hand arithmetic, and that a changed digit is noticed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cli.paper import benchmarks_of, published_of
from benchmarks.costs import ModelSizes
from benchmarks.registry import claims_of
from benchmarks.spec import Published
from reports import ReportError
from reports.audit.checks import Finding, Material, audit_markdown
from reports.audit.fedbert import findings as find
from reports.audit.fedbert_costs import of_encoder
from reports.evidence.published import Numbers, read_folder

BENCHMARKS = benchmarks_of("fedbert")
PUBLISHED = published_of(BENCHMARKS.values())
CLAIMS = claims_of("fedbert")
ENTRIES = read_folder(Path(BENCHMARKS["fedbert-table6"].published_csv).parent)
WIKITEXT_WORDS = 103_227_021


def findings(entries: Iterable[Published] = ENTRIES) -> dict[str, Finding]:
    published = {**PUBLISHED, "fedbert": Numbers.of(entries)}
    found = find(Material("fedbert", published, BENCHMARKS, CLAIMS))
    assert len({finding.id for finding in found}) == len(found)
    return {finding.id: finding for finding in found}


def changed(table: str, row: str, column: str, value: float, score: str = "test/accuracy") -> list[Published]:
    at = [
        entry for entry in ENTRIES if (entry.table, entry.row, entry.column, entry.score) == (table, row, column, score)
    ]
    assert len(at) == 1
    assert at[0].value != value
    return [replace(entry, value=value) if entry is at[0] else entry for entry in ENTRIES]


FOUND = findings()


def test_verdicts_by_subject() -> None:
    agree = {key for key, finding in FOUND.items() if finding.agrees and not key.startswith("claim ")}
    assert agree == {
        "difference, fedavg",
        "difference, emdavg",
        "twins, Table 6",
        "second, Table 6",
        "diverged",
        "gpt, averages",
    }
    assert not [key for key, finding in FOUND.items() if finding.agrees is None]
    assert "| Statement |" in audit_markdown(tuple(FOUND.values()))


def test_printed_claims_are_among_them() -> None:
    judged = {key.removeprefix("claim ") for key in FOUND if key.startswith("claim ")}
    assert {"1a", "1b", "2b", "6a", "12"} < judged < {claim.id for claim in CLAIMS}


# ---- what is printed twice --------------------------------------------------------------------------------------


def test_section_5_4_has_other_numbers_than_table_6() -> None:
    fedavg, pearson, emdavg = (
        FOUND[f"period 50, {row}"] for row in ("fedavg, rte-central", "fedavg, stsb-central", "emdavg, rte-central")
    )
    assert [(found.printed, found.recomputed) for found in (fedavg, pearson, emdavg)] == [
        ("58.80", "52.70"), ("75.40", "73.40"), ("52.00", "51.30"),
    ]  # fmt: skip
    assert fedavg.explanation.endswith("Parallel FedAvg")
    assert pearson.explanation.endswith("Parallel FedAvg")
    assert emdavg.explanation.endswith("none")
    assert FOUND["period 100, fedavg"].printed == FOUND["period 100, fedavg"].recomputed == "57.40"
    assert findings(changed("Table 6", "fedavg", "rte-central", 58.8))["period 50, fedavg, rte-central"].agrees


def test_two_rows_of_table_7_have_one_pair() -> None:
    assert FOUND["twins, Table 7"].recomputed == "Head-Emd Avg and Single Client 71.72/71.91"
    assert findings(changed("Table 7", "single", "mnli-central", 71.73))["twins, Table 7"].agrees


def test_differences_are_those_of_the_text() -> None:
    assert FOUND["difference, fedavg"].printed == "1.4"
    assert not findings(changed("Figure 9", "emdavg", "rte-central", 52.1))["difference, emdavg"].agrees


# ---- words, averages --------------------------------------------------------------------------------------------


def test_points_are_no_percents() -> None:
    assert [(FOUND[f"percent, {of}"].printed, FOUND[f"percent, {of}"].recomputed) for of in ("central", "share")] == [
        ("11.0", "13.4"),  # 11 / 81.8
        ("7.5", "9.6"),  # 7.5 / 78.3
    ]


def test_fedavg_is_second_in_one_table_alone() -> None:
    mean = sum((52.7, 72.3, 71.0, 71.8, 83.7, 84.7, 73.4, 86.1)) / 8
    assert f"FedAvg, EmdAvg, Head-Emd Avg {mean:.2f}, " in FOUND["second, Table 6"].explanation
    assert FOUND["second, Table 7"].recomputed == "1. of 3"
    for table in (6, 7):
        assert "the best is Head-Emd Share" in FOUND[f"best, Table {table}"].explanation


def test_gpts_numbers() -> None:
    assert (FOUND["decrease"].printed, FOUND["decrease"].recomputed) == ("+0.56", "−0.56")
    assert FOUND["tied"].printed == "39.03 / 39.52"
    assert (
        findings(changed("Table 8", "fedavg", "wikitext-causal", 50000, "test/perplexity"))["diverged"].agrees is False
    )


# ---- budgets ----------------------------------------------------------------------------------------------------


def test_updates_of_clients() -> None:
    least = WIKITEXT_WORDS * 500 // (10 * 512 * 256)
    assert FOUND["share, updates"].recomputed == f"at least {10 * least}"
    assert "client 4 of 10, or sooner" in FOUND["share, updates"].explanation  # 125 000 / 39 378
    assert FOUND["client, updates"].recomputed.startswith(f"at least {least}, ")
    assert FOUND["gpt, warm-up"].recomputed == f"at least {WIKITEXT_WORDS * 20 // (5 * 512 * 256)}"
    assert findings(changed("Table 4", "pretraining", "warmup", 3000, ""))["gpt, warm-up"].agrees


def test_table_5s_batches_are_not_those_of_its_epochs() -> None:
    for task, printed, recipe in (("rte", 2036 * 256 / 2490, 13.1), ("mnli", 123873 * 512 / 392702, 10.1)):
        found = FOUND[f"epochs, {task}-central"]
        assert float(found.recomputed) == pytest.approx(printed, abs=0.06)
        assert found.explanation.endswith(f"they are {recipe}")
    assert findings(changed("Table 5", "mrpc-central", "batch", 16, ""))["epochs, mrpc-central"].agrees
    assert (FOUND["warm-up"].printed, FOUND["warm-up"].recomputed) == ("6.0 %", "QQP 25.0 %")


# ---- shapes -----------------------------------------------------------------------------------------------------


def shapes(key: str, words: int, positions: int, width: int, head: int) -> dict[str, Finding]:
    """Findings of an encoder of 12 layers, by the numbers of its parameters."""
    embeddings = words * width + positions * width + (0 if key == "gpt2" else 3 * width)
    layer = 12 * width**2 + 13 * width
    whole = embeddings + 12 * layer + head + (2 * width if key == "gpt2" else 0)
    sizes = ModelSizes(*(4 * size for size in (embeddings, layer, head, whole)), width, 1, all_tokens=True)
    return {found.id: found for found in of_encoder(Numbers.of(ENTRIES), key, key, sizes)}


def test_parameters_and_work_of_the_three_encoders() -> None:
    small, base = (
        shapes(key, 50265, 514, width, width**2 + 3 * width + 50265) for key, width in (("small", 256), ("base", 768))
    )
    gpt = shapes("gpt2", 50257, 1024, 768, 0)
    assert [small["parameters, small"].recomputed, base["parameters, base"].recomputed] == ["23", "125"]
    assert (gpt["parameters, gpt2"].recomputed, gpt["head, gpt2"].agrees) == ("124", False)
    assert [found.agrees for found in (small["parameters, small"], base["parameters, base"])] == [True, False]
    assert not any(found[f"work, {key}"].agrees for key, found in (("small", small), ("gpt2", gpt)))
    assert float(gpt["work, gpt2"].recomputed.rstrip(" %")) == pytest.approx(42, abs=3)
    crossing = base["crossing, base"]
    assert (
        crossing.recomputed == f"{4 * (WIKITEXT_WORDS // 10) * 768 * 4 / 1e9:.2f} GB of {8 * 124_697_433 / 1e9:.2f} GB"
    )


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ReportError, match=r"expected a published value at Table 8,fedavg,wikitext-causal"):
        findings([entry for entry in ENTRIES if (entry.table, entry.row) != ("Table 8", "fedavg")])
