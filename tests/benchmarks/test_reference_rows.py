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
from benchmarks.effort import estimate_effort
from benchmarks.events import CellFinished, CellStarted
from benchmarks.executors import run_cells
from benchmarks.fedsplitbert.setup import PERSONALISED, REFERENCES
from benchmarks.planning import wire_plan
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


def test_answers_are_fedavgs_and_the_prior(finished: dict[str, RunRecord], module_settings: Settings) -> None:
    """By the kept answers, in half precision."""
    prior, fedavg = (read_predictions(module_settings.records_dir, finished[row]) for row in ("fedavg-prior", "fedavg"))
    record = finished["fedavg"]
    trained = []
    for client in record.clients:
        counts = np.array(record.partition["obtained_counts"][client["client"]])
        trained.append(counts - np.bincount(fedavg[client["client"], "test"].gold, minlength=2))
    everyone = np.sum(trained, axis=0) + 1
    for (client, evaluation), own in prior.items():
        plain = fedavg[client, evaluation]
        assert own.indices.tolist() == plain.indices.tolist()
        shares = (trained[client] + 1) / (trained[client] + 1).sum()
        expected = plain.last.astype(float) + np.log(shares / (everyone / everyone.sum()))
        np.testing.assert_allclose(own.last.astype(float), expected, atol=1e-2)


def test_the_overall_majority_is_one_answer(finished: dict[str, RunRecord], module_settings: Settings) -> None:
    answers = read_predictions(module_settings.records_dir, finished["overall-majority"])
    assert len({tuple(row) for own in answers.values() for row in own.last.tolist()}) == 1


def test_the_linear_model_learns_the_generated_data(finished: dict[str, RunRecord]) -> None:
    linear, majority = (finished[row].rounds[-1].pooled_scores["test"] for row in ("linear", "overall-majority"))
    assert linear["accuracy"] > majority["accuracy"] + 0.1


@pytest.mark.parametrize("row", ["overall-majority", "linear"])
def test_without_an_encoder_no_flops_are_counted(row: str, cells_of: CellsOf) -> None:
    (cell,) = cells_of([row])
    assert estimate_effort(cell, Settings()).flops == 0


def test_a_prior_costs_flops_of_answers_alone(cells_of: CellsOf) -> None:
    (prior, tuned) = cells_of(BEGUN[::-1])
    assert estimate_effort(prior, Settings()).training_flops == 0
    assert estimate_effort(prior, Settings()).scoring_flops == estimate_effort(tuned, Settings()).scoring_flops > 0


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
