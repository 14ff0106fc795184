"""A study's blocks: the worst client by hand, nothing before all runs are finished, and the label-prior study."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import pytest

from benchmarks.campaign import studies
from benchmarks.campaign.protocol import campaign, study_of
from benchmarks.campaign.study_text import Evidence, study_blocks
from benchmarks.claims import Control
from benchmarks.results import RunResult
from reports.claims.cells import Runs, Tables
from reports.evidence.inference import estimate
from reports.evidence.scores import PROTOCOL
from reports.evidence.statistics import Component, Estimate

ROOT = Path(__file__).parents[2]
STUDY = study_of("fedsplitbert")


@dataclass(frozen=True)
class Listed(Evidence):
    """Evidence of these records, by row."""

    by_row: dict[str, Sequence[RunResult]] = field(default_factory=dict)

    def records(self, row: str, task: str) -> tuple[RunResult, ...]:
        return tuple(self.by_row[row])


def by_client(record: RunResult, *accuracies: Sequence[float]) -> RunResult:
    """A record with these accuracies of two clients, a pair a round."""
    scores = [tuple({"test": {"accuracy": value / 100}} for value in pair) for pair in accuracies]
    rounds = tuple(
        replace(record.rounds[0], round=number, client_scores=each) for number, each in enumerate(scores, start=1)
    )
    return replace(record, rounds=rounds, clients=record.clients[:2])


@pytest.fixture
def evidence(table3, record_of) -> Listed:
    """Client 1 is FedAvg's worst with seed 0, client 0 with seed 1."""
    plain = [record_of("fedavg", "qqp", {"test/accuracy": 0.5}, seed=seed) for seed in (0, 1)]
    other = [record_of("fedprox", "qqp", {"test/accuracy": 0.5}, seed=seed) for seed in (0, 1)]
    runs = Runs(Tables({table3.id: table3}), table3.scale("lite"), (), "last")
    rows = {
        "fedavg": [by_client(plain[0], (90, 50)), by_client(plain[1], (40, 70))],
        "fedprox": [by_client(other[0], (10, 53)), by_client(other[1], (45, 10))],
    }
    return Listed("", runs, table3.id, ("qqp",), {}, "", rows)


def test_the_worst_client_is_the_references_in_each_seed(evidence):
    """By hand: 53 − 50 with seed 0 and 45 − 40 with seed 1, whatever the other client scores."""
    effect = evidence.worst_difference("fedavg", ("fedprox", "fedavg"), "qqp")
    assert effect is not None
    assert (effect.value, effect.n) == (pytest.approx(4.0), 2)
    assert evidence.worst_level("fedavg", "fedavg", "qqp") == pytest.approx(45)
    assert evidence.worst_level("fedavg", "fedprox", "qqp") == pytest.approx(49)


def test_the_worst_client_is_the_same_for_rows_with_fewer_rounds(evidence):
    """Client 0 is the worst in the mean of the last three rounds, client 1 in the last one; fine-tuning takes one."""
    tuned, plain = evidence.by_row["fedprox"][0], evidence.by_row["fedavg"][0]
    long = by_client(plain, *((80, 80),) * 3, (40, 70), (40, 70), (70, 40))
    late = replace(evidence, runs=replace(evidence.runs, score_at=PROTOCOL))
    late = replace(late, by_row={"fedavg": [long], "fedprox": [by_client(tuned, (55, 99))]})
    assert late.worst_level("fedavg", "fedavg", "qqp") == pytest.approx(50)  # (40 + 40 + 70) / 3
    assert late.worst_level("fedavg", "fedprox", "qqp") == pytest.approx(55)
    effect = late.worst_difference("fedavg", ("fedprox", "fedavg"), "qqp")
    assert effect is not None
    assert effect.value == pytest.approx(55 - 70)  # both at the last round


# ---- the label-prior study -----------------------------------------------------------------------------------------


