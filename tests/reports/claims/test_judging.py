"""Each kind of relation on synthetic records that support it, contradict it, leave it open, or are not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.claims import At, AverageBetter, Better, Cheaper, Claim, Same, Similar
from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.claims.judge import Judgement, judge
from reports.claims.tables import summary

ACC, TABLE = "test/accuracy", "fedsplitbert-table3"
SPLIT, QAT, FEDAVG, FEDPROX = (At(TABLE, row) for row in ("fedsplitbert", "fedsplitbert-qat", "fedavg", "fedprox"))
RunOf = Callable[..., RunResult]
SeedsOf = Callable[..., list[RunResult]]
JudgeOf = Callable[..., Judgement]

BETTER = Better((SPLIT,), (FEDAVG,), tasks=("qqp",))
LEVELS = {"fedsplitbert": 70, "fedavg": 65}


# ---- better ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ([62.0, 62.25, 61.75], "supported"),  # 2 ± 2.92 × √(1/3 + 0.2625) × 0.25 = 0.56
        ([58.0, 58.25, 57.75], "contradicted"),
        ([60.5, 60.75, 60.25], "undecided"),
        ([61.0, 65.0], "undecided"),  # two seeds that differ say little
        ([90.0], "undecided"),  # one seed shows no error
        ([60.0, 60.0, 60.0], "undecided"),  # a tie
    ],
)
def test_better_needs_its_whole_interval(seeds_of: SeedsOf, judge_of: JudgeOf, ours: list[float], verdict: str) -> None:
    records = seeds_of("fedsplitbert", "qqp", ours) + seeds_of("fedavg", "qqp", [60.0] * 3)
    assert judge_of(BETTER, records).ours == verdict


def test_differences_are_paired_by_seed(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    """Seeds move both methods by 20 points; the difference is about 2 in each."""
    ours, theirs = seeds_of("fedsplitbert", "qqp", [42.0, 62.5, 52.0]), seeds_of("fedavg", "qqp", [40.0, 60.0, 50.0])
    assert judge_of(BETTER, ours + theirs).ours == "supported"
    assert judge_of(BETTER, [*ours[:1], *theirs[1:]]).ours == "not run"  # no seed in common


def test_scores_are_those_of_the_round_that_is_best_on_validation(run_of: RunOf, judge_of: JudgeOf) -> None:
    def run(row: str, curve: tuple[float, ...], validation: tuple[float, ...], seed: int) -> RunResult:
        record = run_of(row, curve=curve, seed=seed)
        rounds = tuple(
            replace(entry, scores={**entry.scores, "validation": {"accuracy": value}})
            for entry, value in zip(record.rounds, validation, strict=True)
        )
        return replace(record, rounds=rounds, chosen_by="validation/accuracy")

    records = [run("fedsplitbert", (70, 60), (0.9, 0.8), seed) for seed in (0, 1)]
    records += [run("fedavg", (50, 65), (0.7, 0.8), seed) for seed in (0, 1)]
    found = judge_of(BETTER, records)
    assert (found.ours, "QQP +5.00" in found.ours_numbers) == ("supported", True)  # 70 − 65, not 60 − 65
    assert (found.at_last, found.hangs_on_round) == ("contradicted", True)
    assert found.remarks.endswith("scored at the last round: contradicted")
    assert summary([found]).endswith(
        " Scored at the last round in place of the one best on validation data, these are decided otherwise: 1."
    )
    steady = [run(row, (level, level), (0.8, 0.8), seed) for row, level in LEVELS.items() for seed in (0, 1)]
    alike = judge_of(BETTER, steady)
    assert (alike.ours, alike.at_last, "last round" in alike.remarks) == ("supported", "supported", False)
    assert summary([alike]).endswith("best on validation data, none is decided otherwise.")


def test_margin_is_part_of_the_comparison(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    records = seeds_of("fedsplitbert", "qqp", [62.5, 63.5, 63.0]) + seeds_of("fedavg", "qqp", [60.0] * 3)
    verdicts = {by: judge_of(replace(BETTER, by=by), records).ours for by in (1.6, 2.5, 3.5, 4.4)}
    assert verdicts == {1.6: "supported", 2.5: "undecided", 3.5: "undecided", 4.4: "contradicted"}


def test_partly_run_is_said_and_never_supported(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    relation = replace(BETTER, tasks=("qqp", "qnli"))
    records = seeds_of("fedsplitbert", "qqp", [62.0, 62.0]) + seeds_of("fedavg", "qqp", [60.0, 60.0])
    found = judge_of(relation, records)
    assert (found.ours, "1 of 2 run: 1 for" in found.ours_numbers) == ("undecided", True)
    assert found.why == "1 of 2 for; 1 of 2 not run"
    against = seeds_of("fedsplitbert", "qnli", [50.0, 50.0]) + seeds_of("fedavg", "qnli", [60.0, 60.0])
    found = judge_of(relation, records + against)
    assert (found.ours, "2 of 2 run: 1 for, 1 against" in found.ours_numbers) == ("contradicted", True)
    assert judge_of(relation, []).ours == "not run"


def test_one_against_of_several_needs_holm(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    """By itself −2 ± 1.9 is wholly below 0; as one of six it is not enough."""
    losing = seeds_of("fedsplitbert", "qqp", [57.15, 58.0, 58.85]) + seeds_of("fedavg", "qqp", [60.0] * 3)
    assert judge_of(BETTER, losing).ours == "contradicted"
    tasks = ("qqp", "qnli", "rte", "wnli", "sst2", "mrpc")
    winning = [
        record
        for task in tasks[1:]
        for record in seeds_of("fedsplitbert", task, [70.0, 70.5, 71.0]) + seeds_of("fedavg", task, [60.0] * 3)
    ]
    found = judge_of(replace(BETTER, tasks=tasks, scores=(ACC,)), losing + winning)
    assert (found.ours, "6 of 6 run: 5 for, 1 undecided" in found.ours_numbers) == ("undecided", True)
    assert found.why == "5 of 6 for; 1 of 6 against by itself, not after Holm's correction for 6"


def test_sometimes_needs_one_case(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    relation = replace(BETTER, tasks=("qqp", "qnli"), some=True)
    lower = seeds_of("fedsplitbert", "qqp", [50.0, 50.0]) + seeds_of("fedavg", "qqp", [60.0, 60.0])
    assert judge_of(relation, lower).ours == "undecided"  # the other task may still be one
    higher = seeds_of("fedsplitbert", "qnli", [70.0, 70.0]) + seeds_of("fedavg", "qnli", [60.0, 60.0])
    assert judge_of(relation, lower + higher).ours == "supported"
    both = lower + seeds_of("fedsplitbert", "qnli", [50.0, 50.0]) + seeds_of("fedavg", "qnli", [60.0, 60.0])
    assert judge_of(relation, both).ours == "contradicted"


def test_losses_are_better_when_lower(run_of: RunOf, judge_of: JudgeOf) -> None:
    relation = replace(BETTER, measure="loss")
    lower = [run_of("fedsplitbert", losses=(0.9, 0.2), seed=seed) for seed in (0, 1)]
    higher = [run_of("fedavg", losses=(0.3, 0.4), seed=seed) for seed in (0, 1)]
    assert judge_of(relation, lower + higher).ours == "supported"
    assert judge_of(replace(relation, rows=(FEDAVG,), than=(SPLIT,)), lower + higher).ours == "contradicted"
    assert judge_of(relation, [lower[0], higher[0]]).ours == "undecided"


def test_an_undefined_score_is_run_and_undecided(run_of: RunOf, judge_of: JudgeOf) -> None:
    records = [run_of("fedsplitbert", curve=(None, None)), run_of("fedavg")]
    found = judge_of(BETTER, records)
    assert (found.ours, "undefined" in found.ours_numbers, found.why) == ("undecided", True, "undefined")


LASTS = st.lists(st.integers(0, 400).map(lambda value: value / 4), min_size=2, max_size=3)
OPPOSITE = {"supported": "contradicted", "contradicted": "supported", "undecided": "undecided"}


@settings(max_examples=30, deadline=None)
@given(LASTS, LASTS)
def test_the_verdict_flips_when_the_rows_are_exchanged(
    run_of: RunOf, judge_of: JudgeOf, ours: list[float], theirs: list[float]
) -> None:
    records = [run_of("fedsplitbert", curve=(0.0, last), seed=seed) for seed, last in enumerate(ours)]
    records += [run_of("fedavg", curve=(0.0, last), seed=seed) for seed, last in enumerate(theirs)]
    there, back = judge_of(BETTER, records).ours, judge_of(replace(BETTER, rows=(FEDAVG,), than=(SPLIT,)), records).ours
    assert back == OPPOSITE[there]


# ---- similar ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [(0.5, "supported"), (1.7, "undecided"), (3.5, "contradicted"), (-0.5, "supported"), (-3.5, "contradicted")],
)
def test_similar_is_two_one_sided_tests(seeds_of: SeedsOf, judge_of: JudgeOf, difference: float, verdict: str) -> None:
    # within ± 2 points, intervals ± 2.92 × √(1/3 + 0.2625) × 0.25 = 0.56
    lasts = [60.0 + difference + step for step in (-0.25, 0.0, 0.25)]
    records = seeds_of("fedsplitbert-qat", "qqp", lasts) + seeds_of("fedsplitbert", "qqp", [60.0] * 3)
    assert judge_of(Similar(QAT, SPLIT, within=2.0, tasks=("qqp",)), records).ours == verdict


# ---- averages --------------------------------------------------------------------------------------------------


def test_rows_of_one_table_share_their_seeds(seeds_of: SeedsOf, judge_of: JudgeOf, table3: Benchmark) -> None:
    """What one row gains by a seed the other loses: their mean is steady, though neither is."""
    one = replace(table3, columns=tuple(column for column in table3.columns if column.task == "qqp"))
    records = seeds_of("fedsplitbert", "qqp", [60.0, 70.1]) + seeds_of("fedsplitbert-qat", "qqp", [70.0, 60.0])
    records += seeds_of("fedavg", "qqp", [60.0, 60.0])
    assert judge_of(AverageBetter((SPLIT, QAT), (FEDAVG,), by=3.5), records, table=one).ours == "supported"
    assert judge_of(AverageBetter((SPLIT,), (FEDAVG,), by=3.5), records, table=one).ours == "undecided"


# ---- bytes -----------------------------------------------------------------------------------------------------


def test_bytes_of_a_round_are_a_derivation(run_of: RunOf, judge_of: JudgeOf) -> None:
    relation = Cheaper((QAT,), (FEDAVG,), 4.0, ("qqp",))
    records = [run_of("fedavg", up=1030), run_of("fedsplitbert-qat", up=260)]  # 3.96
    assert judge_of(relation, records).ours == "fails by derivation"
    rounded = judge_of(replace(relation, places=0), records)
    assert (rounded.ours, rounded.ours_numbers) == (
        "holds by derivation",
        "n = 1; FedAvg / FedSplitBERT + qat, QQP 3.96 ×",
    )
    assert judge_of(replace(relation, factor=1.0, most=2.0), records).ours == "fails by derivation"
    assert judge_of(relation, records[:1]).ours == "not run"


# ---- the same run ----------------------------------------------------------------------------------------------


def test_same_is_exact_wherever_it_was_run(run_of: RunOf, judge_of: JudgeOf) -> None:
    relation = Same(SPLIT, FEDAVG, tasks=("qqp", "qnli"))  # one task is enough
    first, second = run_of("fedsplitbert"), run_of("fedavg")
    assert judge_of(relation, [first, second]).ours == "holds by derivation"
    other = judge_of(relation, [first, run_of("fedavg", curve=(50.25, 60.0))])
    assert (other.ours, "QQP −0.25" in other.ours_numbers) == ("fails by derivation", True)
    loss = judge_of(relation, [first, run_of("fedavg", losses=(0.5, 0.6))])
    assert (loss.ours, "equal scores, but other losses or bytes" in loss.ours_numbers) == ("fails by derivation", True)
    away = judge_of(relation, [first, run_of("fedavg", curve=(50.25, 60.0), device="cuda")])
    assert (away.ours, "run on different machines" in away.ours_numbers) == ("undecided", True)
    elsewhere = [run_of("fedsplitbert", task="qnli"), run_of("fedavg", task="qnli", curve=(1.0, 2.0), device="cuda")]
    assert judge_of(relation, [first, second, *elsewhere]).ours == "holds by derivation"
    others = [run_of("fedsplitbert", seed=1), run_of("fedavg", seed=1, curve=(1.0, 2.0), device="cuda")]
    assert judge_of(relation, [first, second, *others]).ours == "holds by derivation"
    assert judge_of(relation, [first]).ours == "not run"


# ---- what surrounds it -----------------------------------------------------------------------------------------


def test_nothing_is_judged_on_generated_data(table3: Benchmark) -> None:
    claim = Claim("1", "A sentence", "section I", (BETTER,))
    assert judge("FedSplitBERT", (claim,), {}, [], {table3.id: table3}, table3.scale("demo")) == ()
