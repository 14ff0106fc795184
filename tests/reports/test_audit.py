"""The audit of FedSplitBERT's printed numbers, by hand arithmetic, and that a changed digit is noticed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.costs import ModelSizes, WirePlan
from benchmarks.fedsplitbert.setup import LAYERS_IN_PRINT
from benchmarks.registry import benchmark, claims_of
from benchmarks.spec import Benchmark, Column, Published, Row, Scale
from reports import ReportError
from reports.audit.checks import Finding, Material, against_exact, audit_markdown, summary
from reports.audit.fedsplitbert import exact_bytes, label_order
from reports.audit.fedsplitbert import findings as find
from reports.evidence.published import Numbers, read_folder
from reports.evidence.records import Derive

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "fedsplitbert" / "published"
ENTRIES = read_folder(FOLDER)
CLAIMS = claims_of("fedsplitbert")
TABLES = ("table3", "table4", "table5", "table6", "iid")
BENCHMARKS = {f"fedsplitbert-{name}": benchmark(f"fedsplitbert-{name}") for name in TABLES}

# BERT-base in fp32, three clients: a layer has four 768 × 768 maps, two 768 × 3072 ones, their biases and two layer
# norms; the pooler is one more 768 × 768 map, MRPC's classifier 768 × 2.
_MAP = 768 * 768 + 768
_LAYER = 4 * _MAP + (768 * 3072 + 3072) + (3072 * 768 + 768) + 2 * 2 * 768
BYTES = {
    "fedavg": 3 * 4 * (12 * _LAYER + _MAP + (768 * 2 + 2)),
    "fedsplitbert": 3 * 4 * 6 * _LAYER,
    "fedsplitbert-qat": 3 * 2 * 6 * _LAYER,
}


_NO_SIZES = ModelSizes(0, 0, 0, 0, 768, 1, all_tokens=False)


def by_bytes(table: Benchmark) -> Derive:
    """Rounds of BYTES; another row's cannot be derived."""

    def derive(row: Row, column: Column, scale: Scale, examples: int | None = None) -> WirePlan | None:
        assert (table.id, scale.id) == ("fedsplitbert-table6", "paper")
        return WirePlan(BYTES[row.id], 0, 0, {}, _NO_SIZES) if row.id in BYTES else None

    return derive


def findings(entries: Iterable[Published] = ENTRIES, exact: bool = False) -> dict[str, Finding]:
    published = {"fedsplitbert": Numbers.of(entries)}
    material = Material("fedsplitbert", published, BENCHMARKS, CLAIMS, (), by_bytes if exact else None)
    return {finding.id: finding for finding in find(material)}


def changed(table: str, row: str, column: str, score: str, value: float) -> list[Published]:
    """The printed values with another number at one place."""
    place = (table, row, column, score)
    at = [number for number, e in enumerate(ENTRIES) if (e.table, e.row, e.column, e.score) == place]
    assert len(at) == 1
    assert ENTRIES[at[0]].value != value
    return [replace(entry, value=value) if number == at[0] else entry for number, entry in enumerate(ENTRIES)]


FOUND = findings()
EXACT = findings(exact=True)


def test_ids_are_unique_and_the_rest_does_not_hang_on_the_optional_inputs() -> None:
    published = {"fedsplitbert": Numbers.of(ENTRIES)}
    assert len(FOUND) == len(find(Material("fedsplitbert", published, BENCHMARKS, CLAIMS)))
    assert {key: EXACT[key] for key in FOUND} == FOUND
    assert {EXACT[key].subject for key in EXACT.keys() - FOUND.keys()} == {"Table VI by exact bytes"}


def test_all_eleven_averages_of_tables_iii_and_iv_are_truncated() -> None:
    averages = [f for key, f in FOUND.items() if key.startswith(("average, Table III,", "average, Table IV,"))]
    assert len(averages) == 5 + 6
    assert all(finding.agrees for finding in averages)
    # (79.97 + 51.17 + 93.78 + 90.54 + 82.24 + 73.11 + 90.65 + 68.90 + 71.15) / 9 = 701.51 / 9
    found = FOUND["average, Table III, fedsplitbert"]
    assert (found.printed, found.recomputed) == ("77.94", "77.94")
    assert found.explanation == "exactly 77.9455…: truncated, not rounded"


