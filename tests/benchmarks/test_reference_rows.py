"""Rows that put scores in their place: those that begin from FedAvg's outcome, and those that send nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.cli.main import main
from benchmarks.customise import with_settings
from benchmarks.dry_run import wire_plan
from benchmarks.events import CellFinished, CellStarted
from benchmarks.executors import run_cells
from benchmarks.fedsplitbert.setup import PERSONALISED, REFERENCES
from benchmarks.predictions import read_predictions
from benchmarks.record import RunRecord
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.settings import Settings
from benchmarks.spec import Cell
from benchmarks.stages import earlier_stages

TABLES = [benchmark(f"fedsplitbert-table{number}") for number in (3, 5)]
ADDED = [row.id for row in (*REFERENCES, *PERSONALISED)]
BEGUN = ("fedavg-finetuned", "fedavg-prior")
SHORT = ("training.rounds=2", "training.local_epochs=1")
CellsOf = Callable[..., list[Cell]]


@pytest.fixture(scope="module")
def module_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(results_dir=tmp_path_factory.mktemp("references"), device="cpu")


@pytest.fixture(scope="module")
def finished(cells_of: CellsOf, module_settings: Settings) -> dict[str, RunRecord]:
    """Row -> its record on MRPC, and FedAvg's, which is not asked for."""
    found: dict[str, RunRecord] = {}

    def collect(event: Any) -> None:
        if isinstance(event, CellFinished):
            found[event.record.cell.spec_id] = event.record

    cells = dict(zip(ADDED, cells_of(ADDED, *SHORT), strict=True))
    assert run_cells(list(cells.values()), module_settings, collect) == 0
    (fedavg,) = cells_of(["fedavg"], *SHORT)
    return {row: found[cell.spec_id] for row, cell in (*cells.items(), ("fedavg", fedavg))}


# ---- what they are ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.place)
def test_references_come_first_and_what_follows_fedavg_last(table: Any) -> None:
    ids = [row.id for row in table.rows]
    assert ids[:5] == ADDED[:5]
    assert ids[-3:] == ADDED[5:]
    assert not any(row.printed for row in table.rows if row.id in ADDED)


@pytest.mark.parametrize("benchmark_id", benchmark_ids())
def test_what_a_row_begins_from_is_a_row_of_its_table(benchmark_id: str) -> None:
    table = benchmark(benchmark_id)
    for row in table.rows:
        if row.begins:
            assert not table.row(row.begins).begins
        assert set(row.fixed) <= set(row.changes)


def test_a_row_that_begins_from_none_of_its_table_is_refused() -> None:
    (table, *_), wrong = TABLES, replace(PERSONALISED[-1], begins="fedsgd")
    with pytest.raises(KeyError, match="fedsgd"):
        table.cell(wrong, table.columns[0], table.scale("demo"), 0)


@pytest.mark.parametrize("changes", [[], ["training.rounds=7", "head=average", "seed=5"]])
@pytest.mark.parametrize("scale", ["demo", "lite", "paper"])
def test_they_begin_from_fedavgs_cell_of_the_same_seed_and_settings(scale: str, changes: list[str]) -> None:
    for table in (with_settings(table, changes) for table in TABLES):
        for row, column, cell in table.cells(table.scale(scale), [0, 3]):
            fedavg = table.cell(table.row("fedavg"), column, table.scale(scale), cell.seed)
            assert cell.initial == (fedavg if row.id in BEGUN else None)
            if row.id in BEGUN:
                assert cell.training == replace(fedavg.training, rounds=1)
                assert Cell.from_json(cell.to_json()).spec_id == cell.spec_id


def test_local_only_is_table_4s_lowest_row(untuned: None) -> None:
    """Tuned, it has a rate of its own, and Table IV's row FedSplitBERT's."""
    table, other = TABLES[0], benchmark("fedsplitbert-table4")
    for column in table.columns:
        lowest = other.cell(other.row("c0"), column, other.scale("lite"), 1)
        assert table.cell(table.row("local-only"), column, table.scale("lite"), 1) == lowest


# ---- what they come to -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ADDED)
def test_the_ledger_is_what_the_plan_foretold(row: str, finished: dict[str, RunRecord]) -> None:
    record = finished[row]
    plan = wire_plan(record.cell)
    sent: dict[tuple[str, str], int] = {}
    for entry in record.ledger:
        if entry.round:
            sent[entry.direction, entry.kind] = sent.get((entry.direction, entry.kind), 0) + entry.bytes
    assert sent == dict(plan.total.kinds)
    assert record.setup_bytes == plan.setup_bytes
    expected = {"fedavg-prior": {("up", "counts"): 3 * 2 * 4, ("down", "counts"): 3 * 2 * 4}}
    assert row == "fedper" or sent == expected.get(row, {})


def test_fedavg_is_run_once_and_its_weights_are_what_they_begin_with(
    cells_of: CellsOf, finished: dict[str, RunRecord], module_settings: Settings, events: Any
) -> None:
    digests = {finished[row].inputs["initial"]["digest"] for row in BEGUN}
    assert len(digests) == 1
    assert {finished[row].inputs["initial"]["cell_id"] for row in BEGUN} == {finished["fedavg"].cell_id}
    cells = cells_of([*BEGUN, "fedavg"], *SHORT)
    assert earlier_stages(cells[0]) == earlier_stages(cells[1]) == [cells[2]]
    assert run_cells(cells, module_settings, events) == 0
    assert not events.of(CellStarted)


