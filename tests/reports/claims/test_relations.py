"""Each kind of relation on synthetic records that support it, contradict it, leave it open, or are missing."""

import re
from dataclasses import replace
from decimal import Decimal

import pytest

from benchmarks.claims import (
    P_VALUE,
    At,
    AtMost,
    AverageBetter,
    Better,
    Claim,
    CostBound,
    PublishedColumn,
    Relation,
    Same,
    Sends,
    similar,
)
from benchmarks.costs import ModelSizes, Traffic, WirePlan
from benchmarks.dry_run import shapes
from benchmarks.papers import benchmarks_of, published_of
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig
from reports.claims.judge import Judgement, counted, judge, judge_published, published_word
from reports.claims.tables import summary
from reports.evidence.published import Numbers
from tests.contract.project import committed_records
from tests.reports.claims.conftest import ACC, FEDAVG, FEDPROX, QAT, SPLIT, TABLE

BETTER = Better((SPLIT,), (FEDAVG,), tasks=("qqp",))
HALF = CostBound((SPLIT,), (FEDAVG,), ("qqp",), share=True, most=50.0, places=2, costs=PublishedColumn("Costs", "mb"))
TOLD = similar(SPLIT, FEDAVG, 1.0, tasks=("qqp",), p_values="Text")


# ---- scores ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "ours", "word"),
    [
        (replace(BETTER, rows=(FEDAVG,), than=(SPLIT,)), [62.0, 62.25, 61.75], "contradicted"),
        (BETTER, [62.0, 62.25, 61.75], "supported"),  # 2 ± 2.92 × √(1/3 + 0.2625) × 0.25 = 0.56
        (BETTER, [58.0, 58.25, 57.75], "contradicted"),
        (BETTER, [60.5, 60.75, 60.25], "undecided"),
        (BETTER, [90.0], "undecided"),  # one seed shows no error
        (BETTER, [60.0, 60.0, 60.0], "undecided"),  # a tie
        (replace(BETTER, by=1.4), [62.0, 62.25, 61.75], "supported"),
        (replace(BETTER, by=1.5), [62.0, 62.25, 61.75], "undecided"),
        (replace(BETTER, by=2.6), [62.0, 62.25, 61.75], "contradicted"),
        (replace(BETTER, most=2.6), [62.0, 62.25, 61.75], "supported"),  # "a little"
        (replace(BETTER, most=1.0), [62.0, 62.25, 61.75], "contradicted"),
        (similar(SPLIT, FEDAVG, 2.0, tasks=("qqp",)), [60.5, 60.75, 60.25], "supported"),
        (similar(SPLIT, FEDAVG, 2.0, tasks=("qqp",)), [61.7, 61.95, 61.45], "undecided"),
        (similar(SPLIT, FEDAVG, 2.0, tasks=("qqp",)), [56.5, 56.75, 56.25], "contradicted"),
        (similar(SPLIT, FEDAVG, 2.0, tasks=("qqp",), relative=True), [60.6, 60.7, 60.5], "supported"),  # 1 ± 0.4 %
        (similar(SPLIT, FEDAVG, 1.2, tasks=("qqp",), relative=True), [60.6, 60.7, 60.5], "undecided"),
        (AtMost((SPLIT,), ACC, 62.5, ("qqp",)), [62.0, 62.25, 61.75], "undecided"),
        (AtMost((SPLIT,), ACC, 62.6, ("qqp",)), [62.0, 62.25, 61.75], "supported"),
        (AtMost((SPLIT,), ACC, 61.4, ("qqp",)), [62.0, 62.25, 61.75], "contradicted"),
    ],
)
def test_a_relation_of_scores_needs_the_whole_interval(seeds_of, judge_of, relation, ours, word):
    records = seeds_of("fedsplitbert", "qqp", ours) + seeds_of("fedavg", "qqp", [60.0] * 3)
    assert judge_of(relation, records).word == word


def test_a_relation_may_be_of_the_worst_client():
    """On MRPC, FedSplitBERT lifts FedAvg's worst client by 24 points [14, 34], by the committed records."""
    split, fedavg = (At("fedsplitbert-clients", row) for row in ("fedsplitbert", "fedavg"))
    claim = Claim("w", "", "", (Better((split,), (fedavg,), tasks=("mrpc",), scores=("test/accuracy@worst",)),))
    tables = benchmarks_of("fedsplitbert")
    scale, published = tables["fedsplitbert-clients"].scale("lite"), published_of(tables.values())
    (judged,) = judge("FedSplitBERT", [claim], published, committed_records().values(), tables, scale)
    ((compared, _),) = judged.measured.comparisons
    assert [round(number) for number in (compared.evidence.value, *compared.evidence.interval)] == [24, 14, 34]


