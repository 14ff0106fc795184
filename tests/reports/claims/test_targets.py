"""Targets: reached or not, in which round, with how many bytes; and when nothing follows."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.claims import Better, CostBound, PublishedColumn, Reaches, Target
from reports.evidence.published import Numbers
from reports.evidence.scores import round_reaching
from reports.evidence.targets import Attempt, attempt, gain_over
from tests.reports.claims.conftest import ACC, FEDAVG, FEDPROX, SPLIT

TARGET = Target({"qqp": 84.0}, (FEDAVG,))
ROUNDS = Better((SPLIT,), (FEDAVG,), tasks=("qqp",), measure="rounds")
TWICE = CostBound((SPLIT,), (FEDAVG,), ("qqp",), least=2.0, target=TARGET)


def test_fewer_rounds_to_the_rivals_best(runs_of, judge_of):
    quick, slow = runs_of("fedsplitbert", (66, 71, 72)), runs_of("fedavg", (50, 65, 60))
    judgement = judge_of(ROUNDS, quick + slow)  # 65 after round 2, not the last one's 60
    assert judgement.word == "supported"
    assert "QQP Acc +1.00 (target 65.03, FedAvg's best round)" in judgement.effect
    never = judge_of(replace(ROUNDS, rows=(FEDAVG,), than=(SPLIT,)), quick + slow)
    assert never.word == "contradicted"  # 3 rounds of the rival minus at least 4
    assert "[−∞, −1.00] (not within 3 rounds" in never.numbers[0]
    six = [record for record in quick + slow if record.cell.seed < 6]
    assert judge_of(ROUNDS, six).verdict == "undecided: too few seeds"


def test_a_target_is_our_own_below_the_papers_scale(runs_of, judge_of):
    relation, quick, slow = Reaches((SPLIT,), TARGET, within_rounds=2), (62, 65, 66), (50, 60, 55)
    records = runs_of("fedsplitbert", quick) + runs_of("fedavg", slow)
    judgement = judge_of(relation, records)
    assert (judgement.word, "(round 1; target 60.03, FedAvg's best round)" in judgement.effect) == ("supported", True)
    at_paper = runs_of("fedsplitbert", quick, scale="paper") + runs_of("fedavg", slow, scale="paper")
    assert judge_of(relation, at_paper, "paper").word == "contradicted"  # the paper's 84
    only = replace(relation, target=replace(TARGET, only_published=True))
    assert judge_of(only, records).verdict == "not testable here: no target at this scale"


def test_a_limit_in_bytes_is_scaled_by_the_first_baselines_round(runs_of, judge_of):
    """The paper's 1 GB of rounds of 1 GB is one round of FedAvg here, 1000 bytes: less than two of FedSplitBERT."""
    sizes = PublishedColumn("Table VI", "parameter_gb")
    relation = Reaches((SPLIT,), TARGET, below_bytes=1.0001e9, sizes=sizes)
    numbers = Numbers({("Table VI", "fedavg", "parameter_gb", ""): Decimal("1")})
    fedavg, split = runs_of("fedavg", (50, 55, 60)), runs_of("fedsplitbert", (59, 66, 67), up=1000)
    assert judge_of(relation, fedavg + split, numbers=numbers).word == "contradicted"  # 59 after the only round
    small = runs_of("fedsplitbert", (59, 66, 67), up=500)
    assert judge_of(relation, fedavg + small, numbers=numbers).word == "supported"
    big = runs_of("fedsplitbert", (66, 66, 66), up=2000)
    assert judge_of(relation, fedavg + big, numbers=numbers).verdict == ("not testable here: one round above the limit")


def test_a_target_never_reached_is_censored(runs_of, judge_of):
    relation = CostBound((SPLIT,), (FEDPROX,), ("qqp",), least=2.0, target=TARGET)
    records = runs_of("fedavg", (50, 55, 60)) + runs_of("fedprox", (50, 50, 50), up=1000)
    quick, neither = runs_of("fedsplitbert", (65, 66, 67), up=500), runs_of("fedsplitbert", (50, 50, 50), up=500)
    judgement = judge_of(relation, records + quick)
    assert judgement.word == "supported"
    assert "6.00 × [6.00, ∞] (not within 3 rounds against round 1" in judgement.numbers[0]
    assert judge_of(replace(relation, least=7.0), records + quick).word == "undecided"  # it may be 7
    assert judge_of(replace(relation, rows=(FEDPROX,), than=(SPLIT,)), records + quick).word == "contradicted"
    assert judge_of(relation, records + neither).word == "undecided"


@pytest.mark.parametrize("relation", [ROUNDS, TWICE, Reaches((SPLIT,), TARGET, within_rounds=1)])
@pytest.mark.parametrize("ours", [(65, 66, 67), (50, 51, 52)], ids=["quick", "never"])
def test_no_verdict_if_the_majority_meets_the_target(runs_of, judge_of, relation, ours):
    records = runs_of("fedavg", (50, 55, 60), up=1000) + runs_of("fedsplitbert", ours, up=600)
    expected = "supported" if ours[0] > 60 else "contradicted"
    assert judge_of(relation, records, levels={"local-majority": 55.0}).word == expected
    met = judge_of(relation, records, levels={"local-majority": 60.1})
    assert (met.verdict, "meets it in 7 of 7 seeds" in met.numbers[-1]) == ("not testable here: vacuous target", True)
    unknown = judge_of(relation, records, levels={"local-majority": None})
    assert unknown.verdict == "undecided: not run"


def test_a_target_that_constant_answers_reach_is_a_result(runs_of, judge_of):
    """The most frequent label of each client gives 85 % where the paper's target is 84, whatever the methods do."""
    runs, relation = runs_of("fedavg", (50, 65)), Reaches((SPLIT,), TARGET, within_rounds=2)
    judgement = judge_of(relation, runs, levels={"local-majority": 85.0})
    assert judgement.word == "vacuous target"
    assert judgement.verdict.endswith("the per-client majority class scores 85.00, the target is 84, n = 8")
    higher = replace(relation, target=replace(TARGET, percent={"qqp": 86.0}))
    assert judge_of(higher, runs, levels={"local-majority": 85.0}).word == "undecided"


def test_the_first_round_at_the_target_counts_even_if_later_ones_fall(run_of):
    record = run_of("fedavg", curve=(50.0, 84.0, 70.0, 90.0))
    assert [round_reaching(record, ACC, target) for target in (0.4, 0.84, 0.85, 0.91)] == [1, 2, 4, None]


@given(st.lists(st.one_of(st.none(), st.floats(0, 100)), min_size=1, max_size=8), st.floats(0, 1))
def test_a_censored_run_is_never_counted_as_reached(run_of, scores, target):
    """Each round sends 1000 bytes of 250 values up, and the same down."""
    outcome = attempt(run_of("fedavg", curve=scores), ACC, target)
    best = max((score / 100 for score in scores if score is not None), default=-1.0)
    assert outcome.is_reached == (best >= target - 1e-9)  # equal up to a float's last bits
    if not outcome.is_reached:
        assert (outcome.rounds, outcome.bytes, outcome.values) == (len(scores), 1000 * len(scores), 250 * len(scores))


COUNTS = st.integers(1, 10**12)
SENT = st.builds(Attempt, *[st.builds(Fraction, COUNTS, st.integers(1, 9))] * 3)


@given(SENT, SENT)
def test_the_product_of_the_factors_is_the_gain(baseline, method):
    gain = gain_over(baseline, method)
    assert gain is not None
    assert gain.layers * gain.rounds * gain.precision == gain.total == baseline.bytes / method.bytes
