"""Audits: a changed published digit flips a verdict; numbers by hand; rejected arithmetic."""

from dataclasses import replace
from decimal import Decimal
from functools import cache

import pytest
from scipy import stats

from benchmarks.papers import benchmarks_of, published_of
from benchmarks.registry import claims_of
from reports.audit.arithmetic import Series, Value, evaluate, several
from reports.audit.sources import PaperFacts
from reports.audit.statements import Finding, findings
from reports.evidence.published import Numbers

Change = tuple[str, str, str, str, str]  # table, row, column, score, another number


@cache
def facts_of(paper: str) -> PaperFacts:
    tables = benchmarks_of(paper)
    return PaperFacts(paper, published_of(tables.values()), tables, claims_of(paper))


def changed(facts: PaperFacts, *changes: Change) -> PaperFacts:
    """The same facts with other published numbers at some places."""
    values = dict(facts.numbers.values)
    for table, row, column, score, number in changes:
        assert values[table, row, column, score] != Decimal(number)
        values[table, row, column, score] = Decimal(number)
    return replace(facts, published={**facts.published, facts.paper: Numbers(values, facts.numbers.derived)})


@cache
def checked(paper: str, *changes: Change) -> dict[str, Finding]:
    """A paper's findings by id, with other published numbers at some places."""
    entries = findings(changed(facts_of(paper), *changes))
    assert len({finding.id for finding in entries}) == len(entries)
    return {finding.id: finding for finding in entries}


@pytest.mark.parametrize(
    ("paper", "key", "before", "change", "after"),
    [
        # Rounding and truncation: means, shares, differences, percentages, sizes.
        ("fedsplitbert", "average, Table III, fedavg", True, ("Table III", "fedavg", "average", "", "72.26"), False),
        ("fedbfpt", "share, Table 5, fedbfpt-8, computation_seconds", False,
            ("Table 5", "fedbfpt-8", "computation_percent", "", "56.06"), True),
        # Equality, inequality, order, tolerance, sums, intervals, whole numbers.
        ("fedbert", "period 50, fedavg, rte-central", False,
            ("Figure 9", "fedavg", "rte-central", "test/accuracy", "52.7"), True),
        ("fedsplitbert", "label sums, Table I", True, ("Table I", "client1", "cola", "share/label1", "90"), False),
        ("fedsplitbert", "chosen layer, qqp", True, ("Table IV", "c8", "qqp", "test/accuracy", "90.54"), False),
        # Texts that have to be equal, and rows that repeat others.
        ("fedbert", "twins, Table 7", False, ("Table 7", "single", "mnli-central", "test/accuracy", "71.73"), True),
        # Tests of differences.
        ("fedbfpt", "comparable, scierc", False, ("Text", "fedbfpt", "scierc", "t_test/p_value", "0.00001"), True),
        # A factor on each dataset, and a lead over every rival.
        ("fedpeft", "order-of-magnitude", False,
            ("FedRot-LoRA Table 2", "fedrot-lora", "rte", "error", "1.9e-4"), True),
        ("fedpeft", "outperforms, Table 4", True,
            ("FedRot-LoRA Table 4", "rolora", "mnli", "alpha/0.5", "0.876"), False),
        # A size by its closed form, with the published setting.
        ("fedpeft", "saving, bottleneck, rte", False,
            ("FedPETuning Figure 4", "bottleneck", "rte", "tuned/size", "16"), True),
        # Statements that only some numbers decide.
        ("fedbfpt", "accuracy, Appendix Table 1", False,
            ("Appendix Table 1", "fedbfpt", "jnlpba", "test/entity_f1", "90"), None),
        ("fedsplitbert", "size, fedadam", None, ("Table VI", "fedadam", "parameter_gb", "", "1.03"), True),
        # A claim of the text.
        ("fedsplitbert", "claim 8c", False, ("Table VI", "fedsplitbert", "cost_gb", "", "0.99"), True),
    ],
)  # fmt: skip
def test_a_changed_digit_flips_the_verdict(paper, key, before, change, after):
    assert (checked(paper)[key].agrees, checked(paper, change)[key].agrees) == (before, after)


# By hand: t of a two-sided p over 2 × 10 − 2 degrees of freedom, for a difference of −0.26 points.
_HALF = stats.t.ppf(0.95, 18) * 0.26 / stats.t.ppf(1 - 0.2922 / 2, 18)


@pytest.mark.parametrize(
    ("paper", "key", "published", "recomputed"),
    [
        # (79.97 + 51.17 + 93.78 + 90.54 + 82.24 + 73.11 + 90.65 + 68.90 + 71.15) / 9 = 77.9455…
        ("fedsplitbert", "average, Table III, fedsplitbert", "77.94", "77.94"),
        # Client 10 has 51 of 99.
        ("fedsplitbert", "majority, Table V, mrpc", "79.86",
            f"{(92 + 86 + 71 + 66 + 50 + 56 + 65 + 72 + 88 + 5100 / 99) / 10:.2f}"),
        # 124,647,170 values of RoBERTa-base; 4 × 12 × 16 × 768 of LoRA, and the head's 592,130.
        ("fedpeft", "saving, fedit, qnli", "140.5", f"{124_647_170 / (4 * 12 * 16 * 768 + 592_130):.1f} with r = 16"),
        ("fedbfpt", "comparable, jnlpba", "p = 0.2922",
            f"90 % interval {-0.26 - _HALF:+.2f} to {-0.26 + _HALF:+.2f} points".replace("-", "−")),
        # Half a unit of 12.9 and 12.4: 75.26 / 1.1295 to / 1.1285, 74.94 / 1.1245 to / 1.1235.
        ("fedfreezebert", "gains, fedavg-ordinary", "12.9 % and 12.4 %", "66.631 to 66.690 and 66.643 to 66.702"),
    ],
)  # fmt: skip
def test_numbers_by_hand(paper, key, published, recomputed):
    finding = checked(paper)[key]
    assert (finding.printed, finding.recomputed) == (published, recomputed)


PAIR: Series = {("T", "a", "x/f1"): Decimal(1), ("T", "b", "x/f1"): Decimal(4)}


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("1 + 2 * 3 ** 2 // 4", [5]),
        ("0.1 + 0.2 == 0.3", [1]),
        ("-pair / 2", ["-0.5", -2]),
        ("1 < pair <= 4", [0, 1]),
        ("where(pair, pair > mean(pair))", [4]),
        ("sqrt(row_max(pair)) - cell_min(pair)", [0, -2]),
        ("copies(pair - pair)", [0]),
    ],
)
def test_arithmetic(expression, result):
    value: Value = evaluate(expression, {"pair": PAIR}.__getitem__)
    assert list(several(value)) == [Decimal(number) for number in result]


@pytest.mark.parametrize(
    "expression",
    ["other", "open('x')", "__import__('os')", "pair.values", "pair[0]", "'text'", "True", "1e999", "mean(x=1)",
     "(lambda: 1)()", "[1]", "1 if 1 else 2", "1 and 2", "1 % 2", "1 is 1", "1 +", "1 / 0", "where(pair, pair.keys)"],
)  # fmt: skip
def test_arithmetic_refuses_anything_else(expression):
    with pytest.raises(ValueError, match="cannot evaluate"):
        evaluate(expression, {"pair": PAIR}.__getitem__)
