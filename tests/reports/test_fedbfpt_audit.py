"""The audit of FedBFPT's printed numbers, by hand arithmetic, and that a changed digit is noticed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from scipy import stats

from benchmarks.cli.paper import benchmarks_of, published_of
from benchmarks.registry import claims_of
from benchmarks.shapes import derive_client, derive_for
from benchmarks.spec import Published
from reports import ReportError
from reports.audit.checks import Finding, Material, audit_markdown
from reports.audit.fedbfpt import findings as find
from reports.evidence.published import Numbers, read_folder

BENCHMARKS = benchmarks_of("fedbfpt")
PUBLISHED = published_of(BENCHMARKS.values())
CLAIMS = claims_of("fedbfpt")
ENTRIES = read_folder(Path(BENCHMARKS["fedbfpt-table3"].published_csv).parent)
EXACT = ("saved, ", "output layer", "layer", "whole", "variants")


def findings(entries: Iterable[Published] = ENTRIES, exact: bool = False) -> dict[str, Finding]:
    published = {**PUBLISHED, "fedbfpt": Numbers.of(entries)}
    derive = (derive_for, derive_client) if exact else (None, None)
    found = find(Material("fedbfpt", published, BENCHMARKS, CLAIMS, (), *derive))
    assert len({finding.id for finding in found}) == len(found)
    return {finding.id: finding for finding in found}


def changed(table: str, row: str, column: str, value: float, score: str = "") -> list[Published]:
    at = [
        entry for entry in ENTRIES if (entry.table, entry.row, entry.column, entry.score) == (table, row, column, score)
    ]
    assert len(at) == 1
    assert at[0].value != value
    return [replace(entry, value=value) if entry is at[0] else entry for entry in ENTRIES]


FOUND = findings()


@pytest.fixture(scope="module")
def exact() -> dict[str, Finding]:
    return findings(exact=True)


def test_verdicts_by_subject() -> None:
    against = {key for key, finding in FOUND.items() if finding.agrees is False and not key.startswith("claim ")}
    assert against == {
        "share, Table 5, fedbfpt-8, computation_seconds",  # 693.62 / 1237.37 = 56.056 %
        "reduced, computation_seconds",
        "reduced, communication_mb",
        "caption",
        "accuracy, Appendix Table 1",
        "accuracy, Appendix Table 3",
        *(f"marks, Table 2, {cost}" for cost in ("computation_seconds", "communication_mb")),
        *(f"marks, Table {table}, {column}" for table in (4, 5) for column in ("computation_seconds", "scierc")),
        "marks, Table 4, communication_mb",
        "sum, uniform, corpus-medicine",
        "sum, skewed, corpus-medicine",
        "unchanged, corpus-medicine",
        "formula",
        "gradient",
        "length",
        "distilbert",
        "untrained",
        "centre",
        "domains",
        "comparable, scierc",
        "comparable, rct20k",
        "resolved, scierc",
        "resolved, jnlpba",
        "resolved, rct20k",
    }
    assert [key for key, finding in FOUND.items() if finding.agrees is None] == ["iterations"]
    assert "| Statement |" in audit_markdown(tuple(FOUND.values()))


def test_claims_are_among_them() -> None:
    judged = {key.removeprefix("claim ") for key in FOUND if key.startswith("claim ")}
    assert judged == {claim.id for claim in CLAIMS}


# ---- shares and repetitions ------------------------------------------------------------------------------------


def test_shares_are_ratios_of_printed_costs() -> None:
    shares = {key: found for key, found in FOUND.items() if key.startswith("share, ")}
    assert len(shares) == 11  # eight in Table 2, ALL's computation, depths 4 and 8
    own = shares["share, Table 2, fedbfpt, computation_seconds"]
    assert (own.printed, own.recomputed, own.agrees) == ("46.70", "46.70", True)
    assert own.explanation.startswith("577.85 / 1237.37 s; exactly 46.6998")
    truncated = shares["share, Table 5, fedbfpt-8, computation_seconds"]
    assert (truncated.printed, truncated.recomputed) == ("56.05", "56.06")
    other = findings(changed("Table 2", "fedbfpt", "computation_percent", 46.69))
    assert other["share, Table 2, fedbfpt, computation_seconds"].agrees is False
    assert other["share, Table 4, fedbfpt-no-pl, computation_seconds"].agrees  # what differs is a finding of its own


def test_what_stands_in_several_tables_is_one_number() -> None:
    repeated = {key for key in FOUND if key.startswith("repeated, ")}
    assert len(repeated) == 5
    assert all(FOUND[key].agrees for key in repeated)
    score = findings(changed("Table 6", "fedbfpt", "jnlpba", 71.99, "test/entity_f1"))["repeated, jnlpba"]
    assert (score.agrees, "71.99 in Table 6" in score.explanation) == (False, True)
    cost = findings(changed("Appendix Table 2", "fedbfpt-no-m", "communication_mb", 29.43))
    assert cost["repeated, communication_mb"].recomputed == "6 have"


# ---- words -----------------------------------------------------------------------------------------------------


def test_reducing_by_is_not_using_of() -> None:
    found = FOUND["reduced, computation_seconds"]
    assert (found.printed, found.recomputed) == ("46.70", "53.30")
    assert findings(changed("Text", "reduced", "communication_mb", 92.96, "stated/percent"))[
        "reduced, communication_mb"
    ].agrees


def test_captions_and_headers() -> None:
    sizes = changed("Table 5", "fedbfpt-4", "communication_mb", 20.0)
    sizes = [
        replace(e, value=40.0) if (e.table, e.row, e.column) == ("Table 5", "fedbfpt-8", "communication_mb") else e
        for e in sizes
    ]
    assert findings(sizes)["caption"].agrees
    other = findings(changed("Appendix Table 1", "fedbfpt", "jnlpba", 90.0, "test/entity_f1"))
    assert other["accuracy, Appendix Table 1"].agrees is None


def test_marks_follow_the_numbers() -> None:
    found = FOUND["marks, Table 3, rct20k"]
    assert (found.printed, found.recomputed, found.agrees) == ("FEDBFPT; BERT", "FEDBFPT; BERT", True)
    other = findings(changed("Table 3", "bert-fl", "rct20k", 82.5, "test/accuracy"))
    assert not other["marks, Table 3, rct20k"].agrees
    assert FOUND["marks, Table 2, computation_seconds"].recomputed == "TinyBERT-4; FEDBFPT"
    ties = FOUND["marks, Table 4, communication_mb"]
    assert ties.recomputed == r"FEDBFPT\PL, FEDBFPT\M, FEDBFPT\S, FEDBFPT\SP, FEDBFPT; FEDBFPT-ALL"
    assert ties.printed == ties.recomputed.replace("FEDBFPT-ALL", "none")
    alike = FOUND["marks, Table 5, communication_mb"]
    assert (alike.printed, alike.agrees) == ("FEDBFPT-4, FEDBFPT-8, FEDBFPT; none", True)
    assert FOUND["marks, Table 5, scierc"].printed == "FEDBFPT; none"


def test_iterations_are_bounded_by_what_is_drawn() -> None:
    assert FOUND["iterations"].recomputed == "4 to 6"
    assert "2 + 1 + 1" in FOUND["iterations"].explanation


# ---- sizes -----------------------------------------------------------------------------------------------------


def test_sums_of_the_clients() -> None:
    medicine = FOUND["sum, uniform, corpus-medicine"]
    total = 149.36 + 151.47 + 152.82 + 151.78 + 153.92 + 149.69
    assert (medicine.printed, medicine.recomputed) == ("914.45", f"{total:.2f}")
    assert FOUND["sum, uniform, corpus-biology"].agrees  # 431.47, within what rounding may change
    wrong = changed("Appendix Table 5", "skewed", "corpus-biology", 20.73, "client1/megabytes")
    assert findings(wrong)["sum, skewed, corpus-biology"].agrees is False
    assert findings(wrong)["unchanged, corpus-biology"].agrees is False
    right = changed("Appendix Table 5", "uniform", "corpus-medicine", 909.04, "all/megabytes")
    assert findings(right)["sum, uniform, corpus-medicine"].agrees


def test_skewed_sizes_are_a_normal_distribution() -> None:
    bins = [-math.inf, *(5 / 6 * cut for cut in (-2, -1, 0, 1, 2)), math.inf]
    shares = [100 * (stats.norm.cdf(high) - stats.norm.cdf(low)) for low, high in pairwise(bins)]
    found = FOUND["normal, corpus-biology"]
    assert found.recomputed == " / ".join(f"{share:.2f}" for share in shares)
    wrong = changed("Appendix Table 5", "skewed", "corpus-biology", 72.0, "client2/megabytes")
    assert findings(wrong)["normal, corpus-biology"].agrees is False
    even = changed("Appendix Table 5", "uniform", "corpus-medicine", 120.0, "client1/megabytes")
    assert findings(even)["evenly"].agrees is False


def test_large_differences() -> None:
    assert FOUND["large"].recomputed == "Biology 6.24 ×; CS 6.27 ×; Medicine 6.25 ×"


# ---- computation -----------------------------------------------------------------------------------------------


def test_the_formula_and_what_layers_cost() -> None:
    assert FOUND["formula"].recomputed == "20.83 / 29.17 / 37.50"  # 5, 7 and 9 of 24
    share = 100 * ((693.62 - 463.87) / 4) / ((1237.37 - 786.86) / 6)
    assert FOUND["gradient"].recomputed == f"{share:.2f} %"
    cheap = changed("Table 5", "fedbfpt-8", "computation_seconds", 560.0)
    assert findings(cheap)["gradient"].agrees  # 24 of 75 s a layer: forward alone
    assert FOUND["length"].recomputed == "2.05 ×"
    assert FOUND["embedding"].agrees
    assert FOUND["embedding"].recomputed == f"{7 * 128**2 * 768 / (30522 + 128):.2f} ×"


def test_seconds_against_each_other() -> None:
    assert findings(changed("Table 2", "distilbert", "computation_seconds", 790.0))["distilbert"].agrees
    assert findings(changed("Table 2", "bert-c", "computation_seconds", 7400.0))["centre"].agrees
    assert not findings(changed("Table 4", "fedbfpt-all", "computation_seconds", 800.0))["alike"].agrees
    domains = FOUND["domains"]
    assert domains.recomputed == f"577.85 / {577.85 * 431.48 / 363.3:.2f} / {577.85 * 914.45 / 363.3:.2f}"


# ---- seeds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "difference", "p"), [("jnlpba", -0.26, 0.2922), ("scierc", 0.91, 0.4173), ("rct20k", 1.27, 0.4511)]
)
def test_a_t_test_that_is_passed_shows_no_equality(task: str, difference: float, p: float) -> None:
    error = abs(difference) / stats.t.ppf(1 - p / 2, 18)
    low, high = (difference + sign * stats.t.ppf(0.95, 18) * error for sign in (-1, 1))
    text = f"90 % interval {low:+.2f} to {high:+.2f} points".replace("-", "−")
    assert (FOUND[f"comparable, {task}"].recomputed, FOUND[f"comparable, {task}"].agrees) == (text, task == "jnlpba")
    bound = stats.t.ppf(0.975, 18) * error * math.sqrt(10)
    assert FOUND[f"resolved, {task}"].recomputed == f"± {bound:.2f}"


def test_more_seeds_or_a_smaller_spread_turn_the_findings() -> None:
    # A p near 0 makes the error a hundredth of a difference of 0.26 points.
    narrow = findings(changed("Text", "fedbfpt", "jnlpba", 1e-12, "t_test/p_value"))
    assert narrow["comparable, jnlpba"].agrees
    assert "± 0.1" in narrow["resolved, jnlpba"].recomputed
    wide = findings(changed("Text", "fedbfpt", "jnlpba", 0.9, "t_test/p_value"))
    assert wide["comparable, jnlpba"].agrees is False


# ---- shapes ----------------------------------------------------------------------------------------------------


def test_sizes_are_mebibytes_of_saved_files(exact: dict[str, Finding]) -> None:
    assert {key: exact[key] for key in FOUND} == FOUND
    assert all(key.startswith(EXACT) for key in exact.keys() - FOUND.keys())
    saved = {key.removeprefix("saved, "): found for key, found in exact.items() if key.startswith("saved, ")}
    assert {row: found.recomputed for row, found in saved.items()} == {
        "bert-fl": "417.83",
        "distilbert": "255.56",  # printed 255.55
        "tinybert-6": "255.57",
        "tinybert-4": "54.88",
        "fedbfpt": "29.42",
        "fedbfpt-all": "255.57",
    }
    assert [row for row, found in saved.items() if not found.agrees] == ["distilbert"]
    assert saved["fedbfpt"].explanation.endswith("the values alone are 29.41")


def test_parts_of_a_model(exact: dict[str, Finding]) -> None:
    width, words = 768, 30522
    head = 4 * (width**2 + width + 2 * width + words) / 2**20
    layer = 12 * width**2 + 13 * width
    assert exact["output layer"].recomputed == f"{head:.2f} of 90.93 and {4 * layer / 2**20:.2f} MiB"
    assert (exact["layer"].printed, exact["layer"].recomputed) == (f"{11 * width**2 + 4 * width}", f"{layer}")
    assert exact["whole"].recomputed == f"{6 * 4 * layer / 2**20 + head:.2f}"
    assert exact["whole"].agrees is False


def test_variants_do_not_compute_alike(exact: dict[str, Finding]) -> None:
    found = exact["variants"]
    assert found.agrees is False
    assert set(found.printed.split(" / ")) == {"100.00"}


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ReportError, match=r"expected a published value at Table 2,bert-fl,computation_seconds"):
        findings([entry for entry in ENTRIES if (entry.table, entry.row) != ("Table 2", "bert-fl")])
