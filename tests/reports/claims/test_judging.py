"""Each kind of relation on synthetic records that support it, contradict it, leave it open, or are not there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.claims import At, AverageBetter, Better, Cheaper, Claim, Printed, Reaches, Same, Similar, Target
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark
from reports import ReportError
from reports.claims.judge import Judgement, judge
from reports.evidence.published import Numbers

ACC, TABLE = "test/accuracy", "fedsplitbert-table3"
SPLIT, QAT, FEDAVG, FEDPROX = (At(TABLE, row) for row in ("fedsplitbert", "fedsplitbert-qat", "fedavg", "fedprox"))
RunOf = Callable[..., RunRecord]
SeedsOf = Callable[..., list[RunRecord]]
JudgeOf = Callable[..., Judgement]

BETTER = Better((SPLIT,), (FEDAVG,), tasks=("qqp",))
# Sampling errors of 0.5 points each: 1.96 × √2 × 0.5 = 1.386 around a difference, where seeds agree.
HALF = 1.96 * math.sqrt(2) * 0.5


# ---- better ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ([62.0, 62.0], "supported"),  # 2 ± 1.386
        ([58.0, 58.0], "contradicted"),
        ([61.0, 61.0], "inconclusive"),  # 1 ± 1.386
        ([61.0, 65.0], "inconclusive"),  # 3 ± 12.706 × 2.83 / √2: two seeds that differ say little
        ([90.0], "inconclusive"),  # one seed has no interval
    ],
)
def test_better_needs_its_whole_interval(seeds_of: SeedsOf, judge_of: JudgeOf, ours: list[float], verdict: str) -> None:
    records = seeds_of("fedsplitbert", "qqp", ours) + seeds_of("fedavg", "qqp", [60.0, 60.0])
    assert judge_of(BETTER, records).ours == verdict


def test_numbers_show_difference_interval_and_seeds(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    records = seeds_of("fedsplitbert", "qqp", [62.0, 62.0]) + seeds_of("fedavg", "qqp", [60.0, 60.0])
    text = judge_of(BETTER, records).ours_numbers
    assert text == f"n = 2; FedSplitBERT − FedAvg, QQP +2.00 [+{2 - HALF:.2f}, +{2 + HALF:.2f}]"
    single = judge_of(BETTER, [records[0], records[2]]).ours_numbers
    assert single == "n = 1; FedSplitBERT − FedAvg, QQP +2.00"


def test_differences_are_paired_by_seed(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    """Seeds move both methods by 20 points; the difference is 2 in each."""
    ours, theirs = seeds_of("fedsplitbert", "qqp", [42.0, 62.0, 52.0]), seeds_of("fedavg", "qqp", [40.0, 60.0, 50.0])
    assert judge_of(BETTER, ours + theirs).ours == "supported"
    assert judge_of(BETTER, [*ours[:1], *theirs[1:]]).ours == "not run"  # no seed in common


def test_margin_is_part_of_the_comparison(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    records = seeds_of("fedsplitbert", "qqp", [63.0, 63.0]) + seeds_of("fedavg", "qqp", [60.0, 60.0])
    verdicts = {by: judge_of(replace(BETTER, by=by), records).ours for by in (1.6, 2.0, 4.0, 4.4)}
    assert verdicts == {1.6: "supported", 2.0: "inconclusive", 4.0: "inconclusive", 4.4: "contradicted"}


def test_partly_run_is_said_and_never_supported(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    relation = replace(BETTER, tasks=("qqp", "qnli"))
    records = seeds_of("fedsplitbert", "qqp", [62.0, 62.0]) + seeds_of("fedavg", "qqp", [60.0, 60.0])
    found = judge_of(relation, records)
    assert (found.ours, "1 of 2 run: 1 for" in found.ours_numbers) == ("inconclusive", True)
    against = seeds_of("fedsplitbert", "qnli", [50.0, 50.0]) + seeds_of("fedavg", "qnli", [60.0, 60.0])
    found = judge_of(relation, records + against)
    assert (found.ours, "2 of 2 run: 1 for, 1 against" in found.ours_numbers) == ("contradicted", True)
    assert judge_of(relation, []).ours == "not run"


def test_sometimes_needs_one_case(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    relation = replace(BETTER, tasks=("qqp", "qnli"), some=True)
    lower = seeds_of("fedsplitbert", "qqp", [50.0, 50.0]) + seeds_of("fedavg", "qqp", [60.0, 60.0])
    assert judge_of(relation, lower).ours == "inconclusive"  # the other task may still be one
    higher = seeds_of("fedsplitbert", "qnli", [70.0, 70.0]) + seeds_of("fedavg", "qnli", [60.0, 60.0])
    assert judge_of(relation, lower + higher).ours == "supported"
    both = lower + seeds_of("fedsplitbert", "qnli", [50.0, 50.0]) + seeds_of("fedavg", "qnli", [60.0, 60.0])
    assert judge_of(relation, both).ours == "contradicted"


def test_relative_margins_are_percent_of_the_rival(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    relation = replace(BETTER, by=10.0, relative=True)  # 50 to 60 points are 20 %
    records = seeds_of("fedsplitbert", "qqp", [60.0, 60.0]) + seeds_of("fedavg", "qqp", [50.0, 50.0])
    found = judge_of(relation, records)
    assert (found.ours, "QQP +20.00 % [" in found.ours_numbers) == ("supported", True)
    assert judge_of(replace(relation, by=25.0), records).ours == "contradicted"


def test_losses_are_better_when_lower(run_of: RunOf, judge_of: JudgeOf) -> None:
    relation = replace(BETTER, measure="loss")
    lower = [run_of("fedsplitbert", losses=(0.9, 0.2), seed=seed) for seed in (0, 1)]
    higher = [run_of("fedavg", losses=(0.3, 0.4), seed=seed) for seed in (0, 1)]
    assert judge_of(relation, lower + higher).ours == "supported"
    assert judge_of(replace(relation, rows=(FEDAVG,), than=(SPLIT,)), lower + higher).ours == "contradicted"
    assert judge_of(relation, [lower[0], higher[0]]).ours == "inconclusive"


def test_fewer_rounds_to_the_rivals_last_score(run_of: RunOf, judge_of: JudgeOf) -> None:
    relation = replace(BETTER, measure="rounds")
    quick = [run_of("fedsplitbert", curve=(70, 71, 72), seed=seed) for seed in (0, 1)]
    slow = [run_of("fedavg", curve=(50, 60, 65), seed=seed) for seed in (0, 1)]
    found = judge_of(relation, quick + slow)
    assert (found.ours, "rounds on QQP +2.00" in found.ours_numbers) == ("supported", True)
    never = judge_of(replace(relation, rows=(FEDAVG,), than=(SPLIT,)), quick + slow)
    assert never.ours == "contradicted"  # 3 rounds of the rival less at least 4
    assert "[−∞, −1.00] (not within 3 rounds)" in never.ours_numbers


def test_partial_data_are_marked(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    records = seeds_of("fedsplitbert", "qqp", [62.0, 62.0], partial=True)
    records += seeds_of("fedavg", "qqp", [60.0, 60.0], partial=True)
    assert judge_of(BETTER, records).ours_numbers.endswith("; partial data: QQP")


def test_an_unknown_sampling_error_leaves_no_interval(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    records = seeds_of("fedsplitbert", "qqp", [62.0, 62.0], error=None) + seeds_of("fedavg", "qqp", [60.0, 60.0])
    assert judge_of(BETTER, records).ours == "inconclusive"


def test_an_undefined_score_is_run_and_undecided(run_of: RunOf, judge_of: JudgeOf) -> None:
    records = [run_of("fedsplitbert", curve=(None, None)), run_of("fedavg")]
    found = judge_of(BETTER, records)
    assert (found.ours, "undefined" in found.ours_numbers) == ("inconclusive", True)


LASTS = st.lists(st.integers(0, 400).map(lambda value: value / 4), min_size=2, max_size=3)
OPPOSITE = {"supported": "contradicted", "contradicted": "supported", "inconclusive": "inconclusive"}


@settings(max_examples=40, deadline=None)
@given(LASTS, LASTS)
def test_the_verdict_flips_when_the_rows_are_exchanged(
    run_of: RunOf, judge_of: JudgeOf, ours: list[float], theirs: list[float]
) -> None:
    records = [run_of("fedsplitbert", curve=(0.0, last), seed=seed) for seed, last in enumerate(ours)]
    records += [run_of("fedavg", curve=(0.0, last), seed=seed) for seed, last in enumerate(theirs)]
    there, back = judge_of(BETTER, records).ours, judge_of(replace(BETTER, rows=(FEDAVG,), than=(SPLIT,)), records).ours
    assert back == OPPOSITE[there]


@settings(max_examples=40, deadline=None)
@given(LASTS, LASTS, st.sampled_from(["fedsplitbert", "fedavg"]), st.floats(0, 100))
def test_another_run_never_unmakes_one(
    run_of: RunOf, judge_of: JudgeOf, ours: list[float], theirs: list[float], row: str, last: float
) -> None:
    records = [run_of("fedsplitbert", curve=(0.0, value), seed=seed) for seed, value in enumerate(ours)]
    records += [run_of("fedavg", curve=(0.0, value), seed=seed) for seed, value in enumerate(theirs)]
    assert judge_of(BETTER, records).ours != "not run"
    assert judge_of(BETTER, [*records, run_of(row, curve=(0.0, last), seed=7)]).ours != "not run"


# ---- similar ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [(0.5, "supported"), (1.0, "inconclusive"), (3.5, "contradicted"), (-0.5, "supported"), (-3.5, "contradicted")],
)
def test_similar_is_an_equivalence(seeds_of: SeedsOf, judge_of: JudgeOf, difference: float, verdict: str) -> None:
    # within ± 2 points, intervals ± 1.386: 0.5 lies inside, 1 leaves, 3.5 is outside.
    records = seeds_of("fedsplitbert-qat", "qqp", [60.0 + difference] * 2) + seeds_of("fedsplitbert", "qqp", [60.0] * 2)
    assert judge_of(Similar(QAT, SPLIT, within=2.0, tasks=("qqp",)), records).ours == verdict


def test_one_seed_shows_no_equivalence(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    records = seeds_of("fedsplitbert-qat", "qqp", [60.0]) + seeds_of("fedsplitbert", "qqp", [60.0])
    assert judge_of(Similar(QAT, SPLIT, within=5.0, tasks=("qqp",)), records).ours == "inconclusive"


# ---- averages --------------------------------------------------------------------------------------------------


def _table(seeds_of: SeedsOf, table3: Benchmark, row: str, lasts: list[float]) -> list[RunRecord]:
    return [record for column in table3.columns for record in seeds_of(row, column.task, lasts, score=column.averaged)]


def test_averages_need_the_whole_table(seeds_of: SeedsOf, judge_of: JudgeOf, table3: Benchmark) -> None:
    relation = AverageBetter((SPLIT,), (FEDAVG, FEDPROX), by=3.5)
    records = _table(seeds_of, table3, "fedsplitbert", [64.9, 65.1])
    records += _table(seeds_of, table3, "fedavg", [60.0, 60.0]) + _table(seeds_of, table3, "fedprox", [50.0, 50.0])
    found = judge_of(relation, records)
    # 65 against the better rival's 60; the sampling error of nine tasks' mean is √18 × 0.5 / 9, far below 0.5.
    assert (found.ours, "averages +5.00 [" in found.ours_numbers) == ("supported", True)
    assert judge_of(replace(relation, by=6.0), records).ours == "contradicted"
    part = [record for record in records if record.cell.task in ("qqp", "rte")]
    found = judge_of(relation, part)
    assert (found.ours, "+5.00 on 2 of 9 tasks" in found.ours_numbers) == ("inconclusive", True)
    first = [record for record in records if record.cell.seed == 0]
    assert judge_of(relation, first).ours == "inconclusive"
    assert judge_of(relation, records[:2]).ours == "not run"


# ---- targets and bytes -----------------------------------------------------------------------------------------

TARGET = Target({"qqp": 84.0}, FEDAVG)
SIZES = Printed("Table VI", "parameter_gb")


def test_targets_are_scale_free_below_the_papers_scale(run_of: RunOf, judge_of: JudgeOf) -> None:
    relation = Reaches((SPLIT, FEDAVG), TARGET, within_rounds=2)
    curves = {"fedsplitbert": (62, 65, 66), "fedavg": (50, 55, 60)}
    records = [run_of(row, curve=curve, seed=seed) for row, curve in curves.items() for seed in (0, 1)]
    found = judge_of(relation, records)
    assert found.ours == "supported"  # 65 by round 2 against FedAvg's 60
    assert "FedSplitBERT, QQP +5.00" in found.ours_numbers
    assert "(round 1; target 60.00, FedAvg's last)" in found.ours_numbers
    assert "FedAvg, QQP +0.00 (sets the target)" in found.ours_numbers
    paper = [replace(record, cell=replace(record.cell, scale="paper")) for record in records]
    assert judge_of(relation, paper, "lite").ours == "not run"
    at_paper = [run_of(row, curve=curve, seed=s, scale="paper") for row, curve in curves.items() for s in (0, 1)]
    found = judge_of(replace(relation, rows=(SPLIT,)), at_paper, "paper")
    assert (found.ours, "(not within 3 rounds; target 84)" in found.ours_numbers) == ("contradicted", True)


def test_a_limit_in_bytes_scales_with_the_encoder(run_of: RunOf, judge_of: JudgeOf) -> None:
    """1 GB beside a printed round of 1 GB is one round of FedAvg here: two rounds of FedSplitBERT at 400 bytes."""
    numbers = Numbers({("Table VI", "fedavg", "parameter_gb", ""): Decimal(1)})
    relation = Reaches((SPLIT,), TARGET, below_bytes=1e9, sizes=SIZES)
    fedavg = [run_of("fedavg", curve=(50, 55, 60), up=1000, seed=seed) for seed in (0, 1)]
    late = [run_of("fedsplitbert", curve=(50, 52, 66), up=400, seed=seed) for seed in (0, 1)]
    assert judge_of(relation, fedavg + late, numbers=numbers).ours == "contradicted"  # 66 comes with round 3
    early = [run_of("fedsplitbert", curve=(50, 66, 52), up=400, seed=seed) for seed in (0, 1)]
    assert judge_of(relation, fedavg + early, numbers=numbers).ours == "supported"
    big = [run_of("fedsplitbert", curve=(66, 66, 66), up=1000, seed=seed) for seed in (0, 1)]
    found = judge_of(relation, fedavg + big, numbers=numbers)
    assert (found.ours, "one round is above the limit" in found.ours_numbers) == ("contradicted", True)


def test_bytes_of_a_round_are_exact(run_of: RunOf, judge_of: JudgeOf) -> None:
    relation = Cheaper((QAT,), (FEDAVG,), 4.0, ("qqp",))
    records = [run_of("fedavg", up=1030), run_of("fedsplitbert-qat", up=260)]  # 3.96
    assert judge_of(relation, records).ours == "contradicted"
    rounded = judge_of(replace(relation, places=0), records)
    assert (rounded.ours, rounded.ours_numbers) == ("supported", "n = 1; FedAvg / FedSplitBERT + qat, QQP 3.96 ×")
    assert judge_of(relation, records[:1]).ours == "not run"


def test_bytes_to_a_target_hang_on_the_seeds(run_of: RunOf, judge_of: JudgeOf) -> None:
    relation = Cheaper((SPLIT,), (FEDAVG,), 2.0, ("qqp",), TARGET)
    slow = [run_of("fedavg", curve=(50, 55, 60), up=1000, seed=seed) for seed in (0, 1)]
    quick = [run_of("fedsplitbert", curve=(65, 66, 67), up=500, seed=seed) for seed in (0, 1)]
    found = judge_of(relation, slow + quick)  # 3 rounds × 1000 against 1 × 500
    assert (found.ours, " 6.00 × (round 3 against round 1;" in found.ours_numbers) == ("supported", True)
    assert judge_of(relation, [slow[0], quick[0]]).ours == "inconclusive"
    assert judge_of(replace(relation, factor=6.1), slow + quick).ours == "contradicted"


def test_a_target_never_reached_is_censored(run_of: RunOf, judge_of: JudgeOf) -> None:
    relation = Cheaper((SPLIT,), (FEDPROX,), 2.0, ("qqp",), TARGET)
    fedavg = [run_of("fedavg", curve=(50, 55, 60), seed=seed) for seed in (0, 1)]
    never = [run_of("fedprox", curve=(50, 50, 50), up=1000, seed=seed) for seed in (0, 1)]
    quick = [run_of("fedsplitbert", curve=(65, 66, 67), up=500, seed=seed) for seed in (0, 1)]
    found = judge_of(relation, fedavg + never + quick)
    assert (found.ours, "6.00 × [6.00, ∞] (not within 3 rounds against round 1" in found.ours_numbers) == (
        "supported",
        True,
    )
    assert judge_of(replace(relation, factor=7.0), fedavg + never + quick).ours == "inconclusive"  # it may be 7
    back = replace(relation, rows=(FEDPROX,), than=(SPLIT,))
    assert judge_of(back, fedavg + never + quick).ours == "contradicted"
    neither = [run_of("fedsplitbert", curve=(50, 50, 50), up=500, seed=seed) for seed in (0, 1)]
    assert judge_of(relation, fedavg + never + neither).ours == "inconclusive"


# ---- the same run ----------------------------------------------------------------------------------------------


def test_same_is_exact(run_of: RunOf, judge_of: JudgeOf) -> None:
    relation = Same(SPLIT, FEDAVG, tasks=("qqp",))
    first, second = run_of("fedsplitbert"), run_of("fedavg")
    assert judge_of(relation, [first, second]).ours == "supported"
    other = judge_of(relation, [first, run_of("fedavg", curve=(50.25, 60.0))])
    assert (other.ours, "QQP −0.25" in other.ours_numbers) == ("contradicted", True)
    loss = judge_of(relation, [first, run_of("fedavg", losses=(0.5, 0.6))])
    assert (loss.ours, "equal scores, but other losses or bytes" in loss.ours_numbers) == ("contradicted", True)
    away = judge_of(relation, [first, run_of("fedavg", curve=(50.25, 60.0), device="cuda")])
    assert (away.ours, "run on different machines" in away.ours_numbers) == ("inconclusive", True)
    assert judge_of(relation, [first]).ours == "not run"


# ---- what surrounds it -----------------------------------------------------------------------------------------


def test_nothing_is_judged_on_generated_data(table3: Benchmark) -> None:
    claim = Claim("1", "A sentence", "section I", (BETTER,))
    assert judge("FedSplitBERT", (claim,), {}, [], {table3.id: table3}, table3.scale("demo")) == ()


def test_unknown_places_are_named(judge_of: JudgeOf) -> None:
    with pytest.raises(ReportError, match=r"expected the benchmark 'fedsplitbert-table9', found fedsplitbert-table3"):
        judge_of(Better((At("fedsplitbert-table9", "fedavg"),), (FEDAVG,)), [])
    with pytest.raises(ReportError, match=r"one of fedavg, .*, found 'fedsgd'"):
        judge_of(Better((At(TABLE, "fedsgd"),), (FEDAVG,), tasks=("qqp",)), [])