def test_its_margin_and_seeds_are_those_of_the_protocol():
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith("| study |"))
    (relation,), seeds = STUDY.primary.relations, STUDY.primary.seeds
    assert f"within {relation.most:g} point," in line
    assert relation.by == -relation.most
    assert set(relation.tasks) == set(seeds)
    assert all(f"| {each[0]}–{each[-1]} |" in line for each in seeds.values())


def test_all_that_it_compares_are_runs_of_its_steps():
    """FedPer and fine-tuning are compared on four tasks, without CoLA. Step 23 has the rows without training."""
    evidence_campaign, primary = campaign(), STUDY.primary
    compared = [("fedsplitbert-evidence", primary.steps, primary.seeds, STUDY.rows)]
    compared += [(each.table, each.steps, each.seeds, {*chain(*each.pairs)}) for each in STUDY.controls]
    for name, steps, seeds, rows in compared:
        table = evidence_campaign.benchmarks[name]
        runs = {run.spec_id for number in (*steps, 23) for run in evidence_campaign.steps[number]}
        for row in map(table.row, rows):
            for column in (column for column in table.columns if column.task in seeds):
                ids = {table.cell(row, column, table.scale("lite"), seed).spec_id for seed in seeds[column.task]}
                is_left_out = column.task == "cola" and (row.corrects or row.id) in ("fedper", "fedavg-finetuned")
                assert is_left_out or ids <= runs, (row.id, column.task)


def test_no_number_before_all_runs_are_finished(evidence):
    """Locked evidence has no records: reading any would be a KeyError."""
    locked = replace(evidence, name="Confirmatory", missing="21 of 36 (step 3)", by_row={})
    said = "**Confirmatory**: incomplete. Runs finished: 21 of 36 (step 3); numbers are computed once all are finished."
    for text in study_blocks(STUDY, [locked], [(STUDY.controls[0], locked)]).values():
        assert text.removeprefix("- ") == said


def test_its_finding_compares_two_rows_once_all_runs_are_finished(evidence, monkeypatch):
    study = replace(STUDY, headline="FedProx is {compared}")
    effects = {"1.5 points worse": (-1.5, 0.1), "not measurably better or worse": (0.5, 1.0)}
    for state, (value, variance) in effects.items():
        measured = estimate(value, [Component(variance, 4)], 5)
        monkeypatch.setattr(Evidence, "difference", lambda *_, measured=measured: measured)
        monkeypatch.setattr(studies, "_answering", lambda *_: evidence)
        monkeypatch.setattr(studies, "fixed_test", lambda *_: (1.0, "undecided"))
        headline = studies.headline_of(study, [])
        assert headline is not None
        assert headline.numbers.endswith("hypothesis that both are equal within 1 point is undecided")
        assert (headline.summary, headline.page) == (f"FedProx is {state}", "docs/label-prior.md")
    monkeypatch.setattr(studies, "_answering", lambda *_: replace(evidence, missing="21 of 36"))
    assert studies.headline_of(study, []) is None


def test_a_control_says_whether_its_rows_are_equal(evidence, monkeypatch):
    """Within 1 point: shown for a difference of 0.2, not shown for two seeds that differ, exact if no score changes."""
    control = Control("", evidence.table, (("fedprox", "fedavg"),), (), {"qqp": range(2)})
    effects = {"shown": estimate(0.2, [Component(0.1, 4)], 5), "open": estimate(0.2, [Component(0.5, 1)], 2)}
    effects["same"] = Estimate(0.0, None, 3)
    for state, word in (("shown", "supported"), ("open", "undecided"), ("same", "the same in each seed")):
        monkeypatch.setattr(Evidence, "difference", lambda *_, state=state: effects[state])
        text = study_blocks(STUDY, [replace(evidence, missing="none")], [(control, evidence)])["controls"]
        assert f"| equal within 1 point | {word} | {word} |" in text