def test_differences_are_paired_by_seed(seeds_of, judge_of):
    """Seeds move both methods by 20 points; the difference is about 2 in each."""
    ours, theirs = seeds_of("fedsplitbert", "qqp", [42.0, 62.5, 52.0]), seeds_of("fedavg", "qqp", [40.0, 60.0, 50.0])
    assert judge_of(BETTER, ours + theirs).verdict == "supported; run at reduced scale (n = 3)"
    assert judge_of(BETTER, [*ours[:1], *theirs[1:]]).verdict == "undecided: not run"  # no seed in common


def test_scores_are_those_of_the_round_that_is_best_on_validation(run_of, judge_of):
    def run(row: str, curve: tuple[float, ...], validation: tuple[float, ...], seed: int) -> RunResult:
        record = run_of(row, curve=curve, seed=seed)
        rounds = tuple(
            replace(entry, scores={**entry.scores, "validation": {"accuracy": value}})
            for entry, value in zip(record.rounds, validation, strict=True)
        )
        return replace(record, rounds=rounds, chosen_by="validation/accuracy")

    records = [run("fedsplitbert", (70, 60), (0.9, 0.8), seed) for seed in (0, 1)]
    records += [run("fedavg", (50, 65), (0.7, 0.8), seed) for seed in (0, 1)]
    judgement = judge_of(BETTER, records)
    assert (judgement.word, "QQP Acc +5.00" in judgement.effect) == ("supported", True)  # 70 − 65, not 60 − 65
    assert "scored at the last round: contradicted (" in judgement.elsewhere
    assert summary([judgement]).endswith("at the last round, another verdict: 1.")


def test_several_tasks_are_counted(seeds_of, judge_of):
    relation, rival = replace(BETTER, tasks=("qqp", "qnli")), [60.0, 60.0]
    above = seeds_of("fedsplitbert", "qqp", [62.0, 62.0]) + seeds_of("fedavg", "qqp", rival)
    judgement = judge_of(relation, above)
    assert (judgement.verdict, judgement.counts) == ("undecided: not all of it run", "1 of 2 tasks for, 0 against")
    assert judgement.remarks == "not run (1 of 2 comparisons)"
    below = seeds_of("fedsplitbert", "qnli", [50.0, 50.0]) + seeds_of("fedavg", "qnli", rival)
    both = judge_of(relation, above + below)
    assert both.result == "partly supported (1 of 2 tasks for, 1 against)"
    assert (both.evidence, both.counts, both.over_tasks) == ("run at reduced scale (n = 2)", "", "")
    some = replace(relation, some=True)
    assert judge_of(some, below).word == "undecided"  # the other task may still be one
    assert judge_of(some, above + below).word == "supported"


def test_one_of_several_tasks_is_enough_only_after_holms_correction(seeds_of, judge_of):
    """FedSplitBERT is better by 1 on one task, p = 0.04; of two tasks, one of which shows nothing, that is not rare."""
    records, some = [], replace(BETTER, some=True)
    for task, ours in (("qqp", [61.4, 61.0, 60.6]), ("qnli", [60.4, 60.0, 59.6])):
        records += seeds_of("fedsplitbert", task, ours) + seeds_of("fedavg", task, [60.0] * 3)
    alone, both = (judge_of(replace(some, tasks=tasks), records) for tasks in (("qqp",), ("qqp", "qnli")))
    assert (alone.word, both.word) == ("supported", "undecided")
    assert "0 of 2 comparisons hold; strongest: FedSplitBERT − FedAvg, QQP Acc +1.00" in both.numbers[0]
    assert "supported without Holm's correction, not with it (1 of 2 comparisons)" in both.remarks


