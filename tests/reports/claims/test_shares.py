"""Shares of costs, p-values and similarity in percent: what each concludes from print and from records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from scipy import stats

from benchmarks.claims import P_VALUE, At, Claim, CostShare, NotTold, Printed, Similar
from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.claims.judge import Judgement, judge_in_print
from reports.claims.paired import unpaired_p
from reports.evidence.published import Numbers

ACC, TABLE = "test/accuracy", "fedsplitbert-table3"
SPLIT, FEDAVG = At(TABLE, "fedsplitbert"), At(TABLE, "fedavg")
RunOf = Callable[..., RunResult]
SeedsOf = Callable[..., list[RunResult]]
JudgeOf = Callable[..., Judgement]
HALF = CostShare((SPLIT,), (FEDAVG,), "bytes", ("qqp",), most=50.0, places=2, costs=Printed("Costs", "mb"))


def in_print(table: Benchmark, relation: Any, values: dict[tuple[str, str, str, str], str]) -> tuple[str, str]:
    numbers = Numbers({place: Decimal(value) for place, value in values.items()})
    claim = Claim("1", "A sentence", "section I", (relation,))
    found = judge_in_print(claim, {"fedsplitbert": numbers}, {table.id: table})
    return found.verdict, "; ".join(case.text for case in found.cases)


# ---- costs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "verdict"), [("50", "holds"), ("50.004", "holds"), ("50.006", "does not hold"), ("1", "holds")]
)
def test_print_has_shares_of_costs(table3: Benchmark, size: str, verdict: str) -> None:
    costs = {("Costs", "fedsplitbert", "mb", ""): size, ("Costs", "fedavg", "mb", ""): "100"}
    found = in_print(table3, HALF, costs)
    assert found[0] == verdict
    assert f"({size} of 100)" in found[1]
    assert in_print(table3, replace(HALF, costs=None), costs)[0] == "not printed"


def test_bytes_follow_from_shapes(run_of: RunOf, judge_of: JudgeOf) -> None:
    records = [run_of("fedsplitbert", up=500), run_of("fedavg", up=1000)]
    found = judge_of(HALF, records)
    assert (found.ours, found.effect) == (
        "holds by derivation",
        "FedSplitBERT of FedAvg, communication, QQP 50.00 %",
    )
    assert judge_of(replace(HALF, most=49.9), records).ours == "fails by derivation"
    assert judge_of(replace(HALF, least=50.0, most=50.0), records).ours == "holds by derivation"
    assert judge_of(HALF, records[:1]).ours == "not run"


def test_seconds_are_shown_and_decide_nothing(run_of: RunOf, judge_of: JudgeOf) -> None:
    timed = [
        replace(run_of(row), timing={"train_seconds": seconds})
        for row, seconds in (("fedsplitbert", 10.0), ("fedavg", 100.0))
    ]
    found = judge_of(replace(HALF, of="seconds"), timed)
    assert found.ours == "not judged"
    assert "time, QQP 10.00 %" in found.ours_numbers
    assert "beside other work" in found.why
    assert judge_of(replace(HALF, of="seconds"), [run_of("fedsplitbert"), run_of("fedavg")]).ours == "not run"


# ---- p-values --------------------------------------------------------------------------------------------------

TOLD = NotTold(SPLIT, FEDAVG, above=0.05, printed="Text", tasks=("qqp",))


@pytest.mark.parametrize(("p", "verdict"), [("0.06", "holds"), ("0.05", "does not hold"), ("0.01", "does not hold")])
def test_printed_p_values(table3: Benchmark, p: str, verdict: str) -> None:
    assert in_print(table3, TOLD, {("Text", "fedsplitbert", "qqp", P_VALUE): p})[0] == verdict
    assert in_print(table3, TOLD, {})[0] == "not printed"


def test_a_p_value_is_welchs_and_no_evidence(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    own, its = [60.0, 61.0, 62.5], [60.5, 61.5, 61.0]
    records = seeds_of("fedsplitbert", "qqp", own) + seeds_of("fedavg", "qqp", its)
    expected = float(stats.ttest_ind(own, its, equal_var=False).pvalue)
    pairs = list(zip(records[:3], records[3:], strict=True))
    assert unpaired_p(pairs, ACC).value == pytest.approx(expected)
    found = judge_of(TOLD, records)
    assert (found.ours, "no evidence that two are equal" in found.why) == ("not judged", True)
    assert f"p = {expected:.4f}" in found.ours_numbers
    far = seeds_of("fedsplitbert", "qqp", [90.0, 91.0, 92.0]) + records[3:]
    assert judge_of(TOLD, far).ours == "not judged"  # nor does it speak against them


# ---- similar in percent ----------------------------------------------------------------------------------------


def test_similar_in_percent_over_seeds(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    """A difference of 1 ± 0.2 points at a level of 50 is 2 ± 0.4 percent."""
    own, its = [51.1, 51.0, 50.9], [50.0, 50.0, 50.0]
    records = seeds_of("fedsplitbert", "qqp", own) + seeds_of("fedavg", "qqp", its)
    points = Similar(SPLIT, FEDAVG, within=2.0, tasks=("qqp",))
    readings = (points, *(replace(points, relative=True, within=percent) for percent in (2.0, 3.0, 1.0)))
    found = [judge_of(reading, records, levels={"overall-majority": 20.0}).ours for reading in readings]
    assert found == ["supported", "undecided", "supported", "contradicted"]