@pytest.fixture(scope="module")
def of_four_rounds(cells_of: CellsOf, module_settings: Settings) -> dict[tuple[str, int], RunRecord]:
    """(row, rounds) -> a record of FedAvg, or of its label prior: of two, three and four rounds, nothing else apart."""
    found: dict[tuple[str, int], RunRecord] = {}
    for rounds in (2, 3, 4):
        changes = f"training.rounds={rounds}", "training.local_epochs=1", "validation_share=0.2"

        def collect(event: Any, rounds: int = rounds) -> None:
            if isinstance(event, CellFinished):
                found[event.record.cell.spec_id, rounds] = event.record

        cells = dict(zip(("fedavg", "fedavg-prior"), cells_of(["fedavg", "fedavg-prior"], *changes), strict=True))
        assert run_cells(list(cells.values()), module_settings, collect) == 0
        for row, cell in cells.items():
            found[row, rounds] = found.pop((cell.spec_id, rounds))
    return found


def priors(labels: np.ndarray) -> np.ndarray:
    """What the label prior adds to each client's logits, [clients, classes], by the labels that clients trained on."""
    own, everyone = labels + 1, labels.sum(axis=0) + 1
    shifts: np.ndarray = np.log(own / own.sum(axis=1, keepdims=True)) - np.log(everyone / everyone.sum())
    return shifts


def assert_prior_of(prior: Any, fedavg: Any, number: int, shifts: np.ndarray) -> None:
    """Whether a prior's answers are FedAvg's after a round, corrected: each the same up to half precision."""
    assert prior.keys() == fedavg.keys()
    for (client, evaluation), own in prior.items():
        plain = fedavg[client, evaluation]
        assert own.indices.tolist() == plain.indices.tolist()
        expected = plain.by_round[number].astype(float) + shifts[client]
        np.testing.assert_allclose(own.last.astype(float), expected, atol=1e-2)
        apart = np.abs(expected[:, 0] - expected[:, 1]) > 2e-2
        assert np.array_equal(own.last.argmax(1)[apart], expected.argmax(1)[apart])


def test_answers_are_fedavgs_and_the_prior(
    finished: dict[str, RunRecord], module_settings: Settings, training_labels: Callable[..., np.ndarray]
) -> None:
    """By the kept answers, in half precision."""
    prior, fedavg = (read_predictions(module_settings.records_dir, finished[row]) for row in ("fedavg-prior", "fedavg"))
    shifts = priors(training_labels(finished["fedavg"], fedavg))
    assert_prior_of(prior, fedavg, len(finished["fedavg"].rounds), shifts)


def test_fedavgs_record_gives_its_prior_after_each_of_its_last_three_rounds(
    of_four_rounds: dict[tuple[str, int], RunRecord],
    module_settings: Settings,
    training_labels: Callable[..., np.ndarray],
) -> None:
    """The row that was run from the same FedAvg of as many rounds has these answers, whose accuracy is recorded too."""
    record = of_four_rounds["fedavg", 4]
    fedavg = read_predictions(module_settings.records_dir, record)
    assert all({2, 3, 4} <= own.by_round.keys() for own in fedavg.values())
    shifts = priors(training_labels(record, fedavg))
    assert np.abs(shifts).max() > 0.1  # or there would be little to see
    for number in (2, 3, 4):
        ran = of_four_rounds["fedavg-prior", number]
        prior = read_predictions(module_settings.records_dir, ran)
        assert_prior_of(prior, fedavg, number, shifts)
        for client, scores in enumerate(ran.rounds[-1].client_scores):
            plain = fedavg[client, "test"]
            expected = plain.by_round[number].astype(float) + shifts[client]
            near = np.abs(expected[:, 0] - expected[:, 1]) <= 2e-2
            hits = expected.argmax(1) == plain.gold
            accuracy = scores["test"]["accuracy"]
            assert hits[~near].sum() <= round(accuracy * len(hits)) <= hits[~near].sum() + near.sum()


def test_fedavg_of_fewer_rounds_is_the_beginning_of_the_longer_one(
    of_four_rounds: dict[tuple[str, int], RunRecord], module_settings: Settings
) -> None:
    """Or else its prior would not be that of the longer one's earlier round."""
    whole = read_predictions(module_settings.records_dir, of_four_rounds["fedavg", 4])
    for number in (2, 3):
        shorter = read_predictions(module_settings.records_dir, of_four_rounds["fedavg", number])
        assert all(np.array_equal(own.last, whole[part].by_round[number]) for part, own in shorter.items())


def test_the_overall_majority_is_one_answer(finished: dict[str, RunRecord], module_settings: Settings) -> None:
    answers = read_predictions(module_settings.records_dir, finished["overall-majority"])
    assert len({tuple(row) for own in answers.values() for row in own.last.tolist()}) == 1


def test_the_linear_model_learns_the_generated_data(finished: dict[str, RunRecord]) -> None:
    linear, majority = (finished[row].rounds[-1].pooled_scores["test"] for row in ("linear", "overall-majority"))
    assert linear["accuracy"] > majority["accuracy"] + 0.1


# ---- what is said of them --------------------------------------------------------------------------------------------


def test_plan_says_once_what_is_run_before_and_is_not_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", TABLES[0].id, "--results-dir", str(tmp_path), "--tasks", "mrpc", "--seeds", "3"]
    assert main([*words, "--methods", ",".join(BEGUN)]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert re.findall(r"First, once: [^.]*\.", output) == [
        "First, once: mrpc by fedavg on tiny, 4 rounds (not run yet)."
    ]
    assert main([*words, "--methods", ",".join((*BEGUN, "fedavg"))]) == 0
    assert "First, once" not in capsys.readouterr().out