def test_a_claim_about_tasks_shows_their_mean_and_what_another_task_may_show(seeds_of, judge_of):
    """Effects of 1, 3 and 5 points, each ± 0.1: the mean is known far better than another task's effect."""
    records, tasks = [], ("qqp", "qnli", "sst2")
    for task, effect in zip(tasks, (1.0, 3.0, 5.0), strict=True):
        records += seeds_of("fedsplitbert", task, [60 + effect, 60.1 + effect, 59.9 + effect])
        records += seeds_of("fedavg", task, [60.0] * 3) + seeds_of("fedprox", task, [50.0] * 3)
    relation = replace(BETTER, tasks=tasks, than=(FEDAVG, FEDPROX), scores=(ACC,))
    judgement = judge_of(relation, records)
    assert (judgement.word, judgement.counts) == ("supported", "3 of 3 tasks for, 0 against")
    label, mean, low, high, *_ = re.findall(r"mean of 3 tasks|[+−][\d.]+", judgement.over_tasks.replace(",", ""))
    assert (label, mean) == ("mean of 3 tasks", "+3.00")  # FedAvg's, the nearest rival's
    assert 2.7 < float(low) < 3 < float(high) < 3.3
    # Between tasks sd 2; t with one degree of freedom is 6.31.
    assert re.search(r"another task \[−11\.5\d, \+17\.5\d\] \(FedSplitBERT − FedAvg\)", judgement.over_tasks)
    above_most = judge_of(replace(relation, by=2.0), records)  # on one task against FedAvg, on none against FedProx
    assert above_most.result == "partly supported (2 of 3 tasks for, 1 against)"


def test_each_claim_says_what_its_seeds_would_see(seeds_of, judge_of):
    """A difference's distance from the bound, a similarity's margin; nothing for one seed or for bytes."""
    records = seeds_of("fedsplitbert", "qqp", [60.5, 60.75, 60.25]) + seeds_of("fedavg", "qqp", [60.0] * 3)
    above, alike = (judge_of(each, records) for each in (BETTER, similar(SPLIT, FEDAVG, 2.0, tasks=("qqp",))))
    error = 0.25 * (1 / 3 + 0.2625) ** 0.5
    assert float(above.smallest) == pytest.approx((2.92 + 1.061) * error, abs=0.01)  # t(2) at 5 % and at 20 %
    assert float(alike.smallest.removeprefix("± ")) == pytest.approx((2.92 + 1.886) * error, abs=0.01)  # 5 %, 10 %
    alone = judge_of(BETTER, [records[0], records[3]])
    assert (alone.smallest, alone.evidence) == ("", "run at reduced scale (n = 1)")
    assert judge_of(BETTER, []).evidence == "no run yet"


def test_a_verdict_depends_on_the_interpretation_unless_all_agree(seeds_of, judge_of):
    records = seeds_of("fedsplitbert", "qqp", [62.0, 62.25, 61.75]) + seeds_of("fedavg", "qqp", [60.0] * 3)
    verdicts = {
        by: judge_of(BETTER, records, otherwise={"much": (replace(BETTER, by=by),)}).word for by in (1.0, 2.0, 5.0)
    }
    assert verdicts == {1.0: "supported", 2.0: "depends on the interpretation", 5.0: "depends on the interpretation"}
    judgement = judge_of(BETTER, records, otherwise={"much": (replace(BETTER, by=5.0),)})
    assert judgement.elsewhere == "our interpretation: supported; interpreted as “much”: contradicted"
    others = counted([judgement])
    assert others == {"depends on the interpretation": 1}


def test_runs_of_two_tables_count_once(seeds_of, table3, opened):
    records = seeds_of("fedsplitbert", "qqp", [62.0, 62.25, 61.75]) + seeds_of("fedavg", "qqp", [60.0] * 3)
    table, records = opened(table3, records)
    other = replace(table, id="fedsplitbert-again", place="Table 0")
    again = Better((At(other.id, SPLIT.row),), (At(other.id, FEDAVG.row),), tasks=("qqp",))
    claim, both = Claim("1", "A sentence", "section I", (BETTER, again)), {table.id: table, other.id: other}
    (outcome,) = judge("FedSplitBERT", (claim,), {}, records, both, table.scale("lite"))
    assert (outcome.word, len(outcome.measured.comparisons), len(outcome.published.comparisons)) == ("supported", 1, 2)


def test_a_row_with_a_codec_adds_no_comparison(seeds_of, judge_of, one_task):
    """Half precision on the wire is the same method: Holm's correction and the mean count it once."""
    records = seeds_of("fedsplitbert", "qqp", [62.0, 62.25, 61.75]) + seeds_of("fedsplitbert-qat", "qqp", [40.0] * 3)
    records += seeds_of("fedavg", "qqp", [60.0] * 3)
    for relation in (replace(BETTER, rows=(SPLIT, QAT)), AverageBetter((SPLIT, QAT), (FEDAVG,), by=1.0)):
        judgement = judge_of(relation, records, table=one_task)
        assert (judgement.word, len(judgement.measured.comparisons)) == ("supported", 1)
    with_itself = judge_of(replace(BETTER, rows=(QAT,), than=(FEDAVG, SPLIT)), records, table=one_task)
    assert (with_itself.word, len(with_itself.measured.comparisons)) == ("contradicted", 2)


