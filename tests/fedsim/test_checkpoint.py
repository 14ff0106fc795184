"""Resuming is bit-identical, a kill at any moment costs at most one round, and damage is detected."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from fedsim.checkpoint import Checkpoint
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.errors import CheckpointError
from fedsim.store import ClientStore
from tests.fedsim.conftest import assert_same_run
from tests.kills import killed_before_step


@pytest.fixture(scope="module")
def counting() -> FederatedAlgorithm:
    """A method without a model: after round r every tensor holds r, and every client's loss was r."""

    def init(clients, channel, store):
        for client in clients:
            channel.setup(client.id, {"w": torch.zeros(3)})
        return FederationState(0, {}, {}, store)

    def round(state, cohort, channel):
        number = state.round + 1
        value = torch.full((3,), float(number))
        for client in cohort:
            channel.to_server(client.id, {"w": value})
            state.clients.put(client.id, number, {"own": value + client.id})
        metrics = RoundMetrics(tuple(float(number) for _ in cohort), float(number))
        return FederationState(number, {"w": value}, {"m": {"w": -value}}, state.clients), metrics

    def predict(state, client, subset):
        tensor = state.clients.get(client.id).get("own", torch.zeros(3))
        return np.tile(tensor.numpy()[:2], (len(subset), 1))

    return FederatedAlgorithm(init, round, predict)


def resume(small, counting, folder, rounds, in_memory=True, **engine):
    checkpoint = Checkpoint(folder, "a run")
    store = ClientStore(folder, in_memory)
    return small.run(counting, rounds=rounds, checkpoint=checkpoint, store=store, **engine)


@pytest.mark.parametrize("in_memory", [True, False])
def test_killed_at_any_operation_the_last_whole_round_is_there(small, counting, tmp_path, in_memory):
    def run(folder, rounds, **engine):
        return resume(small, counting, folder, rounds, in_memory, participation=0.67, **engine)

    whole = tmp_path / "whole"
    uninterrupted = small.run(counting, rounds=3, participation=0.67)
    with killed_before_step(10**9) as steps:
        run(whole, 3)
    assert {"fsync", "replace", "unlink"} == set(steps)
    # in each round two clients, the server, the answers and the manifest
    assert steps.count("fsync") == 3 * (2 + 1 + 1 + 1)

    for number in range(1, len(steps) + 1):
        folder, reported = tmp_path / str(number), []
        with killed_before_step(number):
            run(folder, 3, on_round=reported.append)
        # one that struck after the manifest's rename, while old files were removed, finds the round saved
        state = run(folder, 0).state
        assert state.round in (len(reported), len(reported) + 1)
        assert state.round == 0 or state.shared["w"].tolist() == [state.round] * 3
        assert_same_run(run(folder, 3), uninterrupted)
        if state.round < 3:  # else nothing was saved any more, and what is left over waits for remove()
            assert {path.name for path in folder.iterdir()} == {path.name for path in whole.iterdir()}
        Checkpoint(folder, "a run").remove()
        assert not folder.exists()


def test_killed_while_it_is_removed_a_checkpoint_is_whole_or_gone(small, counting, tmp_path):
    def saved(name):
        resume(small, counting, tmp_path / name, 2)
        return Checkpoint(tmp_path / name, "a run")

    whole = saved("whole")
    with killed_before_step(10**9) as steps:
        whole.remove()
    assert len(steps) >= 8  # server, three clients, answers of two rounds, manifest, folder
    for number in range(1, len(steps) + 1):
        checkpoint = saved(str(number))
        with killed_before_step(number):
            checkpoint.remove()
        assert resume(small, counting, checkpoint.folder, 0).state.round in (0, 2)
        checkpoint.remove()
        assert not checkpoint.folder.exists()


def test_the_guard_stands_before_every_write(small, counting, tmp_path):
    def refuse():
        raise CheckpointError("not the holder")

    with pytest.raises(CheckpointError, match="not the holder"):
        small.run(counting, rounds=1, checkpoint=Checkpoint(tmp_path, "a", refuse))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def saved(small, counting, tmp_path) -> Path:
    """The folder of a checkpoint after two rounds."""
    resume(small, counting, tmp_path, 2)
    return tmp_path


def assert_refused(small, counting, folder, name="checkpoint"):
    """The error names the folder to remove, and the folder stays unchanged."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(CheckpointError, match=name) as caught:
        resume(small, counting, folder, 3)
    assert f"folder {folder} " in str(caught.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "name", ["server-round-2.safetensors", "client-1-round-2.safetensors", "answers-round-1.safetensors"]
)
def test_a_changed_byte_is_noticed_wherever_it_is(small, counting, saved, name):
    path = saved / name
    content = path.read_bytes()
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        assert_refused(small, counting, saved)
    path.write_bytes(content)
    assert resume(small, counting, saved, 3).state.round == 3


def test_another_runs_checkpoint_is_refused(small, counting, saved):
    with pytest.raises(CheckpointError, match="another run") as caught:
        small.run(counting, checkpoint=Checkpoint(saved, "another"), store=ClientStore(saved))
    assert f"folder {saved} " in str(caught.value)
    assert resume(small, counting, saved, 0).state.round == 2


def test_a_full_disk_is_an_error_of_the_users_and_costs_no_round(small, counting, saved, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(CheckpointError, match="No space left"):
            resume(small, counting, saved, 3)
    assert resume(small, counting, saved, 0).state.round == 2
    assert resume(small, counting, saved, 3).state.round == 3


@pytest.mark.parametrize(
    ("rounds", "best", "expected"),
    [(2, None, [1, 2]), (4, None, [2, 3, 4]), (4, 1, [1, 2, 3, 4]), (4, 4, [2, 3, 4]), (6, 3, [3, 4, 5, 6])],
)
def test_answers_of_the_last_three_rounds_and_the_best_are_kept(small, counting, tmp_path, rounds, best, expected):
    def is_best(results):
        return len(results) == best

    run = small.run(counting, rounds=rounds, is_best=is_best)
    assert (run.best, list(run.answers)) == (best, expected)
    for stop in (1, rounds):
        resumed = resume(small, counting, tmp_path, stop, is_best=is_best)
    assert (resumed.best, list(resumed.answers)) == (best, expected)
    for number, answers in resumed.answers.items():  # each of its own round: this method answers by the round's number
        assert answers["1/test"][0].tolist() == [number + 1] * 2
