"""No verdict on scores of a column that fails its validity check; other numbers are judged regardless."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

from benchmarks.claims import AverageBetter, Better, CostBound, Reaches, Relation, Target, similar
from benchmarks.experiment import Column, Row, Scale
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig
from benchmarks.sweeps.tuning import Search
from reports.claims.judge import Judgement
from tests.reports.claims.conftest import FEDAVG, QAT, SPLIT

TARGET = Target({"qqp": 84.0}, (FEDAVG,))
DECIDED = ("supported", "contradicted")
THREE = ("qqp", "qnli", "rte")
WEAK = (
    "QQP not testable: shown not to learn (the encoder is too weak here): centralised training 90.0, a linear model "
    "95.0 (−5.0 [−5.0, −5.0]), n = 8"
)
ORDERINGS: tuple[Relation, ...] = (
    Better((SPLIT,), (FEDAVG,), tasks=("qqp",)),
    Better((SPLIT,), (FEDAVG,), tasks=("qqp",), measure="loss"),
    Better((SPLIT,), (FEDAVG,), tasks=("qqp",), measure="rounds"),
    Better((SPLIT,), (FEDAVG,), tasks=("qqp",), some=True),
    AverageBetter((SPLIT,), (FEDAVG,), by=1.0),
    similar(SPLIT, FEDAVG, within=1.0, tasks=("qqp",)),
    similar(QAT, SPLIT, within=1.0, tasks=("qqp",)),
    Reaches((SPLIT,), TARGET),
    CostBound((SPLIT,), (FEDAVG,), ("qqp",), least=2.0, target=TARGET),
)


@pytest.fixture(scope="module")
def records(runs_of: Callable[..., list[RunResult]]) -> list[RunResult]:
    """Seven clear seeds of three rows: FedSplitBERT is above FedAvg, faster, and has a lower loss."""
    split = runs_of("fedsplitbert", (65, 70), losses=(0.9, 0.2))
    qat = runs_of("fedsplitbert-qat", (65, 70.1), losses=(0.9, 0.2))
    return [*split, *qat, *runs_of("fedavg", (50, 60), losses=(0.9, 0.5))]


@pytest.mark.parametrize("relation", ORDERINGS, ids=lambda relation: type(relation).__name__)
def test_every_ordering_asks_the_gate(judge_of, one_task, records, relation):
    assert judge_of(relation, records, table=one_task).word in DECIDED
    shut = judge_of(relation, records, table=one_task, levels={"linear": 95.0})
    assert (shut.verdict, shut.numbers[1:]) == ("not testable here: shown not to learn", [WEAK])
    assert shut.effect  # the number is shown
    unknown = judge_of(relation, records, table=one_task, levels={"central": None})
    assert unknown.verdict == "undecided: not run"


def test_leaking_columns_count_once_their_split_is_by_group(judge_of, one_task, records):
    (column,) = one_task.columns
    leaking = replace(one_task, columns=(replace(column, leak="share sentences with training"),))
    assert judge_of(ORDERINGS[0], records, table=leaking).verdict == "not testable here: test data leak"

    def base(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
        return replace(one_task.base(row, column, scale, seed), grouped=True)

    together = [replace(record, cell=replace(record.cell, grouped=True)) for record in records]
    assert judge_of(ORDERINGS[0], together, table=replace(leaking, base=base)).word == "supported"


@pytest.mark.parametrize(("level", "some", "word"), [(70.0, False, "supported"), (50.0, True, "contradicted")])
def test_what_cannot_be_judged_is_left_out_and_named(seeds_of, judge_of, level, some, word):
    """Only if most columns remain: a claim about all columns is not about a few."""
    relation = Better((SPLIT,), (FEDAVG,), tasks=THREE, scores=("test/accuracy",), some=some)
    records = []
    for (row, score), task in product((("fedsplitbert", level), ("fedavg", 60.0)), THREE):
        records += seeds_of(row, task, [score + seed / 50 for seed in range(7)])
    judgement = judge_of(relation, records, shut=THREE[:1])
    assert judgement.verdict == f"{word} without QQP; run at reduced scale (n = 7)"
    assert judgement.remarks.startswith("QQP left out: shown not to learn (the encoder is too weak here)")
    few = judge_of(relation, records, shut=THREE[:2])
    assert few.word == "undecided"
    assert few.remarks.startswith("QQP, QNLI not testable: shown not to learn (the encoder is too weak here)")


@pytest.mark.parametrize("relation", [*ORDERINGS[:5], *ORDERINGS[7:]], ids=lambda relation: type(relation).__name__)
def test_to_beat_what_has_learned_nothing_proves_nothing(judge_of, one_task, records, relation):
    """FedAvg's pooled answers are as good as the majority's, whatever its clients' mean says."""

    def pooled(record: RunResult, level: float) -> RunResult:
        scores = {"test": {"accuracy": level / 100}}
        return replace(record, rounds=tuple(replace(one, pooled_scores=scores) for one in record.rounds))

    levels = {"fedavg": 50.0, "fedsplitbert": 70.0, "fedsplitbert-qat": 70.0}
    told = [pooled(one, levels[one.cell.algorithm] + one.cell.seed % 3 / 10 - 0.1) for one in records]
    judgement = judge_of(relation, told, table=one_task)
    assert (judgement.verdict, judgement.effect != "") == ("not testable here: baseline failed", True)
    assert judgement.numbers[-1].endswith("here: 50.0, the global majority class 50.0, n = 7")
    if isinstance(relation, Better | AverageBetter) and relation != ORDERINGS[2]:  # FedAvg's target is no target
        assert judge_of(replace(relation, over_failed=True), told, table=one_task).word in DECIDED
    working = [pooled(one, 60.0 + one.cell.seed / 10) for one in records]
    assert judge_of(relation, working, table=one_task).word in DECIDED


@pytest.mark.parametrize("relation", ORDERINGS, ids=lambda relation: type(relation).__name__)
def test_what_is_compared_has_to_be_tuned(judge_of, one_task, records, relation, tmp_path):
    """FedAvg is not tuned yet: only comparisons with FedAvg's runs wait."""
    search = Search({"fedavg": {"training.learning_rate": (1e-4,)}}, chosen=tmp_path / "none.json")
    lite = replace(one_task.scale("lite"), search=search)
    asked = replace(one_task, scales=tuple(lite if scale.id == "lite" else scale for scale in one_task.scales))
    judgement = judge_of(relation, records, table=asked)
    if relation == similar(QAT, SPLIT, within=1.0, tasks=("qqp",)):
        assert judgement.word == "supported"
    else:
        assert (judgement.verdict, judgement.effect != "") == ("undecided: not tuned yet", True)


@pytest.mark.parametrize(
    "relation",
    [
        similar(QAT, SPLIT, within=2.0, tasks=("qqp",)),
        similar(QAT, SPLIT, within=3.0, tasks=("qqp",), relative=True),
        Better((QAT,), (SPLIT,), by=-2.0, tasks=("qqp",)),
    ],
    ids=["similar", "in percent", "not much below"],
)
def test_to_be_near_what_does_nothing_proves_nothing(judge_of, one_task, records, relation):
    """If the compared row leads the majority by at most the margin, the majority is equally close."""

    def judged(majority: float | None) -> Judgement:
        return judge_of(relation, records, table=one_task, levels={"overall-majority": majority})

    assert judged(60.0).word == "supported"
    near = judged(69.0)  # of 70
    assert near.verdict == "undecided: reference not shown to have learned"
    assert "FedSplitBERT − Overall majority, QQP Acc +1." in near.remarks
    assert judged(None).verdict == "undecided: not run"  # it is one of the gate's rows
