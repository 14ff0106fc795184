"""Rows that put scores in their place: those that begin from FedAvg's outcome, and those that send nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.cli.main import main
from benchmarks.executors import run_cells
from benchmarks.fedsplitbert.paper import PERSONALISED, REFERENCES
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


def test_a_row_that_begins_from_none_of_its_table_is_refused() -> None:
    (table, *_), wrong = TABLES, replace(PERSONALISED[-1], begins="fedsgd")
    with pytest.raises(KeyError, match="fedsgd"):
        table.cell(wrong, table.columns[0], table.scale("demo"), 0)


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


@pytest.mark.slow
def test_answers_are_fedavgs_and_the_prior(
    finished: dict[str, RunResult], module_settings: RunOptions, training_labels: Callable[..., np.ndarray]
) -> None:
    """By the kept answers, in half precision."""
    prior, fedavg = (read_predictions(module_settings.records_dir, finished[row]) for row in ("fedavg-prior", "fedavg"))
    labels = training_labels(finished["fedavg"], fedavg)
    own, everyone = labels + 1, labels.sum(axis=0) + 1
    shifts = np.log(own / own.sum(axis=1, keepdims=True)) - np.log(everyone / everyone.sum())
    assert prior.keys() == fedavg.keys()
    for (client, evaluation), answers in prior.items():
        plain = fedavg[client, evaluation]
        assert answers.indices.tolist() == plain.indices.tolist()
        expected = plain.by_round[len(finished["fedavg"].rounds)].astype(float) + shifts[client]
        np.testing.assert_allclose(answers.last.astype(float), expected, atol=1e-2)
        apart = np.abs(expected[:, 0] - expected[:, 1]) > 2e-2
        assert np.array_equal(answers.last.argmax(1)[apart], expected.argmax(1)[apart])


def test_plan_names_the_earlier_run_unless_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", TABLES[0].id, "--results-dir", str(tmp_path), "--tasks", "mrpc", "--seeds", "3", "--methods"]
    assert main([*words, ",".join(BEGUN)]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert output.count("First, once: mrpc by fedavg on tiny, 4 rounds (not run yet).") == 1
    assert main([*words, ",".join((*BEGUN, "fedavg"))]) == 0
    assert "First, once" not in capsys.readouterr().out
