"""FedBFPT's claims in print: what exact arithmetic on its tables gives, and that another digit gives another one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cli.paper import benchmarks_of, published_of
from benchmarks.registry import claims_of
from benchmarks.spec import Published
from reports.claims.judge import judge_in_print
from reports.claims.wording import printed_numbers
from reports.evidence.published import Numbers, read_folder

BENCHMARKS = benchmarks_of("fedbfpt")
PUBLISHED = published_of(BENCHMARKS.values())
CLAIMS = {claim.id: claim for claim in claims_of("fedbfpt")}
ENTRIES = read_folder(Path(BENCHMARKS["fedbfpt-table3"].published_csv).parent)

FALSE = {
    "1c",  # 71.98 against 72.24 and 72.44, 64.21 against 64.99
    "2c",  # reduced to 46.70 % and 7.04 %, not by these
    "3b",  # 577.85 s against TinyBERT-4's 373.59
    "3c",
    "4a",  # Rct-20k: 81.21 and 81.85 against BERT's 82.48
    "5c",  # 0.47 and 0.29 points on JNLPBA
    "5f",  # \S is the lowest in Table 4, \PL in the appendix
    "6d",  # depth 8 is below depth 6
    "6e",  # all six layers trained, and lower scores
}
OTHERWISE = {
    ("1a", "within 1 point"): "does not hold",  # Rct-20k +1.27
    ("1a", "within 2 % of BERT-FL's score"): "holds",
    ("1a", "no more than 1 point below"): "holds",
    ("1c", "BERT-FL alone"): "does not hold",
    ("3b", "communication alone"): "holds",
    ("3b", "computation alone"): "does not hold",
    ("4a", "BERT-C alone"): "does not hold",
    ("4a", "BERT-FL alone"): "does not hold",
    ("4a", "FEDBFPT alone"): "holds",
    ("4a", "somewhere (“can yield”)"): "holds",
    ("4a", "perplexity"): "not printed",
    ("5a", r"with \SP in each domain"): "not printed",
    ("5c", "Table 4 alone"): "holds",
    ("5c", r"\S is the worst of all"): "does not hold",
    ("7", "no more than 1 point"): "does not hold",  # SciERC −1.12
    ("8", r"the shallowest alone (\PL) above a round for each"): "does not hold",  # 64.07 against 64.18
}


def in_print(key: str, entries: Iterable[Published] = ENTRIES, reading: str = "") -> tuple[str, str]:
    claim = CLAIMS[key]
    relations = claim.otherwise[reading] if reading else claim.relations
    published = {**PUBLISHED, "fedbfpt": Numbers.of(entries)}
    found = judge_in_print(replace(claim, relations=relations), published, BENCHMARKS)
    return found.verdict, printed_numbers(found)


def changed(table: str, row: str, column: str, value: float, score: str | None = None) -> list[Published]:
    at = [
        entry
        for entry in ENTRIES
        if (entry.table, entry.row, entry.column) == (table, row, column) and score in (None, entry.score)
    ]
    assert len(at) == 1
    assert at[0].value != value
    return [replace(entry, value=value) if entry is at[0] else entry for entry in ENTRIES]


def test_every_verdict() -> None:
    verdicts = {key: in_print(key)[0] for key in CLAIMS}
    assert verdicts == {key: "does not hold" if key in FALSE else "holds" for key in CLAIMS}


@pytest.mark.parametrize(("key", "reading"), OTHERWISE, ids=[f"{key}, {name}" for key, name in OTHERWISE])
def test_other_readings(key: str, reading: str) -> None:
    assert in_print(key, reading=reading)[0] == OTHERWISE[key, reading]


@pytest.mark.parametrize(
    ("key", "change", "verdict"),
    [
        ("1a", ("Table 3", "fedbfpt", "rct20k", 83.86, "test/accuracy"), "does not hold"),  # 2.01 above BERT-FL
        ("1b", ("Table 3", "fedbfpt", "scierc", 62.98, "test/entity_f1"), "does not hold"),  # 2.01 below BERT-C
        ("1d", ("Text", "fedbfpt", "scierc", 0.0417, "t_test/p_value"), "does not hold"),
        ("2a", ("Table 2", "fedbfpt", "computation_seconds", 577.98, ""), "does not hold"),  # 46.71 %
        ("2a", ("Table 2", "fedbfpt", "computation_seconds", 577.0, ""), "holds"),  # less is enough
        ("2b", ("Table 2", "fedbfpt", "communication_mb", 29.37, ""), "does not hold"),  # 7.03 %
        ("3a", ("Table 3", "tinybert-6", "jnlpba", 72.0, None), "does not hold"),
        ("3b", ("Table 2", "tinybert-4", "computation_seconds", 600.0, ""), "holds"),
        ("5a", ("Table 4", "fedbfpt-no-sp", "scierc", 64.22, None), "does not hold"),
        ("5e", ("Appendix Table 1", "fedbfpt-all", "jnlpba", 71.99, None), "does not hold"),
        ("5g", ("Table 4", "fedbfpt-all", "scierc", 65.22, None), "does not hold"),  # 1.01 points of gain
        ("5h", ("Table 4", "fedbfpt-all", "computation_seconds", 600.0, ""), "does not hold"),  # 104 %
        ("6a", ("Appendix Table 3", "fedbfpt-8", "jnlpba", 72.0, None), "does not hold"),
        ("6b", ("Appendix Table 4", "fedbfpt-4", "rct20k", 82.5, None), "does not hold"),
        ("7", ("Table 6", "fedbfpt-skewed", "scierc", 62.2, None), "does not hold"),  # −2.01
        ("8", ("Table 4", "fedbfpt-no-sp", "scierc", 64.22, None), "does not hold"),
    ],
)
def test_another_digit_gives_another_verdict(
    key: str, change: tuple[str, str, str, float, str | None], verdict: str
) -> None:
    assert in_print(key, changed(*change))[0] == verdict


def test_numbers_in_words() -> None:
    assert in_print("2a")[1] == "FEDBFPT of BERT-FL, computation, Computer Science 46.70 % (577.85 of 1237.37)"
    assert in_print("4a")[1] == ("7 of 9 hold; not: BERT-C − BERT, Rct-20k −1.27; BERT-FL − BERT, Rct-20k −0.63")
    assert "(printed 0.2922)" in in_print("1d")[1]
    assert "Rct-20k" in in_print("1a")[1]  # print speaks of the paper's own task, not of its stand-in