@pytest.mark.parametrize(
    ("row", "sum_of_four", "rule"),
    [
        ("fedavg", "322.71", "exactly 80.6775: rounded, not truncated"),
        ("fedprox", "323.59", "exactly 80.8975: rounded, not truncated"),
        ("fedadam", "330.89", "exactly 82.7225: rounded and truncated alike"),
        ("fedsplitbert", "355.27", "exactly 88.8175: truncated, not rounded"),
        ("fedsplitbert-qat", "354.09", "exactly 88.5225: rounded and truncated alike"),
    ],
)
def test_table_v_says_which_averages_were_rounded(row: str, sum_of_four: str, rule: str) -> None:
    found = FOUND[f"average, Table V, {row}"]
    assert found.agrees
    assert found.explanation == rule
    assert f"exactly {Decimal(sum_of_four) / 4}:" in rule


@pytest.mark.parametrize("cents", [-1, 1])
@pytest.mark.parametrize(
    ("table", "row"), [("Table III", "fedavg"), ("Table IV", "c8"), ("Table V", "fedadam"), ("Table V", "fedavg")]
)
def test_another_digit_in_an_average_is_noticed(table: str, row: str, cents: int) -> None:
    printed = Decimal(FOUND[f"average, {table}, {row}"].printed)
    other = float(printed + Decimal(cents) / 100)
    if (table, row, cents) == ("Table V", "fedavg", -1):  # 80.6775 cut instead of rounded: as good
        assert findings(changed(table, row, "average", "", other))[f"average, {table}, {row}"].agrees
    else:
        assert findings(changed(table, row, "average", "", other))[f"average, {table}, {row}"].agrees is False


@given(st.decimals(0, 100, places=6), st.integers(0, 3))
def test_a_number_agrees_only_with_what_a_rule_gives(exact: Decimal, places: int) -> None:
    step = Decimal(1).scaleb(-places)
    cut = exact // step * step
    assert against_exact("", "", "", cut, exact, places, ("truncate",)).agrees
    assert not against_exact("", "", "", cut + step, exact, places, ("truncate",)).agrees
    nearest = cut + step if exact - cut >= step / 2 else cut
    assert against_exact("", "", "", nearest, exact, places, ("round",)).agrees
    assert not against_exact("", "", "", cut - step, exact, places, ("round", "truncate")).agrees


def test_the_printed_row_takes_its_layer_from_table_iv() -> None:
    for task, layer in LAYERS_IN_PRINT.items():
        assert FOUND[f"chosen layer, {task}"].recomputed == f"c = {layer}"
    worse = {task for task in LAYERS_IN_PRINT if not FOUND[f"chosen layer, {task}"].agrees}
    assert worse == {"rte", "wnli"}  # 73.11 where c = 10 has 74.11; 68.90 where c = 8 has 71.31
    assert FOUND["chosen layer, mrpc"].explanation == "best by F1: c = 8; best by Acc: c = 6"
    text = FOUND["layer in the text"]
    assert (text.recomputed, text.agrees) == ("8, 6, 10, 6, 10, 8, 10, 10, 10", False)
    assert "77.47, the row's 77.94" in text.explanation


def test_a_layer_that_matches_nothing_or_twice_is_flagged() -> None:
    none = findings(changed("Table III", "fedsplitbert", "qqp", "test/accuracy", 90.53))
    assert (none["chosen layer, qqp"].recomputed, none["chosen layer, qqp"].agrees) == ("no c", False)
    assert none["layer in the text"].recomputed == "8, 6, 10, none, 10, 8, 10, 10, 10"
    twice = findings(changed("Table IV", "c8", "qqp", "test/accuracy", 90.54))
    assert (twice["chosen layer, qqp"].recomputed, twice["chosen layer, qqp"].agrees) == ("c = 8 and 6", False)


def test_one_label_row_does_not_sum_to_100() -> None:
    # 8 classification tasks × 3 clients; 4 tasks × 10 clients.
    assert (FOUND["label sums, Table I"].recomputed, FOUND["label sums, Table I"].agrees) == ("24 sum to 100", True)
    second = FOUND["label sums, Table II"]
    assert (second.printed, second.recomputed, second.agrees) == ("40 distributions", "39 sum to 100", False)
    assert second.explanation == "others: MRPC client10: 99"
    other = findings(changed("Table I", "client1", "cola", "share/label1", 90))["label sums, Table I"]
    assert (other.agrees, other.explanation) == (False, "others: CoLA client1: 99.5")


def test_scores_of_sts_b_lie_in_their_ranges() -> None:
    assert FOUND["stsb means"].agrees
    assert not findings(changed("Table I", "client2", "stsb", "mean_score", 3.7))["stsb means"].agrees


