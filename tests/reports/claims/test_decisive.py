"""The protocol's comparisons: which runs count, how they are scored, and when they are evaluated."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.campaign.protocol import campaign, decisive_of, study_of
from benchmarks.claims import AverageBetter, Better, rows_named
from benchmarks.experiment import Benchmark
from benchmarks.registry import benchmark_ids, claims_of
from benchmarks.results import RunResult
from reports.claims.cells import Runs
from reports.claims.deciding import Deciding
from reports.claims.hypothesis import State
from reports.claims.measured import MeasuredNumbers
from reports.claims.wording import numbers, short_reason
from reports.evidence.paired import rule_for
from reports.evidence.scores import PROTOCOL
from tests.reports.claims.conftest import FEDAVG, FEDPROX, QAT, SPLIT, RunOf

DOCUMENT = Path(__file__).parents[3] / "docs" / "protocol.md"
LONG = (40.0, 40.0, 40.0)  # before the last three rounds


@pytest.fixture
def deciding(
    table3: Benchmark, opened: Callable[..., tuple[Benchmark, list[RunResult]]]
) -> Callable[[Sequence[RunResult], str], Deciding]:
    """One comparison of two rows on QQP, on seeds 5 to 7."""

    def build(records: Sequence[RunResult], missing: str = "") -> Deciding:
        table, every = opened(table3, records)
        runs = Runs.of_all({table.id: table}, table.scale("lite"), every)
        runs = Runs(runs.tables, runs.scale, runs.records, PROTOCOL, {"qqp": range(5, 8)})
        return Deciding((Better((SPLIT,), (FEDAVG,), tasks=("qqp",)),), runs, missing)

    return build


def curves(run_of: RunOf, row: str, lasts: Sequence[tuple[float, ...]], first_seed: int = 5) -> list[RunResult]:
    return [run_of(row, curve=last, seed=seed) for seed, last in enumerate(lasts, first_seed)]


def test_the_mean_of_the_last_three_rounds_counts(run_of, deciding):
    """By the last round FedAvg would be better; by the mean FedSplitBERT is, by 3, 4 and 3.5 points."""
    split = curves(run_of, "fedsplitbert", [(*LONG, 69, 69, 60), (*LONG, 70, 71, 60), (*LONG, 70, 69.5, 60)])
    fedavg = curves(run_of, "fedavg", [(*LONG, 63.0, 63.0, 63.0)] * 3)
    verdict = deciding([*split, *fedavg]).verdict
    assert verdict.state is State.YES
    assert verdict.shown[0].evidence.value == pytest.approx(3.5)
    assert verdict.shown[0].evidence.n == 3
    last = deciding([*split, *fedavg]).at_rounds["last"]
    assert (last.state, last.shown[0].evidence.value) == (State.NO, pytest.approx(-3.0))
    assert deciding([*split, *fedavg], "21 of 36").at_rounds == {}


def test_one_rule_for_both_sides(run_of, deciding):
    """One side has five rounds, so both are scored at the last."""
    split = curves(run_of, "fedsplitbert", [(*LONG, 69.0, 69.0, 60.0), (*LONG, 70.0, 71.0, 61.0)])
    fedavg = curves(run_of, "fedavg", [(40.0, 40.0, 63.0, 63.0, 63.0)] * 2)
    assert rule_for(PROTOCOL, list(zip(split, fedavg, strict=True))) == "last"
    assert deciding([*split, *fedavg]).verdict.shown[0].evidence.value == pytest.approx(-2.5)


def test_other_seeds_do_not_count(run_of, deciding):
    """The rule was chosen after a look at seeds 0 to 4."""
    split, fedavg = (curves(run_of, row, [(50.0, last)] * 5, 0) for row, last in (("fedsplitbert", 90), ("fedavg", 60)))
    assert deciding([*split, *fedavg]).verdict.state is State.MISSING


def test_no_number_is_looked_at_before_all_runs_are_finished(run_of, deciding):
    lasts = [(50.0, 80.0), (50.0, 81.0), (50.0, 80.5)]
    runs = [*curves(run_of, "fedsplitbert", lasts), *curves(run_of, "fedavg", [(50.0, 60.0)] * 3)]
    assert deciding(runs).verdict.state is State.YES
    verdict = deciding(runs, "21 of 36").verdict
    assert verdict.state is State.MISSING
    assert short_reason(verdict) == "not run yet, 21 of 36"
    assert numbers(verdict) == "no numbers"


def test_another_reading_is_judged_on_the_same_runs_if_they_exist(run_of, deciding):
    split = curves(run_of, "fedsplitbert", [(*LONG, 69, 69, 60), (*LONG, 70, 71, 60), (*LONG, 70, 69.5, 60)])
    fedavg = curves(run_of, "fedavg", [(*LONG, 63.0, 63.0, 63.0)] * 3)
    earlier = curves(run_of, "fedprox", [(*LONG, 10.0, 10.0, 10.0)] * 3, first_seed=0)
    more, other = (Better((SPLIT,), (FEDAVG,), 9.0),), (Better((SPLIT,), (FEDPROX,)),)
    decided = deciding([*split, *fedavg, *earlier])
    every = MeasuredNumbers(replace(decided.runs, seeds={}), {})
    assert decided.reading(more, every).state is State.NO
    assert decided.reading(other, every).state is State.MISSING  # the other row has only earlier runs
    assert [decided.is_earlier(record) for record in (split[0], earlier[0])] == [False, True]
    assert deciding([*split, *fedavg], "21 of 36").reading(more, every).state is State.MISSING


def test_another_reading_is_judged_on_the_rows_that_steps_run_in_place_of_the_tables(run_of, deciding):
    """On the tasks and the score that decide, too: a table's average may be of another score, over more tasks."""
    split = curves(run_of, "fedsplitbert", [(*LONG, 69, 69, 60), (*LONG, 70, 71, 60), (*LONG, 70, 69.5, 60)])
    fedavg = curves(run_of, "fedavg", [(*LONG, 63.0, 63.0, 63.0)] * 3)
    decided = replace(deciding([*split, *fedavg]), instead={QAT: SPLIT})
    every = MeasuredNumbers(replace(decided.runs, seeds={}), {})
    for relation in (Better((QAT,), (FEDAVG,), by=1.0), AverageBetter((QAT,), (FEDAVG,), by=1.0)):
        verdict = decided.reading([relation], every)
        ((compared, state),) = verdict.comparisons
        assert (compared.tasks, state, compared.evidence.value) == (("qqp",), State.YES, pytest.approx(3.5))


