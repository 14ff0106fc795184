"""A record keeps the answers of its last three rounds and of the chosen one; earlier versions kept fewer."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from benchmarks.predictions import (
    Predictions,
    read_predictions,
)
from benchmarks.results import RunResult, read_result
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell
from benchmarks.running.scoring import scores
from benchmarks.tasks import task
from fedsim.data import Client, Subset
from fedsim.objectives import build_objective

CELL = RunConfig(
    scale="demo",
    task="mrpc",
    task_version=1,
    source="generated",
    backbone="tiny",
    clients=3,
    partition={"scheme": "equal"},
    algorithm="fedavg",
    options={},
    training=TrainConfig(rounds=6, learning_rate=2e-3, batch_size=64, max_length=32, precision="fp32"),
    seed=0,
    validation_share=0.25,
)
PERSONAL = {"algorithm": "fedsplitbert", "options": {"critical_layer": 2}}
CENTRAL = {"task": "arsarcasm", "test_share": 0.0}


def run(cell: RunConfig, folder: Path) -> RunResult:
    return run_cell(cell, RunOptions(results_dir=folder, device="cpu"), lambda _: None)


def contents(folder: Path, record: RunResult) -> dict[str, np.ndarray]:
    """The arrays of a record's file, by name."""
    compressed = (folder / record.predictions_name).read_bytes()
    return safetensors.numpy.load(lzma.decompress(compressed))


@pytest.mark.parametrize(
    ("changes", "chosen", "expected"),
    [
        (PERSONAL, 1, [1, 4, 5, 6]),
        ({"training": replace(CELL.training, rounds=4)}, 1, [1, 2, 3, 4]),
        ({}, 3, [3, 4, 5, 6]),
        (CENTRAL, 4, [4, 5, 6]),
        ({}, 6, [4, 5, 6]),
        ({"validation_share": 0.0}, 1, [4, 5, 6]),  # nothing to choose by: the last one
    ],
)
def test_a_record_keeps_the_answers_of_its_last_three_rounds_and_of_the_chosen_one(
    changes: Mapping[str, Any], chosen: int, expected: list[int], choose: Callable[[int], None], tmp_path: Path
) -> None:
    """And those of each round come to that round's scores, client by client and exactly."""
    choose(chosen)
    record = run(replace(CELL, **changes), tmp_path)
    clients, kept = read(tmp_path / "records", record)
    assert record.chosen_round == (chosen if record.chosen_by else len(record.rounds))
    for (client, name), own in kept.items():
        assert list(own.by_round) == expected
        assert own.last is own.by_round[len(record.rounds)]
        assert own.chosen is own.by_round[record.chosen_round]
        for number, outputs in own.by_round.items():
            found = scored(record, clients[client].evaluation[name], outputs)
            assert found == record.rounds[number - 1].client_scores[client][name]
    assert any(not np.array_equal(*pair) for own in kept.values() for pair in pairwise(own.by_round.values()))


def read(folder: Path, record: RunResult) -> tuple[list[Client], dict[tuple[int, str], Predictions]]:
    """A record's clients and predictions."""
    settings = RunOptions(device="cpu")
    clients, _ = build_clients(record.cell, load_inputs(record.cell, settings), settings)
    return clients, read_predictions(folder, record)


def scored(record: RunResult, subset: Subset, outputs: np.ndarray) -> Mapping[str, float | None]:
    of = task(record.cell.task)
    return scores(of.metrics, build_objective(of.objective, of.classes), outputs, subset)


# ---- files of earlier versions ---------------------------------------------------------------------------------


def test_committed_records_have_the_answers_after_their_last_and_their_chosen_round() -> None:
    """Twelve of those in which they are not the same."""
    folder = Path(__file__).parents[2] / "benchmarks" / "fedsplitbert" / "records"
    seen = 0
    for path in sorted(folder.glob("*.json")):
        record = read_result(path)
        if seen == 12 or not record.predictions or record.chosen_round == len(record.rounds):
            continue
        for own in read_predictions(folder, record).values():
            assert own.by_round.keys() >= {len(record.rounds), record.chosen_round}
            assert own.last is own.by_round[len(record.rounds)]
            assert own.chosen is own.by_round[record.chosen_round]
        seen += 1
    assert seen == 12