def test_the_means_over_clients_say_which_label_comes_first() -> None:
    # MRPC (95 + 75 + 25) / 3, CoLA (90.5 + 83 + 40) / 3, QQP (70 + 37 + 13) / 3.
    means = {"mrpc": "mean 65.00 / 35.00", "cola": "mean 71.17 / 28.83", "qqp": "mean 40.00 / 60.00"}
    ranges = {"mrpc": (60.3, 67.5), "cola": (29.0, 29.7), "qqp": (45.0, 55.0)}
    found = {finding.id: finding for finding in label_order(Numbers.of(ENTRIES), ranges)}
    for task, mean in means.items():
        assert FOUND[f"label order, {task}"].printed == mean
        assert FOUND[f"label order, {task}"].agrees is None
    assert [found[f"label order, {task}"].agrees for task in means] == [True, False, None]


def test_the_local_majority_is_read_off_the_label_tables() -> None:
    majority = {key: finding for key, finding in FOUND.items() if finding.subject == "Majority-class baseline"}
    assert len(majority) == 7 + 4  # the tasks scored by accuracy
    # MNLI (86 + 90 + 90) / 3; RTE (80 + 50 + 80) / 3; MRPC with 10 clients: client 10 has 51 of 99.
    assert majority["majority, Table III, mnli"].recomputed == "88.67"
    assert majority["majority, Table III, rte"].recomputed == "70.00"
    ten = (92 + 86 + 71 + 66 + 50 + 56 + 65 + 72 + 88 + 5100 / 99) / 10
    assert majority["majority, Table V, mrpc"].recomputed == f"{ten:.2f}" == "69.75"
    assert {key for key, finding in majority.items() if not finding.agrees} == {
        "majority, Table III, mnli",
        "majority, Table III, wnli",
    }
    below = majority["majority, Table V, mrpc"].explanation
    assert below.endswith("not above it: FedAvg 62.95; FedProx 64.15; FedAdam 67.20")
    other = findings(changed("Table III", "fedsplitbert", "wnli", "test/accuracy", 70.01))
    assert other["majority, Table III, wnli"].agrees


def test_costs_imply_the_rounds_that_are_not_printed() -> None:
    implied = {
        row: FOUND[f"rounds, {row}"].recomputed for row in ("fedavg", "fedadam", "fedsplitbert", "fedsplitbert-qat")
    }
    assert implied == {
        "fedavg": "6 × 1.03 GB",
        "fedadam": "2 × 1.7 GB",
        "fedsplitbert": "2 × 0.51 GB",
        "fedsplitbert-qat": "2 × 0.26 GB",
    }
    assert not findings(changed("Table VI", "fedavg", "cost_gb", "", 6.19))["rounds, fedavg"].agrees


def test_gains_are_ratios_of_rounded_sizes() -> None:
    # 6.18 / 1.02 = 6.0588, 6.18 / 0.52 = 11.8846, 6.18 / 3.4 = 1.8176.
    assert [FOUND[f"gain, {row}"].agrees for row in ("fedavg", "fedsplitbert", "fedsplitbert-qat")] == [True] * 3
    assert FOUND["gain, fedsplitbert"].explanation == "exactly 6.0588…: rounded, not truncated"
    assert FOUND["gain, fedsplitbert-qat"].explanation == "exactly 11.8846…: rounded, not truncated"
    assert not findings(changed("Table VI", "fedsplitbert-qat", "gain", "", 11.8))["gain, fedsplitbert-qat"].agrees


def test_fedadams_bytes_are_not_derivable() -> None:
    for key in ("size, fedadam", "gain, fedadam"):
        assert FOUND[key].agrees is None
        assert FOUND[key].verdict == "not derivable"
        assert "not derivable" in FOUND[key].explanation
    assert findings(changed("Table VI", "fedadam", "gain", "", 1.9))["gain, fedadam"].agrees is False
    assert findings(changed("Table VI", "fedadam", "parameter_gb", "", 1.03))["size, fedadam"].agrees