def test_every_row_of_another_reading_has_one_in_the_campaign():
    """Of FedSplitBERT, whose steps run another table's rows; claim 5's steps run the paper's tables."""
    fixed = {claim: each for each in decisive_of("fedsplitbert") for claim in each.claims if each.instead}
    for claim in (claim for claim in claims_of("fedsplitbert") if claim.id in fixed):
        named = {at for relations in claim.otherwise.values() for one in relations for at in rows_named(one)}
        assert named <= fixed[claim.id].instead.keys(), claim.id


@pytest.mark.parametrize("paper", ["FedSplitBERT", "FedFreezeBERT", "FedPEFT"])
def test_the_comparisons_are_those_of_the_document(paper):
    """Claims and the study, with their tasks and steps, line by line."""
    names = {"CoLA": "cola", "MRPC": "mrpc", "SST-2": "sst2", "QQP": "qqp", "QNLI": "qnli", "STS-B": "stsb"}
    names |= {"ArSarcasm-v2": "arsarcasm"}
    document = DOCUMENT.read_text(encoding="utf-8")
    text = document.partition("## Decisive comparisons")[2].partition("\n## ")[0]
    table = text.partition(f"\n{paper} ")[2].partition("\nFed")[0]
    table = table or document.partition("## Federated parameter-efficient")[2].partition("\n**The parts")[0]
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines() if "| step" in line]
    documented: dict[str, tuple[set[str], set[int]]] = {}
    for claims, *middle, steps in lines:
        for claim in re.findall(r"\b(?:\d+[a-z]?|study)\b", claims):
            listed = {id for name, id in names.items() if any(name in cell for cell in middle[:-1])}
            if "100 clients" in middle[-1]:  # FedPETuning's, scored on central sets
                listed = {{"sst2": "sst2-whole-central", "mrpc": "mrpc-central"}[task] for task in listed}
            documented[claim] = (listed or documented["1a"][0]), set(map(int, re.findall(r"\d+", steps)))
    study = study_of(paper.lower())
    every = (*decisive_of(paper.lower()), *([study.primary] if study else []))
    stated = {claim: (set(each.seeds), set(each.steps)) for each in every for claim in each.claims}
    assert documented
    assert stated == documented


@pytest.mark.parametrize("paper", ["fedfreezebert", "fedpeft", "fedsplitbert"])
def test_every_run_that_is_compared_is_a_run_of_a_step(paper):
    """With the settings of the committed sweeps; otherwise a comparison would stay open for ever."""
    evidence_campaign = campaign()
    for decisive in decisive_of(paper):
        cells = {run.spec_id for number in decisive.steps for run in evidence_campaign.steps[number]}
        for relation in evidence_campaign.resolved(decisive):
            assert isinstance(relation, Better | AverageBetter)
            for at in rows_named(relation):
                table = evidence_campaign.table(at.benchmark)
                columns = [column for column in table.columns if column.task in relation.tasks]
                for column in columns:
                    wanted = decisive.seeds[column.task]
                    runs = [table.cell(table.row(at.row), column, table.scale("lite"), seed) for seed in wanted]
                    assert {run.spec_id for run in runs} <= cells, (decisive.claims, at.row, column.task)


def test_no_list_of_benchmarks_has_the_campaigns_tables():
    """Judging a claim does not change a page that is rendered afterwards."""
    before = benchmark_ids()
    assert "fedsplitbert-evidence" in campaign.__wrapped__().benchmarks
    assert benchmark_ids() == before
    assert "fedsplitbert-evidence" not in before