def test_two_rows_that_are_one_run_do_not_differ(seeds_of, judge_of, table3):
    twin = replace(table3.row("fedsplitbert"), id="twin", name="Twin")
    table, records = replace(table3, rows=(*table3.rows, twin)), seeds_of("fedsplitbert", "qqp", [62.0, 62.25])
    relation = replace(BETTER, than=(At(TABLE, "twin"),))
    assert judge_of(relation, records, table=table).verdict == "no difference; arithmetic"
    assert judge_of(similar(SPLIT, At(TABLE, "twin"), 1.0, ("qqp",)), records, table=table).word == "supported"


def test_gains_over_before_training_are_compared(run_of, judge_of):
    """From 50 to 60 are 20 %, from 40 to 50 are 25 %, though 60 is more than 50."""
    levels = {"fedsplitbert": 60.0, "fedavg": 50.0, "fedsplitbert-qat": 50.0, "fedprox": 40.0}
    records = [
        run_of(row, curve=(0.0, level + seed / 50), seed=seed) for row, level in levels.items() for seed in range(3)
    ]
    relation = replace(BETTER, relative=True, since=(QAT, FEDPROX))
    judgement = judge_of(relation, records)
    assert (judgement.word, " −5.0" in judgement.effect) == ("contradicted", True)
    assert judge_of(BETTER, records).word == "supported"
    in_points = judge_of(replace(BETTER, by=-0.1, most=0.1, since=(QAT, FEDPROX), over_failed=True), records)
    assert "0.00" in in_points.effect  # 60 − 50 and 50 − 40


def test_published_gains_are_compared_like_measured_ones(judge_of, table3):
    """QQP in Table III: 90.54 − 88.61 is less than 90.49 − 88.12, though it is more than 0."""
    numbers = published_of([table3])[table3.paper.id]
    assert published_word(judge_of(BETTER, [], numbers=numbers).published) == "consistent"
    judgement = judge_of(replace(BETTER, since=(QAT, FEDPROX)), [], numbers=numbers)
    assert published_word(judgement.published) == "inconsistent"
    assert judgement.published.shown[0].evidence.value == pytest.approx(-0.44)


def test_rows_of_one_table_share_their_seeds(seeds_of, judge_of, one_task):
    """Each seed's gain of one row is the other's loss: their mean is stable, though neither row is."""
    records = seeds_of("fedsplitbert", "qqp", [60.0, 70.1]) + seeds_of("fedprox", "qqp", [70.0, 60.0])
    records += seeds_of("fedavg", "qqp", [60.0, 60.0])
    assert judge_of(AverageBetter((SPLIT, FEDPROX), (FEDAVG,), by=3.5), records, table=one_task).word == "supported"
    assert judge_of(AverageBetter((SPLIT,), (FEDAVG,), by=3.5), records, table=one_task).word == "undecided"


# ---- bytes and times -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "word"),
    [
        (CostBound((QAT,), (FEDAVG,), ("qqp",), least=4.0), "contradicted"),  # 1030 / 260 = 3.96
        (CostBound((QAT,), (FEDAVG,), ("qqp",), least=4.0, places=0), "supported"),
        (CostBound((QAT,), (FEDAVG,), ("qqp",), least=1.0, most=2.0), "contradicted"),
        (CostBound((QAT,), (FEDAVG,), ("qqp",), least=7.9, of="run"), "supported"),  # 2 rounds against 1
        (CostBound((QAT,), (FEDAVG,), ("qqp",), share=True, most=25.24, places=2), "supported"),  # 25.2427 %
        (CostBound((QAT,), (FEDAVG,), ("qqp",), share=True, most=25.23, places=2), "contradicted"),
    ],
)
def test_bytes_are_arithmetic(run_of, judge_of, relation, word):
    records = [run_of("fedavg", up=1030), run_of("fedsplitbert-qat", curve=(60.0,), up=260)]
    assert judge_of(relation, records).verdict == f"{word}; arithmetic"
    assert judge_of(relation, records[:1]).verdict == "undecided: not run"


