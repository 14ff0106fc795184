"""An official development set: a round is chosen by it, a sweep's trials are scored on it, nothing is kept back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from benchmarks.errors import UserError
from benchmarks.predictions import Predictions, pack_predictions, read_predictions
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell
from benchmarks.running.scoring import scores
from benchmarks.tasks import task
from fedsim.data import IGNORED
from fedsim.objectives import build_objective

CELL = RunConfig(
    scale="demo",
    task="scierc",
    task_version=1,
    source="generated",
    backbone="tiny",
    clients=1,
    partition={"scheme": "equal"},
    algorithm="central",
    options={},
    training=TrainConfig(rounds=3, learning_rate=1e-3, batch_size=8, max_length=12, precision="fp32", local_epochs=2),
    seed=0,
    test_share=0.0,
    head="tokens",
)
CASES = {
    "tags": CELL,
    "labels": replace(CELL, task="rct20k", head="pooled", training=replace(CELL.training, max_length=32)),
    "own models": replace(
        CELL,
        clients=2,
        algorithm="fedsplitbert",
        options={"critical_layer": 1},
        training=replace(CELL.training, rounds=2, local_epochs=1),
    ),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, RunResult]]:
    """The records' folder, and the record of each case."""
    settings = RunOptions(results_dir=tmp_path_factory.mktemp("central"), device="cpu")
    return settings.records_dir, {name: run_cell(cell, settings, lambda _: None) for name, cell in CASES.items()}


@pytest.mark.parametrize("case", CASES)
def test_a_round_is_chosen_by_the_central_validation_set(
    case: str, finished: tuple[Path, dict[str, RunResult]]
) -> None:
    record = finished[1][case]
    metric = task(record.cell.task).metrics[0]
    values = [entry.scores["validation"][metric] for entry in record.rounds]
    assert record.chosen_by == f"validation/{metric}"
    assert record.chosen_round == values.index(max(values)) + 1
    data = task(record.cell.task).generate(0)
    assert {name: record.examples(name) for name in data.central} == {
        name: len(part) for name, part in data.central.items()
    }
    assert sum(client["train"] for client in record.clients) >= len(data.pool)  # more where texts are in blocks


@pytest.mark.parametrize("case", CASES)
def test_the_recorded_scores_come_out_of_what_was_kept(case: str, finished: tuple[Path, dict[str, RunResult]]) -> None:
    folder, record = finished[0], finished[1][case]
    of = task(record.cell.task)
    objective = build_objective(of.objective, of.classes)
    clients, _ = build_clients(record.cell, load_inputs(record.cell, RunOptions()), RunOptions())
    kept = read_predictions(folder, record)
    assert kept.keys() == {(client.id, name) for client in clients for name in ("validation", "test")}
    for client in clients:
        for name, subset in client.evaluation.items():
            own, gold = kept[client.id, name], subset.references
            assert own.indices.tolist() == list(range(len(subset)))
            assert {*own.by_round} >= {len(record.rounds), record.chosen_round}
            assert own.last is own.by_round[len(record.rounds)]
            assert own.chosen is own.by_round[record.chosen_round]
            for number, ids in own.by_round.items():
                answers = ids.astype(np.float32)
                if of.tags:
                    assert asked_alone(own) == [row[row != IGNORED].tolist() for row in gold]
                    answers = np.zeros(objective.shape(subset), np.float32)
                    rows, places = (gold != IGNORED).nonzero()
                    answers[rows, places, ids[ids != IGNORED]] = 1
                found = scores(of.metrics, objective, answers, subset)
                assert found == record.rounds[number - 1].client_scores[client.id][name]


def asked_alone(own: Predictions) -> list[list[int]]:
    """The tags that stand in each row, and nothing behind them."""
    assert own.gold.dtype == own.last.dtype == np.int8
    assert own.gold.shape == own.last.shape == own.chosen.shape
    rows = [row[row != IGNORED].tolist() for row in own.gold]
    assert all((row[: len(tags)] == tags).all() for row, tags in zip(own.gold, rows, strict=True))
    return rows


@pytest.mark.parametrize(("tags", "kind"), [(13, np.int8), (128, np.int8), (129, np.int16)])
def test_tags_of_logits_that_are_not_finite_are_none(tags: int, kind: type) -> None:
    clients, _ = build_clients(CELL, load_inputs(CELL, RunOptions()), RunOptions())
    client = replace(clients[0], evaluation={"test": clients[0].evaluation["test"]})
    subset = client.evaluation["test"]
    answers = np.ones((*subset.references.shape, tags), np.float32)
    answers[0, :, 3], answers[1, :, tags - 1] = np.nan, 2
    arrays = safetensors.numpy.load(pack_predictions([client], {1: {"0/test": answers}}, 1))
    first, second, *_ = np.split(arrays["test/last"], np.cumsum(arrays["test/tokens"]))
    assert set(first.tolist()) == {IGNORED}
    assert set(second.tolist()) == {tags - 1}
    assert arrays["test/last"].dtype == kind


@pytest.mark.parametrize("name", CASES)
def test_trials_are_scored_on_the_validation_set_and_see_no_test(name: str) -> None:
    table, tuning = CASES[name], replace(CASES[name], holdout="validation")
    settings = RunOptions()
    (whole, _), (tried, _) = (build_clients(cell, load_inputs(cell, settings), settings) for cell in (table, tuning))
    for own, its in zip(whole, tried, strict=True):
        assert own.train.indices.tolist() == its.train.indices.tolist()
        assert list(its.evaluation) == ["test"]
        found, expected = its.evaluation["test"], own.evaluation["validation"]
        assert found.indices.tolist() == expected.indices.tolist()
        assert found.references.tolist() == expected.references.tolist()


def test_a_share_beside_a_central_validation_set_is_refused() -> None:
    cell = replace(CELL, validation_share=0.2)
    with pytest.raises(
        UserError, match="validation_share: expected 0, as the validation set is central for the task sci"
    ):
        build_clients(cell, load_inputs(cell, RunOptions()), RunOptions())
    cell = replace(CELL, test_share=0.2)
    with pytest.raises(UserError, match="test_share: expected 0, as the test set is central for the task scierc"):
        build_clients(cell, load_inputs(cell, RunOptions()), RunOptions())
