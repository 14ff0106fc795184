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
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.executors import run_cells
from benchmarks.fedsplitbert.setup import PERSONALISED, REFERENCES
from benchmarks.predictions import read_predictions
from benchmarks.registry import benchmark
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import earlier_stages
from benchmarks.running.events import CellFinished, CellStarted
from benchmarks.running.run_options import RunOptions

TABLES = [benchmark(f"fedsplitbert-table{number}") for number in (3, 5)]
ADDED = [row.id for row in (*REFERENCES, *PERSONALISED)]
BEGUN = ("fedavg-finetuned", "fedavg-prior")
SHORT = ("training.rounds=2", "training.local_epochs=1")
CellsOf = Callable[..., list[RunConfig]]


@pytest.fixture(scope="module")
def module_settings(tmp_path_factory: pytest.TempPathFactory) -> RunOptions:
    return RunOptions(results_dir=tmp_path_factory.mktemp("references"), device="cpu")


@pytest.fixture(scope="module")
def finished(cells_of: CellsOf, module_settings: RunOptions) -> dict[str, RunResult]:
    """Row -> its record on MRPC, and FedAvg's, which is not asked for."""
    found: dict[str, RunResult] = {}

    def collect(event: Any) -> None:
        if isinstance(event, CellFinished):
            found[event.record.cell.spec_id] = event.record

    cells = dict(zip(ADDED, cells_of(ADDED, *SHORT), strict=True))
    assert run_cells(list(cells.values()), module_settings, collect) == 0
    (fedavg,) = cells_of(["fedavg"], *SHORT)
    return {row: found[cell.spec_id] for row, cell in (*cells.items(), ("fedavg", fedavg))}


# ---- what they are ---------------------------------------------------------------------------------------------------


def test_a_row_that_begins_from_none_of_its_table_is_refused() -> None:
    (table, *_), wrong = TABLES, replace(PERSONALISED[-1], begins="fedsgd")
    with pytest.raises(KeyError, match="fedsgd"):
        table.cell(wrong, table.columns[0], table.scale("demo"), 0)


# ---- what they come to -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("row", ADDED)
def test_the_ledger_is_what_the_plan_foretold(row: str, finished: dict[str, RunResult]) -> None:
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


@pytest.mark.slow
def test_fedavg_is_run_once_and_its_weights_are_what_they_begin_with(
    cells_of: CellsOf, finished: dict[str, RunResult], module_settings: RunOptions, events: Any
) -> None:
    digests = {finished[row].inputs["initial"]["digest"] for row in BEGUN}
    assert len(digests) == 1
    assert {finished[row].inputs["initial"]["cell_id"] for row in BEGUN} == {finished["fedavg"].cell_id}
    cells = cells_of([*BEGUN, "fedavg"], *SHORT)
    assert earlier_stages(cells[0]) == earlier_stages(cells[1]) == [cells[2]]
    assert run_cells(cells, module_settings, events) == 0
    assert not events.of(CellStarted)


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


@pytest.mark.slow
def test_answers_are_fedavgs_and_the_prior(
    finished: dict[str, RunResult], module_settings: RunOptions, training_labels: Callable[..., np.ndarray]
) -> None:
    """By the kept answers, in half precision."""
    prior, fedavg = (read_predictions(module_settings.records_dir, finished[row]) for row in ("fedavg-prior", "fedavg"))
    shifts = priors(training_labels(finished["fedavg"], fedavg))
    assert_prior_of(prior, fedavg, len(finished["fedavg"].rounds), shifts)


@pytest.mark.slow
def test_the_overall_majority_is_one_answer(finished: dict[str, RunResult], module_settings: RunOptions) -> None:
    answers = read_predictions(module_settings.records_dir, finished["overall-majority"])
    assert len({tuple(row) for own in answers.values() for row in own.last.tolist()}) == 1


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