def test_sentences_are_judged_as_claims() -> None:
    judged = {key: finding.agrees for key, finding in FOUND.items() if key.startswith("claim ")}
    curves = {"7a", "7c", "8a", "8b", "8d", "8f", "14", "15"}  # no numbers are printed of them
    assert judged.keys() == {f"claim {claim.id}" for claim in CLAIMS} - {f"claim {key}" for key in curves}
    against = {"1a", "1b", "1d", "2", "3", "4a", "6", "8c", "12", "16"}
    assert {key for key, agrees in judged.items() if not agrees} == {f"claim {key}" for key in against}
    least = FOUND["claim 3"]
    assert least.recomputed == "18 of 20 hold; not: c = 10 − c = 8, WNLI −2.41; c = 8 − c = 6, RTE −0.65"
    assert (least.printed, least.subject) == ("> 0", "Sentences of the text")
    other = findings(changed("Table VI", "fedsplitbert", "cost_gb", "", 0.99))
    assert other["claim 8c"].agrees
    without = find(Material("fedsplitbert", {"fedsplitbert": Numbers.of(ENTRIES)}, BENCHMARKS))
    assert not [finding for finding in without if finding.id.startswith("claim")]


def test_costs_in_megabits() -> None:
    # RTE: 3 × 510 MB at c = 6; 3 × 340 MB at c = 4. One round of FedAvg: 8 × 1030 Mbit.
    three = FOUND["rte three rounds"]
    assert (three.recomputed, three.agrees) == ("1530 at c = 6", False)
    assert three.explanation.endswith(", 1020")
    assert findings(changed("Table VI", "fedsplitbert", "parameter_gb", "", 0.34))["rte three rounds"].agrees
    megabits = FOUND["megabits"]
    assert (megabits.recomputed, megabits.agrees) == ("8240 Mbit a round", False)
    assert findings(changed("Table VI", "fedavg", "parameter_gb", "", 0.62))["megabits"].agrees


def test_exact_bytes_give_the_printed_sizes_and_other_gains() -> None:
    for row, size in (("fedavg", "1.03"), ("fedsplitbert", "0.51"), ("fedsplitbert-qat", "0.26")):
        found = EXACT[f"exact size, {row}"]
        assert (found.printed, found.recomputed, found.agrees) == (size, size, True)
    # 6 × 1.02776 and 2 × 0.25516 GB: the printed costs are products of rounded sizes.
    costs = {row: EXACT[f"exact cost, {row}"] for row in BYTES}
    assert [(costs[row].recomputed, costs[row].agrees) for row in BYTES] == [
        ("6.17", False),
        ("1.02", True),
        ("0.51", False),
    ]
    plain, quantised = EXACT["exact gain, fedsplitbert"], EXACT["exact gain, fedsplitbert-qat"]
    assert (plain.printed, plain.recomputed, plain.agrees) == ("6.1", "6.04", False)
    assert (quantised.printed, quantised.recomputed, quantised.agrees) == ("11.9", "12.08", False)
    assert quantised.explanation == "2.01 (layers) × 3 (rounds) × 2 (precision)"
    assert plain.explanation == "2.01 (layers) × 3 (rounds) × 1 (precision)"
    assert (EXACT["both directions"].recomputed, EXACT["both directions"].agrees) == ("2.06", False)
    other = findings(changed("Table VI", "fedavg", "parameter_gb", "", 1.02), exact=True)
    assert not other["exact size, fedavg"].agrees


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"expected bytes of a round for .*, found none for fedsplitbert-qat"):
        list(exact_bytes(Numbers.of(ENTRIES), {row: BYTES[row] for row in ("fedavg", "fedsplitbert")}))
    with pytest.raises(ReportError, match=r"expected a published value at Table IV,c8,qqp,test/accuracy, found none"):
        findings([e for e in ENTRIES if (e.table, e.row, e.column) != ("Table IV", "c8", "qqp")])
    with pytest.raises(ReportError, match="expected CSV files of published values, found none"):
        read_folder(tmp_path)


def test_renderers_show_every_finding_with_its_verdict() -> None:
    shown = tuple(EXACT.values())
    text = audit_markdown(shown)
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    subjects = list(dict.fromkeys(finding.subject for finding in shown))
    assert len(lines) == len(shown) + 2 * len(subjects)
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == subjects
    assert r"| FedAvg/FedProx: cost in GB, exact size × rounds | 6.18 | 6.17 | **does not agree** |" in text
    assert r"MBits hold at least one round of FedAvg | 5000 Mbit |" in text
    assert r"better performance than c \< 6 and c = 12” | \> 0 |" in text  # Markdown's own signs are escaped
    assert text.startswith(f"{summary(shown)}\n\n## ")


def test_the_summary_counts_verdicts() -> None:
    made = [Finding("", "", "", "", "", agrees) for agrees in (True, True, False, None)]
    assert summary(made) == "4 checks of the paper's own numbers: 2 agree, 1 do not, 1 are not derivable."
