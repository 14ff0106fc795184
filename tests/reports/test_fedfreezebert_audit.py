"""The audit of FedFreezeBERT's stated numbers, by hand arithmetic, and that a changed digit is noticed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from benchmarks.cli.paper import benchmarks_of, published_of
from benchmarks.registry import claims_of
from benchmarks.shapes import derive_for
from benchmarks.spec import Published
from reports import ReportError
from reports.audit.checks import Finding, Material
from reports.audit.fedfreezebert import findings as find
from reports.evidence.published import Numbers, read_folder
from reports.evidence.statistics import welch_test

BENCHMARKS = benchmarks_of("fedfreezebert")
PUBLISHED = published_of(BENCHMARKS.values())
CLAIMS = claims_of("fedfreezebert")
ENTRIES = read_folder(Path(BENCHMARKS["fedfreezebert-table3"].published_csv).parent)


def findings(entries: Iterable[Published] = ENTRIES, exact: bool = False) -> dict[str, Finding]:
    published = {**PUBLISHED, "fedfreezebert": Numbers.of(entries)}
    material = Material("fedfreezebert", published, BENCHMARKS, CLAIMS, (), derive_for if exact else None)
    return {finding.id: finding for finding in find(material)}


def changed(table: str, row: str, column: str, value: float) -> list[Published]:
    at = [entry for entry in ENTRIES if (entry.table, entry.row, entry.column) == (table, row, column)]
    assert at
    assert all(entry.value != value for entry in at)
    return [replace(entry, value=value) if entry is at[0] else entry for entry in ENTRIES]


FOUND = findings()


@pytest.fixture(scope="module")
def exact() -> dict[str, Finding]:
    return findings(exact=True)


def test_ids_are_unique_and_the_rest_does_not_hang_on_bytes(exact: dict[str, Finding]) -> None:
    assert {key: exact[key] for key in FOUND} == FOUND
    assert {exact[key].subject for key in exact.keys() - FOUND.keys()} == {"Sizes and counts", "Table 4 by exact bytes"}


@pytest.mark.parametrize(
    ("baseline", "first", "second"),
    [
        # 75.26 / 1.1295 to / 1.1285, 74.94 / 1.1245 to / 1.1235, and so on: half a unit of the last stated digit.
        ("fedavg-ordinary", "66.631 to 66.690", "66.643 to 66.702"),
        ("central-ordinary", "73.460 to 73.532", "73.112 to 73.833"),
        ("fedsplitbert-ordinary", "74.331 to 74.404", "74.386 to 74.393"),
    ],
)
def test_both_statements_of_a_gain_give_one_value(baseline: str, first: str, second: str) -> None:
    found = FOUND[f"gains, {baseline}"]
    assert (found.recomputed, found.agrees) == (f"{first} and {second}", True)


def test_another_digit_in_a_gain_is_noticed() -> None:
    # 75.26 / 1.1275 = 66.75, above what 12.4 % allow; 74.94 / 1.0075 = 74.38 is still within 1.2 % ± 0.05.
    assert not findings(changed("Text", "c-psum", "fedavg-ordinary", 12.7))["gains, fedavg-ordinary"].agrees
    assert not findings(changed("Text", "c-hsum", "fedsplitbert-ordinary", 0.84))["gains, fedsplitbert-ordinary"].agrees
    assert findings(changed("Text", "c-hsum", "fedsplitbert-ordinary", 0.75))["gains, fedsplitbert-ordinary"].agrees
    assert not findings(changed("Text", "c-hsum", "central-ordinary", 3.0))["gains, central-ordinary"].agrees


def test_the_relevant_improvement_against_runs_and_against_the_test_set() -> None:
    split = 74.94 / 1.0074
    difference = 0.0066 * split
    expected = stats.ttest_ind_from_stats(split + difference, 0.17, 5, split, 0.12, 5, equal_var=False)
    t, _, p = welch_test(difference, (0.17, 0.12), (5, 5))
    assert (t, p) == pytest.approx((expected.statistic, expected.pvalue))
    runs = FOUND["relevant, runs"]
    assert (runs.recomputed, runs.agrees) == (f"t = {t:.2f}, p = {p:.4f}", True)
    error = 100 * math.sqrt(0.7439 * 0.2561 / 3000)
    test_set = FOUND["relevant, test set"]
    assert f"{error:.2f}" == "0.80"
    assert test_set.printed == f"+{difference:.2f} points"
    assert float(test_set.recomputed.split()[1]) == pytest.approx(1.96 * math.sqrt(2) * error, abs=0.01)
    assert test_set.agrees is False


def test_larger_spread_or_test_set_turns_the_finding() -> None:
    wide = changed("Text", "fedsplitbert-hsum", "arsarcasm", 1.7)  # the first such value is the deviation
    assert findings(wide)["relevant, runs"].agrees is False
    assert findings(changed("Text", "test", "arsarcasm", 300))["relevant, test set"].agrees


def test_sizes_in_words() -> None:
    assert (FOUND["tweets"].agrees, FOUND["tweets"].explanation) == (True, "exactly 12.548: truncated, not rounded")
    assert FOUND["megabytes"].agrees
    parameters = FOUND["parameters"]  # 651.37 MB / 4 bytes
    assert (parameters.agrees, parameters.explanation.split(":")[0]) == (False, "exactly 162.8425")
    assert findings(changed("Table 4", "parameters", "n_s", 14000))["tweets"].agrees is False


def test_the_aggregator_has_four_classifiers() -> None:
    # 4 · 28.35 + 4 · 769 · 3 · 4 B = 113.40 + 0.0369 MB; one classifier is 0.0092 MB.
    found = FOUND["W_s"]
    assert (found.recomputed, found.agrees, found.explanation.split("; ")[-1]) == (
        "113.44",
        True,
        "with one classifier for all paths 113.41",
    )
    assert findings(changed("Table 4", "parameters", "W_s_mb", 113.41))["W_s"].agrees is False


def test_gains_by_the_papers_equations() -> None:
    costs = {key: finding.explanation for key, finding in FOUND.items() if key.startswith("gain by equations")}
    assert len(costs) == 4
    assert all(FOUND[key].agrees for key in costs)
    assert [text.split("; ")[-1].split(" by")[0] for text in costs.values()] == [
        "31.81 / 5.54 GB",
        "26.11 / 5.54 GB",
        "31.81 / 5.15 GB",
        "26.11 / 5.15 GB",
    ]
    other = findings(changed("Table 4", "c-psum", "gain_over_fedavg-ordinary", 6.3))
    assert other["gain by equations, c-psum, fedavg-ordinary"].agrees is False


def test_gains_by_bytes(exact: dict[str, Finding]) -> None:
    gains = {
        key.removeprefix("gain "): (finding.explanation.split(":")[0].split()[1][:4], finding.agrees)
        for key, finding in exact.items()
        if key.startswith(("gain in", "gain on"))
    }
    assert gains == {
        "in consistent bytes, d-fedavg-psum, fedavg-ordinary": ("5.74", True),
        "in consistent bytes, d-fedavg-psum, fedsplitbert-ordinary": ("4.72", True),
        "on the wire, d-fedavg-psum, fedavg-ordinary": ("5.72", True),
        "on the wire, d-fedavg-psum, fedsplitbert-ordinary": ("4.72", True),
        "in consistent bytes, c-psum, fedavg-ordinary": ("5.92", False),  # printed 6.2
        "in consistent bytes, c-psum, fedsplitbert-ordinary": ("4.86", True),  # 4.868; printed 5
        "on the wire, c-psum, fedavg-ordinary": ("1.59", False),  # four layers' embeddings: 1.598
        "on the wire, c-psum, fedsplitbert-ordinary": ("1.31", False),
    }
    assert "2^30 bytes" in exact["gain in consistent bytes, c-psum, fedavg-ordinary"].explanation


def test_printed_sizes_are_those_of_shapes(exact: dict[str, Finding]) -> None:
    shapes = {key: finding for key, finding in exact.items() if key.startswith("shape, ")}
    assert [finding.agrees for finding in shapes.values()] == [True] * 4
    assert shapes["shape, BE"].explanation == "exactly 308.7851…: truncated, not rounded"


def test_sentences_are_judged_as_claims() -> None:
    judged = {key.removeprefix("claim "): f.agrees for key, f in FOUND.items() if key.startswith("claim ")}
    holding = ("1c", "1d", "1e", "3a", "5a", "8a", "8b", "8c", "8d", "8e", "8f", "10", "12", "15")
    assert judged == dict.fromkeys(holding, True)


def test_h_sums_chain_is_counted() -> None:
    # h12 crosses 12 layers, then E1, and what E1 adds crosses E2, E3 and E4.
    found = FOUND["chain"]
    assert (found.printed, found.recomputed, found.agrees) == ("14", "12 + 4 = 16", False)
    assert "has 9 + 1" in found.explanation
    assert findings(changed("Text", "hsum", "chain", 16))["chain"].agrees


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ReportError, match=r"expected a published value at Text,c-hsum,central-ordinary,stated/percent"):
        findings([entry for entry in ENTRIES if (entry.row, entry.column) != ("c-hsum", "central-ordinary")])
