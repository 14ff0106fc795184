"""A central test set: every client is scored on the whole of it, and nobody trains on it or keeps anything back."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import UserError
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell

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


def test_clients_keep_nothing_back_and_share_the_test_set() -> None:
    settings = RunOptions()
    inputs = load_inputs(CELL, settings)
    clients, report = build_clients(CELL, inputs, settings)
    assert sum(len(client.train) for client in clients) == len(inputs.data.pool) - report.unused
    parts = {id(client.evaluation["test"]) for client in clients}
    assert len(parts) == len({len(client.evaluation) for client in clients}) == 1
    assert len(clients[0].evaluation["test"]) == len(inputs.data.central["test"])
    assert clients[0].evaluation["test"].labels.tolist() == inputs.data.central["test"].labels.tolist()


def test_a_part_of_the_test_set_is_the_same_for_all_cells() -> None:
    settings = RunOptions()
    found = []
    for seed in (0, 1):
        cell = replace(CELL, seed=seed, central_share=0.25)
        inputs = load_inputs(cell, settings)
        clients, _ = build_clients(cell, inputs, settings)
        found.append(clients[0].evaluation["test"].indices.tolist())
    assert found[0] == found[1] == sorted(set(found[0]))
    assert len(found[0]) == round(0.25 * len(inputs.data.central["test"]))
    assert found[0] != list(range(len(found[0])))


def test_no_share_without_a_central_test_set_is_refused() -> None:
    cell = replace(CELL, task="mrpc")
    with pytest.raises(UserError, match=r"test_share: expected a share in \(0, 1\) for the task mrpc, found 0.0"):
        build_clients(cell, load_inputs(cell, RunOptions()), RunOptions())


def test_records_of_a_global_and_of_a_personal_method(tmp_path: Path) -> None:
    records = {
        name: run_cell(replace(CELL, algorithm=name, options=options), RunOptions(results_dir=tmp_path), lambda _: None)
        for name, options in (("fedavg", {}), ("fedsplitbert", {"critical_layer": 2}), ("local_majority", {}))
    }
    assert {record.examples("test") for record in records.values()} == {120}
    one = [scores["test"] for scores in records["fedavg"].rounds[-1].client_scores]
    assert one[0] == one[1] == one[2]
    own = [scores["test"]["accuracy"] for scores in records["fedsplitbert"].rounds[-1].client_scores]
    assert len(set(own)) > 1
    share = records["fedavg"].score("test/accuracy")
    assert share is not None
    # one test set of 120, however many clients are scored on it
    assert records["fedavg"].sampling_errors["test"]["accuracy"] == pytest.approx(math.sqrt(share * (1 - share) / 120))


def test_validation_parts_are_each_clients_own_in_errors_and_counts(tmp_path: Path) -> None:
    cell = replace(CELL, holdout="validation")
    record = run_cell(cell, RunOptions(results_dir=tmp_path), lambda _: None)
    sizes = [client["test"] for client in record.clients]
    shares = [scores["test"]["accuracy"] for scores in record.rounds[-1].client_scores]
    assert len(set(sizes)) > 1
    errors = [math.sqrt(share * (1 - share) / size) for share, size in zip(shares, sizes, strict=True) if share]
    assert len(errors) == cell.clients
    # sets of their own: the mean's error is less than each one's
    assert record.sampling_errors["test"]["accuracy"] == pytest.approx(math.hypot(*errors) / cell.clients)
    assert record.examples("test") == sum(sizes)
