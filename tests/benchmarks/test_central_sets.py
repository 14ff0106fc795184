"""Central test and validation sets: every client is scored on the whole set, and clients keep nothing back."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from benchmarks.errors import UserError
from benchmarks.predictions import pack_predictions, read_predictions
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell
from benchmarks.running.scoring import scores
from benchmarks.tasks import task
from fedsim.data import IGNORED, Client
from fedsim.objectives import build_objective
from partitions import PartitionReport

CELL = RunConfig(
    scale="demo",
    task="arsarcasm",
    task_version=1,
    source="generated",
    backbone="tiny",
    clients=3,
    partition={"scheme": "dirichlet", "alpha": 1.0},
    algorithm="fedavg",
    options={},
    training=TrainConfig(rounds=1, learning_rate=2e-3, batch_size=16, max_length=32, precision="fp32"),
    seed=0,
    test_share=0.0,
)
SPLIT = {"algorithm": "fedsplitbert", "options": {"critical_layer": 1}}
TAGS = replace(
    CELL, task="scierc", clients=1, partition={"scheme": "equal"}, algorithm="central", head="tokens",
    training=TrainConfig(rounds=3, learning_rate=1e-3, batch_size=8, max_length=12, precision="fp32", local_epochs=2),
)  # fmt: skip
CASES = {
    "tags": TAGS,
    "labels": replace(TAGS, task="rct20k", head="pooled", training=replace(TAGS.training, max_length=32)),
    "own models": replace(TAGS, clients=2, training=replace(TAGS.training, rounds=2, local_epochs=1), **SPLIT),
}


def clients_of(cell: RunConfig) -> tuple[list[Client], PartitionReport]:
    return build_clients(cell, load_inputs(cell, RunOptions()), RunOptions())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, RunResult]]:
    """The records' folder, and the record of each case."""
    settings = RunOptions(results_dir=tmp_path_factory.mktemp("central"), device="cpu")
    return settings.records_dir, {name: run_cell(cell, settings, lambda _: None) for name, cell in CASES.items()}


# ---- clients -----------------------------------------------------------------------------------------------------


def test_clients_keep_nothing_back_and_share_the_test_set() -> None:
    data = load_inputs(CELL, RunOptions()).data
    clients, report = clients_of(CELL)
    assert sum(len(client.train) for client in clients) == len(data.pool) - report.unused
    assert len({id(client.evaluation["test"]) for client in clients}) == 1
    assert clients[0].evaluation["test"].labels.tolist() == data.central["test"].labels.tolist()


def test_a_part_of_the_test_set_is_the_same_for_all_cells() -> None:
    one, other = (clients_of(replace(CELL, seed=seed, central_share=0.25))[0][0] for seed in (0, 1))
    indices = one.evaluation["test"].indices.tolist()
    assert indices == other.evaluation["test"].indices.tolist() == sorted(set(indices))
    assert len(indices) == round(0.25 * len(load_inputs(CELL, RunOptions()).data.central["test"]))
    assert indices != list(range(len(indices)))


def test_trials_are_scored_on_the_validation_set_and_see_no_test() -> None:
    cell = CASES["own models"]
    table, tuning = (clients_of(each)[0] for each in (cell, replace(cell, holdout="validation")))
    for client, trial in zip(table, tuning, strict=True):
        assert client.train.indices.tolist() == trial.train.indices.tolist()
        assert list(trial.evaluation) == ["test"]
        found, expected = trial.evaluation["test"], client.evaluation["validation"]
        assert found.indices.tolist() == expected.indices.tolist()
        assert found.references.tolist() == expected.references.tolist()


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (replace(CELL, test_share=0.2), "test_share: expected 0, as the test set is central for the task arsarcasm"),
        (replace(CELL, task="mrpc"), r"test_share: expected a share in \(0, 1\) for the task mrpc, found 0.0"),
        (replace(TAGS, validation_share=0.2), "validation_share: expected 0, as the validation set is central for the"),
    ],
)
def test_shares_that_do_not_suit_the_central_sets_are_refused(cell: RunConfig, message: str) -> None:
    with pytest.raises(UserError, match=message):
        clients_of(cell)


# ---- records -----------------------------------------------------------------------------------------------------


def test_records_of_a_global_and_of_a_personal_method(tmp_path: Path) -> None:
    settings = RunOptions(results_dir=tmp_path)
    fedavg, split = (run_cell(cell, settings, lambda _: None) for cell in (CELL, replace(CELL, **SPLIT)))
    assert fedavg.examples("test") == split.examples("test") == 120
    one = [scores["test"] for scores in fedavg.rounds[-1].client_scores]
    assert one[0] == one[1] == one[2]
    assert len({scores["test"]["accuracy"] for scores in split.rounds[-1].client_scores}) > 1
    share = fedavg.score("test/accuracy")
    assert share is not None
    # One test set of 120, however many clients are scored on it.
    assert fedavg.sampling_errors["test"]["accuracy"] == pytest.approx(math.sqrt(share * (1 - share) / 120))


@pytest.mark.parametrize("case", CASES)
def test_a_round_is_chosen_by_the_central_validation_set(
    case: str, finished: tuple[Path, dict[str, RunResult]]
) -> None:
    record = finished[1][case]
    metric = task(record.cell.task).metrics[0]
    values = [entry.scores["validation"][metric] for entry in record.rounds]
    assert record.chosen_by == f"validation/{metric}"
    assert record.chosen_round == values.index(max(values)) + 1
    central = task(record.cell.task).generate(0).central
    assert {name: record.examples(name) for name in central} == {name: len(part) for name, part in central.items()}


# ---- predictions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_the_recorded_scores_follow_from_the_kept_answers(
    case: str, finished: tuple[Path, dict[str, RunResult]]
) -> None:
    record = finished[1][case]
    of, clients = task(record.cell.task), clients_of(record.cell)[0]
    objective = build_objective(of.objective, of.classes)
    kept = read_predictions(finished[0], record)
    assert kept.keys() == {(client.id, name) for client in clients for name in ("validation", "test")}
    for (client, name), own in kept.items():
        subset = clients[client].evaluation[name]
        gold = subset.references
        for number, ids in own.by_round.items():
            answers = ids.astype(np.float32)
            if of.tags:
                assert np.array_equal(own.gold[own.gold != IGNORED], gold[gold != IGNORED])
                assert own.gold.dtype == ids.dtype == np.int8
                answers = np.zeros(objective.shape(subset), np.float32)
                rows, places = (gold != IGNORED).nonzero()
                answers[rows, places, ids[ids != IGNORED]] = 1
            found = scores(of.metrics, objective, answers, subset)
            assert found == record.rounds[number - 1].client_scores[client][name]


@pytest.mark.parametrize(("tags", "kind"), [(13, np.int8), (128, np.int8), (129, np.int16)])
def test_tags_of_logits_that_are_not_finite_are_ignored(tags: int, kind: type) -> None:
    (client,), _ = clients_of(TAGS)
    client = replace(client, evaluation={"test": client.evaluation["test"]})
    answers = np.ones((*client.evaluation["test"].references.shape, tags), np.float32)
    answers[0, :, 3], answers[1, :, tags - 1] = np.nan, 2
    arrays = safetensors.numpy.load(pack_predictions([client], {1: {"0/test": answers}}, 1))
    first, second, *_ = np.split(arrays["test/last"], np.cumsum(arrays["test/tokens"]))
    assert set(first.tolist()) == {IGNORED}
    assert set(second.tolist()) == {tags - 1}
    assert arrays["test/last"].dtype == kind
