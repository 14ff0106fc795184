"""Targets, seed by seed: what is reached, in which round, with how many bytes; and when nothing is concluded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from benchmarks.claims import At, Better, Cheaper, Printed, Reaches, Target
from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.claims.judge import Judgement
from reports.evidence.published import Numbers

TABLE = "fedsplitbert-table3"
SPLIT, FEDAVG, FEDPROX = (At(TABLE, row) for row in ("fedsplitbert", "fedavg", "fedprox"))
RunOf = Callable[..., RunResult]
JudgeOf = Callable[..., Judgement]

TARGET = Target({"qqp": 84.0}, (FEDAVG,))
SIZES = Printed("Table VI", "parameter_gb")
ROUNDS = Better((SPLIT,), (FEDAVG,), tasks=("qqp",), measure="rounds")
TWICE = Cheaper((SPLIT,), (FEDAVG,), 2.0, ("qqp",), TARGET)
SEEDS = range(7)  # redrawn splits: fewer decide nothing
MEETS = "QQP not judged: the majority-class baseline, which sends nothing, meets it in 7 of 7 seeds"


@pytest.fixture(scope="session")
def runs_of(run_of: RunOf) -> Callable[..., list[RunResult]]:
    """Seven seeds of a row with one curve, which a hundredth of a point tells apart."""

    def build(row: str, curve: tuple[float, ...], seeds: range = SEEDS, **values: object) -> list[RunResult]:
        return [run_of(row, curve=[each + seed / 100 for each in curve], seed=seed, **values) for seed in seeds]

    return build


Runs = Callable[..., list[RunResult]]

# ---- rounds ----------------------------------------------------------------------------------------------------


def test_fewer_rounds_to_the_rivals_best(runs_of: Runs, judge_of: JudgeOf) -> None:
    quick, slow = runs_of("fedsplitbert", (66, 71, 72)), runs_of("fedavg", (50, 65, 60))
    found = judge_of(ROUNDS, quick + slow)  # 65 after round 2, not the last one's 60
    assert (found.ours, "rounds on QQP +1.00 (target 65.03, FedAvg's best round)" in found.effect) == (
        "supported",
        True,
    )
    never = judge_of(replace(ROUNDS, rows=(FEDAVG,), than=(SPLIT,)), quick + slow)
    assert never.ours == "contradicted"  # 3 rounds of the rival less at least 4
    assert "[−∞, −1.00] (not within 3 rounds" in never.ours_numbers


def test_six_seeds_are_too_few_for_rounds(runs_of: Runs, judge_of: JudgeOf) -> None:
    """Two seeds that happen to agree prove nothing of whole numbers."""
    records = runs_of("fedsplitbert", (66, 71, 72)) + runs_of("fedavg", (50, 65, 60))
    for seeds in (2, 6):
        some = [record for record in records if record.cell.seed < seeds]
        found = judge_of(ROUNDS, some)
        assert (found.ours, found.why) == ("undecided", "in whole rounds, of which 7 seeds are needed")


# ---- reaching --------------------------------------------------------------------------------------------------


def test_a_target_is_our_own_below_the_papers_scale(runs_of: Runs, judge_of: JudgeOf) -> None:
    relation = Reaches((SPLIT,), TARGET, within_rounds=2)
    records = runs_of("fedsplitbert", (62, 65, 66)) + runs_of("fedavg", (50, 55, 60))
    found = judge_of(relation, records)
    assert (found.ours, "(round 1; target 60.03, FedAvg's best round)" in found.effect) == ("supported", True)
    curves = {"fedsplitbert": (62, 65, 66), "fedavg": (50, 55, 60)}
    at_paper = [record for row, curve in curves.items() for record in runs_of(row, curve, scale="paper")]
    found = judge_of(relation, at_paper, "paper")
    assert (found.ours, "(not within 3 rounds; target 84)" in found.effect) == ("contradicted", True)


def test_a_limit_in_bytes_scales_with_the_encoder(runs_of: Runs, judge_of: JudgeOf) -> None:
    """1 GB beside a printed round of 1 GB is one round of FedAvg here: two rounds of FedSplitBERT at 400 bytes."""
    numbers = Numbers({("Table VI", "fedavg", "parameter_gb", ""): Decimal(1)})
    relation = Reaches((SPLIT,), TARGET, below_bytes=1e9, sizes=SIZES)
    fedavg = runs_of("fedavg", (50, 55, 60), up=1000)
    late = runs_of("fedsplitbert", (50, 52, 66), up=400)
    assert judge_of(relation, fedavg + late, numbers=numbers).ours == "contradicted"  # 66 comes with round 3
    early = runs_of("fedsplitbert", (50, 66, 52), up=400)
    assert judge_of(relation, fedavg + early, numbers=numbers).ours == "supported"
    big = runs_of("fedsplitbert", (66, 66, 66), up=1000)
    found = judge_of(relation, fedavg + big, numbers=numbers)
    assert (found.ours, found.why) == ("not judged", "QQP not judged: as tuned, one round is above the limit")
    met = judge_of(relation, fedavg + big, numbers=numbers, levels={"local-majority": 60.1})
    assert (met.ours, met.why) == ("not judged", MEETS)
    at_paper = [
        record
        for row, curve in (("fedavg", (50, 55, 60)), ("fedsplitbert", (66, 66, 66)))
        for record in runs_of(row, curve, scale="paper", up=2 * 10**9)
    ]
    found = judge_of(relation, at_paper, "paper", numbers=numbers)
    assert (found.ours, "one round is above the limit" in found.ours_numbers) == ("fails by derivation", True)


# ---- bytes -----------------------------------------------------------------------------------------------------


def test_a_target_never_reached_is_censored(runs_of: Runs, judge_of: JudgeOf) -> None:
    relation = Cheaper((SPLIT,), (FEDPROX,), 2.0, ("qqp",), TARGET)
    fedavg = runs_of("fedavg", (50, 55, 60))
    never = runs_of("fedprox", (50, 50, 50), up=1000)
    quick = runs_of("fedsplitbert", (65, 66, 67), up=500)
    found = judge_of(relation, fedavg + never + quick)
    assert (found.ours, "6.00 × [6.00, ∞] (not within 3 rounds against round 1" in found.ours_numbers) == (
        "supported",
        True,
    )
    assert judge_of(replace(relation, factor=7.0), fedavg + never + quick).ours == "undecided"  # it may be 7
    back = replace(relation, rows=(FEDPROX,), than=(SPLIT,))
    assert judge_of(back, fedavg + never + quick).ours == "contradicted"
    neither = runs_of("fedsplitbert", (50, 50, 50), up=500)
    assert judge_of(relation, fedavg + never + neither).ours == "undecided"


# ---- the majority ----------------------------------------------------------------------------------------------

RELATIONS = (ROUNDS, TWICE, Reaches((SPLIT,), TARGET, within_rounds=1))


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: type(relation).__name__)
@pytest.mark.parametrize("ours", [(65, 66, 67), (50, 51, 52)], ids=["quick", "never"])
def test_no_verdict_where_the_majority_meets_the_target(
    runs_of: Runs, judge_of: JudgeOf, table3: Benchmark, relation: Better | Cheaper | Reaches, ours: tuple[float, ...]
) -> None:
    records = runs_of("fedavg", (50, 55, 60), up=1000) + runs_of("fedsplitbert", ours, up=600)
    expected = "supported" if ours[0] > 60 else "contradicted"
    assert judge_of(relation, records, levels={"local-majority": 55.0}).ours == expected
    met = judge_of(relation, records, levels={"local-majority": 60.1})
    assert (met.ours, met.why) == ("not judged", MEETS)
    unknown = judge_of(relation, records, levels={"local-majority": None})
    assert (unknown.ours, unknown.why) == ("not judged", "QQP not judged: the majority-class baseline was not run")
