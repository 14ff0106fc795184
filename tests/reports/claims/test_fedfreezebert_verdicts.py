"""FedFreezeBERT's claims in print: the few stated scores, those derived from prose, and the paper's equations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cli.paper import benchmarks_of, published_of
from benchmarks.registry import claims_of
from benchmarks.spec import Published
from reports.claims.judge import judge, judge_in_print
from reports.claims.wording import printed_numbers
from reports.evidence.published import Numbers, by_place, read_folder, read_published

BENCHMARKS = benchmarks_of("fedfreezebert")
PUBLISHED = published_of(BENCHMARKS.values())
CLAIMS = {claim.id: claim for claim in claims_of("fedfreezebert")}
FOLDER = Path(BENCHMARKS["fedfreezebert-table3"].published_csv).parent
ENTRIES = read_folder(FOLDER)
F1 = ("arsarcasm", "test/f1_pn")
LEFT_OUT = "no numbers; what is derived from this very sentence is left out"

VERDICTS = {
    **dict.fromkeys(("1a", "1b", "1f", "2a", "2b"), "not printed"),  # what there is was derived from them
    **dict.fromkeys(("1c", "1d", "1e", "3a", "5a"), "holds"),  # on numbers derived from other sentences
    **dict.fromkeys(("3b", "3c", "4a", "4b", "4c", "5b", "5c", "5d", "5e", "6a", "6b", "6c"), "not printed"),
    **dict.fromkeys(("7a", "7b"), "not printed"),  # most of Table 3 was not at hand
    **dict.fromkeys(("8a", "8b", "8c", "8d", "8e", "8f", "15"), "holds"),  # by the paper's equations
    "9": "not printed",
    "10": "holds",  # by FedSplitBERT's Table IV
    "11": "not printed",  # the original's accuracy alone is
    "12": "holds",  # on numbers derived from 1a and 1b
    **dict.fromkeys(("13", "14"), "not printed"),
}


def in_print(key: str, entries: Iterable[Published] = ENTRIES) -> tuple[str, str]:
    published = {**PUBLISHED, "fedfreezebert": Numbers.of(entries)}
    found = judge_in_print(CLAIMS[key], published, BENCHMARKS)
    return found.verdict, printed_numbers(found)


def changed(row: str, value: float, table: str = "Table 3", column: str = "arsarcasm") -> list[Published]:
    at = [entry for entry in ENTRIES if (entry.table, entry.row, entry.column) == (table, row, column)]
    assert len(at) == 1
    assert at[0].value != value
    return [replace(entry, value=value) if entry is at[0] else entry for entry in ENTRIES]


def test_every_verdict() -> None:
    assert {key: in_print(key)[0] for key in CLAIMS} == VERDICTS


def test_derived_scores_follow_from_the_stated_gains() -> None:
    published = by_place(read_published(FOLDER / "table3.csv"), "Table 3")
    values = {row: entry.value for (row, *score), entry in published.items() if tuple(score) == F1}
    derived = {row for (row, *_), entry in published.items() if entry.derivation}
    stated = {(row, over): entry.value for (row, over, _), entry in by_place(ENTRIES, "Text").items()}
    assert {row: value for row, value in values.items() if row not in derived} == {
        "central-psum": 74.63,
        "c-psum": 75.26,
        "c-hsum": 74.94,
    }
    for row, source in {
        "fedavg-ordinary": "c-psum",
        "fedprox-ordinary": "c-psum",
        "central-ordinary": "c-psum",
        "fedsplitbert-ordinary": "c-hsum",
    }.items():
        gain = stated[source, row.replace("fedprox", "fedavg")]  # the text names the two together
        assert values[row] == pytest.approx(values[source] / (1 + gain / 100))
    gain = stated["fedsplitbert-hsum", "fedsplitbert-ordinary"]
    assert values["fedsplitbert-hsum"] == pytest.approx(values["fedsplitbert-ordinary"] * (1 + gain / 100))
    assert {row: f"{values[row]:.2f}" for row in sorted(derived)} == {
        "central-ordinary": "73.50",
        "fedavg-ordinary": "66.66",
        "fedprox-ordinary": "66.66",
        "fedsplitbert-hsum": "74.88",
        "fedsplitbert-ordinary": "74.39",
    }


@pytest.mark.parametrize("key", ["1a", "1b", "1f", "2a", "2b"])
def test_a_sentence_is_no_proof_of_itself(key: str) -> None:
    assert in_print(key) == ("not printed", LEFT_OUT)


def test_other_sentences_use_derived_numbers_and_say_so() -> None:
    # 75.26 / (74.94 / 1.0074) = 1.0117; (74.94 / 1.0074) - (75.26 / 1.024) = 0.89.
    score = "ArSarcasm-v2 F1^PN"
    assert in_print("1c") == (
        "holds",
        f"C-FedFreezeBERT · P-SUM − FedSplitBERT · ordinary, {score} +1.17 % (derived from prose)",
    )
    assert in_print("3a")[1].endswith(f"Centralised training · ordinary, {score} +0.89 (derived from prose)")
    lower = changed("fedsplitbert-ordinary", 73.0)
    verdict, numbers = in_print("3a", lower)
    assert (verdict, "2 of 3 hold; not:" in numbers) == ("does not hold", True)
    printed = in_print("7a")[1]
    assert printed == (
        f"7 of 7 hold, 20 not printed; least: C-FedFreezeBERT · P-SUM − C-FedFreezeBERT · H-SUM, {score} +0.32"
    )


def test_gains_follow_from_the_equations() -> None:
    # 2 · 5 · 5 · 651.37 MB against 2 · 5 · 5 · 113.44 MB, and 4 · 12548 · 128 · 768 / 2^30 GB + 5 · 113.44 / 1024 GB.
    c_gb = 4 * 12548 * 128 * 768 / 2**30 + 5 * 113.44 / 1024
    gains = {
        "8a": 651.37 / 113.44,
        "8b": (8 * 28.35 + 308) / 113.44,
        "8c": 50 * 651.37 / 1024 / c_gb,
        "8d": 50 * (8 * 28.35 + 308) / 1024 / c_gb,
    }
    assert [f"{gain:.1f}" for gain in gains.values()] == ["5.7", "4.7", "6.2", "5.1"]
    for key, gain in gains.items():
        assert f" {gain:.2f} × (equations " in in_print(key)[1]
    smaller = changed("parameters", 600.0, "Table 4", "BERT_mb")
    assert [in_print(key, smaller)[0] for key in ("8a", "8b", "8c", "8d")] == [
        "does not hold",
        "holds",
        "does not hold",
        "holds",
    ]
    without = [entry for entry in ENTRIES if entry.row != "parameters"]
    assert in_print("8a", without) == ("not printed", "no numbers")


def test_another_papers_table_is_read_as_that_papers() -> None:
    # 77.72 against 77.58 of c = 10, the nearest of five
    least = "averages of c = 8 over c = 10 +0.14 (Table IV +0.14)"
    assert in_print("10") == ("holds", f"5 of 5 hold; least: {least}")
    assert judge_in_print(CLAIMS["10"], {"fedfreezebert": PUBLISHED["fedfreezebert"]}, BENCHMARKS).verdict == (
        "not printed"
    )


def test_the_originals_accuracy_is_not_the_reimplementations() -> None:
    assert in_print("11") == ("not printed", "no numbers")
    own = Published("Table 2", "reimplementation", "sst2", "test/accuracy", 93.0)
    assert in_print("11", [*ENTRIES, own])[0] == "holds"
    assert in_print("11", [*ENTRIES, replace(own, value=92.0)])[0] == "does not hold"


def test_without_records_every_claim_is_not_run() -> None:
    scale = BENCHMARKS["fedfreezebert-table3"].scale("lite")
    judged = judge("FedFreezeBERT", tuple(CLAIMS.values()), PUBLISHED, [], BENCHMARKS, scale)
    assert [found.claim.id for found in judged] == list(CLAIMS)
    assert {(found.paper, found.ours, found.ours_numbers) for found in judged} == {
        ("FedFreezeBERT", "not run", "not run")
    }