def test_the_papers_own_encoder_goes_before_ours(run_of, table3, monkeypatch):
    """Our small encoder sends 3 times less, the paper's 8 times: 8000 against 1000 bytes a round."""

    def plan_of(cell: RunConfig, texts: int | None = None) -> WirePlan:
        size = 8000 if cell.algorithm == "fedavg" else 1000 * (texts or 1)
        sent = Traffic({("up", "parameters"): size})
        return WirePlan((sent,), 0, ModelSizes(0, 0, 0, 0, 768, 1, all_tokens=False))

    monkeypatch.setattr(shapes, "plan_of", plan_of)

    def judged(relation: Relation, records: list[RunResult], scale: str) -> Judgement:
        claim = Claim("1", "A sentence", "section I", (relation,))
        return judge("", (claim,), {}, records, {table3.id: table3}, table3.scale(scale))[0]

    cheaper, sends = CostBound((SPLIT,), (FEDAVG,), ("qqp",), least=8.0), Sends((SPLIT,), ("qqp",), 2, 2000)
    ours = [run_of("fedavg", up=3000), run_of("fedsplitbert", up=1000)]
    judgement = judged(cheaper, ours, "lite")
    assert judgement.verdict == "supported; arithmetic"
    source = "computed from bert-base-uncased's tensor shapes"
    assert judgement.effect.endswith(f"8.00 × ({source}; 3.00 × measured in our runs with a small encoder)")
    assert judged(cheaper, [], "lite").effect.endswith("not measured)")
    assert judged(replace(cheaper, texts=2), ours, "lite").verdict == "contradicted; arithmetic"  # twice the bytes
    assert judged(sends, [], "lite").word == "supported"
    at_paper = [run_of("fedavg", up=2000, scale="paper"), run_of("fedsplitbert", up=1000, scale="paper")]
    assert judged(cheaper, at_paper, "paper").effect.endswith(" 2.00 ×")  # measured


def test_seconds_are_shown_and_decide_nothing(run_of, judge_of):
    seconds = {"fedsplitbert": 10.0, "fedavg": 100.0}
    timed = [replace(run_of(row), timing={"train_seconds": time}) for row, time in seconds.items()]
    judgement = judge_of(replace(HALF, of="seconds"), timed)
    assert judgement.verdict == "not testable here: times are not comparable"
    assert "training time per round, FedSplitBERT ÷ FedAvg, QQP 10.00 %" in judgement.numbers[0]


def test_same_is_exact_on_one_machine(run_of, judge_of):
    relation, first = Same((SPLIT, FEDAVG), tasks=("qqp", "qnli")), run_of("fedsplitbert")  # one task is enough
    others = {
        "supported": run_of("fedavg"),
        "contradicted": run_of("fedavg", curve=(50.25, 60.0)),
        "undecided": run_of("fedavg", curve=(50.25, 60.0), device="cuda"),
    }
    for word, other in others.items():
        assert judge_of(relation, [first, other]).word == word
    loss = judge_of(relation, [first, run_of("fedavg", losses=(0.5, 0.6))])
    assert (loss.word, "equal scores, but other losses or bytes" in loss.effect) == ("contradicted", True)


@pytest.mark.parametrize(
    ("relation", "values", "word"),
    [
        (HALF, {("Costs", "fedsplitbert", "mb", ""): "50.004", ("Costs", "fedavg", "mb", ""): "100"}, "consistent"),
        (HALF, {("Costs", "fedsplitbert", "mb", ""): "50.006", ("Costs", "fedavg", "mb", ""): "100"}, "inconsistent"),
        (TOLD, {("Text", "fedsplitbert", "qqp", P_VALUE): "0.06"}, "consistent"),
        (TOLD, {("Text", "fedsplitbert", "qqp", P_VALUE): "0.05"}, "inconsistent"),
        (HALF, {}, "not published for these rows"),
        (TOLD, {}, "not published for these rows"),
    ],
)
def test_published_costs_and_p_values(table3, relation, values, word):
    numbers = Numbers({place: Decimal(value) for place, value in values.items()})
    claim = Claim("1", "A sentence", "section I", (relation,))
    assert published_word(judge_published(claim, {"fedsplitbert": numbers}, {table3.id: table3})) == word


def test_nothing_is_judged_on_generated_data(table3):
    claim = Claim("1", "A sentence", "section I", (BETTER,))
    assert judge("FedSplitBERT", (claim,), {}, [], {table3.id: table3}, table3.scale("demo")) == ()
