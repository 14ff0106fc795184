"""Federated PEFT's decisive comparisons on made-up records of a finished campaign: every verdict can go both ways."""

import random
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from benchmarks import papers
from benchmarks.campaign import protocol
from benchmarks.campaign.protocol import Campaign, decisive_of
from benchmarks.claims import rows_named
from benchmarks.registry import benchmark
from benchmarks.results import RoundRecord, RunResult
from benchmarks.run_config import RunConfig
from benchmarks.sweeps.tuning import Search
from reports.claims import wording
from reports.claims.judge import CONTRADICTED, PARTLY, SUPPORTED, UNDECIDED, measured_word

SCORES, EVEN, WORK = (f"fedpeft-{name}" for name in ("scores", "even", "localwork"))
REFERENCES = {"overall-majority": 55.0, "local-majority": 75.0, "linear": 62.0, "central": 90.0}
METHODS = 80.0
NOTHING: Mapping[Any, Any] = {}
# Row, or table and row -> its accuracy in percent; row -> what a round measures.
Levels = Mapping[str | tuple[str, str], float]
Measured = Mapping[str, Mapping[str, float]]


@pytest.fixture(scope="module")
def tuned_campaign() -> Iterator[Campaign]:
    """The campaign with rows that count as tuned, and with nothing left to run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Search, "is_open", lambda *_: False)
        whole = protocol.campaign.__wrapped__()
        relations = [relation for each in decisive_of("fedpeft") for relation in each.relations]
        names = {at.benchmark for relation in relations for at in rows_named(relation)}
        tables = {**whole.benchmarks, **{name: whole.table(name) for name in names}}
        yield replace(whole, steps=dict.fromkeys(whole.steps, ()), benchmarks=tables)


def made_up(cell: RunConfig, level: float, measured: Mapping[str, float], diverged: bool) -> RunResult:
    """A finished run with this accuracy, give or take 0.3 points, and these measurements, give or take 2 %.

    On a central test set the runs of three seeds differ less.
    """
    noise, is_central = random.Random(cell.spec_id), "central" in cell.task
    share = (level + noise.gauss(0, 0.1 if is_central else 0.3)) / 100
    scores = {name: {"accuracy": share, "f1": share} for name in ("test", "validation", "independent")}
    by_name = {name: value * noise.gauss(1, 0.02) for name, value in measured.items()}
    everyone, rounds = tuple(range(cell.clients)), []
    for number in range(1, 2 if diverged else cell.training.rounds + 1):
        pooled = {"test": scores["test"]}
        rounds.append(RoundRecord(number, everyone, 0.5, (0.5,), scores, (scores,), 0, 0, pooled, by_name))
    digests = {"data": f"digest of {cell.task}", "backbone": "digest"}
    central = {"central": {"test": 5000}} if is_central else {}
    sizes = {"train": 560, "validation": 80, **({} if is_central else {"test": 160, "independent": 100})}
    return RunResult(
        cell=cell,
        cell_id=cell.cell_id(digests),
        inputs={"data": {"digest": digests["data"], **central}, "backbone": {"digest": digests["backbone"]}},
        partition={"n_examples": 67_000, "obtained_counts": [[400, 400]] * cell.clients},
        clients=tuple({"client": client, **sizes} for client in everyone),
        rounds=tuple(rounds),
        sampling_errors={name: {"accuracy": 0.005, "f1": 0.005} for name in (*scores, "pooled")},
        setup_bytes=0,
        ledger=(),
        environment={},
        timing={},
        finished="2026-12-01T00:00:00+00:00",
        chosen_by="validation/accuracy",
        diverged={"round": 2, "reason": "loss is nan"} if diverged else {},
    )


@pytest.fixture
def verdict(tuned_campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[str, str]]:
    def of(
        claim: str, levels: Levels = NOTHING, measured: Measured = NOTHING, diverged: Collection[Any] = ()
    ) -> tuple[str, str]:
        """The word of a claim in a world, and its numbers. diverged: rows, or rows and seeds."""
        given: Levels = {**REFERENCES, **levels}
        records: dict[str, RunResult] = {}
        (decisive,) = (each for each in decisive_of("fedpeft") if claim in each.claims)
        tables = {at.benchmark for relation in decisive.relations for at in rows_named(relation)} | {SCORES}
        for table in (tuned_campaign.benchmarks[name] for name in tables):
            for row, column in product(table.rows, table.columns):
                for seed in decisive.seeds.get(column.task, ()):
                    cell = table.cell(row, column, table.scale("lite"), seed)
                    level = given.get((table.id, row.id), given.get(row.id, METHODS))
                    fails = row.id in diverged or (row.id, seed) in diverged
                    records.setdefault(cell.spec_id, made_up(cell, level, measured.get(row.id, {}), fails))
        monkeypatch.setattr(papers, "campaign", lambda: replace(tuned_campaign, records=tuple(records.values())))
        decision = papers._deciding("fedpeft", [])[claim].verdict
        return measured_word(decision), f"{wording.numbers(decision)} {wording.why(decision)}"

    return of


def errors(fedit: float, fedrot: float) -> Measured:
    rotated = {"aggregation_error": fedrot}  # FedRot-LoRA was tuned to FedIT's rate, so both rows are the same run
    return {"fedit": {"aggregation_error": fedit}, "fedrot-lora": rotated, "fedrot-lora-same-rate": rotated}


def cosines(equal: float, distinct: float) -> Measured:
    return {"local-lora": {"cosine_a": equal}, "local-lora-own-draws": {"cosine_a": distinct}}


FULL = {"fedavg-0.1": 88.0, "fedavg-1": 88.0, "fedavg-10": 88.0}
WORSE = {f"{row}-0.1": 70.0 for row in ("fedit", "bitfit", "bottleneck", "prefix")}
WORLDS: list[tuple[str, Levels, Measured, str]] = [
    ("1a", {"ffa-lora": 84}, {}, SUPPORTED),
    ("1a", {"ffa-lora": 76}, {}, CONTRADICTED),
    ("1c", {(EVEN, "fedit"): 88, (EVEN, "ffa-lora"): 82}, {}, SUPPORTED),
    ("1c", {(EVEN, "ffa-lora"): 88}, {}, CONTRADICTED),
    ("3", {}, errors(0.5, 0.01), SUPPORTED),
    ("3", {}, errors(0.5, 0.2), CONTRADICTED),
    ("4", {"fedrot-lora": 84}, {}, SUPPORTED),
    ("4", {"fedrot-lora": 84, "rolora": 88}, {}, PARTLY),
    ("4", {"fedrot-lora": 76}, {}, CONTRADICTED),
    ("5", {"fedit-adam": 54}, {}, SUPPORTED),
    ("5", {}, {}, CONTRADICTED),
    ("6a", {"share-b": 76}, {}, SUPPORTED),
    ("6a", {"share-b": 84}, {}, CONTRADICTED),
    ("6b", {}, cosines(0.9, 0.1), SUPPORTED),
    ("6b", {}, cosines(0.9, 0.88), CONTRADICTED),
    ("7b", {"fedex-lora": 84}, {}, SUPPORTED),
    ("7b", {"fedex-lora": 76}, {}, CONTRADICTED),
    ("8a", {"flora": 84}, {}, SUPPORTED),
    ("8a", {"flora": 76}, {}, CONTRADICTED),
    ("8b", {"flora": 54}, {}, SUPPORTED),
    ("8b", {}, {}, CONTRADICTED),
    ("8c", {(WORK, "flora-few"): 70}, {}, SUPPORTED),
    ("8c", {(WORK, "flora-few"): 82}, {}, CONTRADICTED),
    ("9", {**FULL, **WORSE}, {}, SUPPORTED),
    ("9", {**FULL, "fedavg-0.1": 70}, {}, CONTRADICTED),
    ("10", {}, {}, SUPPORTED),
    ("10", FULL, {}, CONTRADICTED),
    ("11a", {"rolora": 84}, {}, SUPPORTED),
    ("11a", {"rolora": 78}, {}, CONTRADICTED),
    ("11b", {"rolora": 84}, {}, SUPPORTED),
    ("11b", {"rolora": 78}, {}, CONTRADICTED),
]


@pytest.mark.parametrize(("claim", "levels", "measured", "word"), WORLDS)
def test_verdicts(verdict, claim, levels, measured, word):
    outcome, numbers = verdict(claim, levels, measured)
    assert outcome == word, numbers


def test_every_decisive_comparison_is_tested_both_ways():
    verdicts = {claim: {word for tested, *_, word in WORLDS if tested == claim} for claim, *_ in WORLDS}
    assert verdicts.keys() == {claim for each in decisive_of("fedpeft") for claim in each.claims}
    assert all({SUPPORTED, CONTRADICTED} <= each for each in verdicts.values())


def test_a_diverged_run_scores_as_the_constant_answer(verdict):
    """So a method that diverges in some seeds gains nothing by it, and one that always does has failed to converge."""
    assert verdict("5", diverged=["fedit-adam"])[0] == SUPPORTED
    assert verdict("8a", {"flora": 84}, diverged=["flora"])[0] == CONTRADICTED
    outcome, numbers = verdict("1a", {"ffa-lora": 84}, diverged=[("ffa-lora", 0), ("ffa-lora", 3)])
    assert outcome == UNDECIDED
    name = benchmark("fedpeft-scores").row("overall-majority").name
    assert f"FFA-LoRA (head shared): 2 diverged, scored as {name}" in numbers
