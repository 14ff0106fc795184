"""Resuming is bit-identical, a kill at any moment costs one round at most, and damage is noticed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fedsim.checkpoint import Checkpoint
from fedsim.errors import CheckpointError
from fedsim.store import ClientStore

ADAM = {"name": "adam", "learning_rate": 1e-2}
CASES = {
    "fedavg, adam": ("fedavg", {"server": ADAM}, "fp32", True, 1.0),
    "fedsplitbert, fp16": ("fedsplitbert", {"critical_layer": 1}, "fp16", True, 1.0),
    "fedsplitbert, on disk, sampled": ("fedsplitbert", {"critical_layer": 2, "server": ADAM}, "fp32", False, 0.67),
}


@pytest.mark.parametrize("case", CASES)
def test_resumed_is_uninterrupted(small, assert_same_run, tmp_path, case):
    name, options, codec, in_memory, participation = CASES[case]

    def run(rounds, **engine):
        return small.run(small.algorithm(name, **options), codec, rounds=rounds, participation=participation, **engine)

    def kept():
        return {"checkpoint": Checkpoint(tmp_path, case), "store": ClientStore(tmp_path, in_memory)}

    uninterrupted = run(3)
    assert run(1, **kept()).state.round == 1
    resumed = run(3, **kept())
    assert_same_run(resumed, uninterrupted)
    assert_same_run(run(3, **kept()), uninterrupted)  # and there is nothing left to do


def test_a_checkpoint_alone_is_enough(small, assert_same_run, tmp_path):
    """What clients keep then lies beside it."""

    def run(rounds, **engine):
        return small.run(small.algorithm("fedsplitbert", critical_layer=1), rounds=rounds, **engine)

    run(1, checkpoint=Checkpoint(tmp_path, "a run"))
    assert_same_run(run(2, checkpoint=Checkpoint(tmp_path, "a run")), run(2))


# ---- kills -----------------------------------------------------------------------------------------------------


class KilledError(BaseException):
    """Like a signal: nothing may catch it and go on."""


class Disk:
    """Counts what is done to the disk, and kills just before, or amid, the chosen operation."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.kill_at: int | None = None

    def about_to(self, operation: str) -> bool:
        self.done.append(operation)
        return len(self.done) == self.kill_at

    def count(self, action: Callable[[], object]) -> int:
        """How many operations an action takes."""
        self.done = []
        action()
        return len(self.done)

    def kill(self, operation: int, action: Callable[[], object]) -> None:
        """Run an action up to its n-th operation, counted from 1."""
        self.done, self.kill_at = [], operation
        try:
            with pytest.raises(KilledError):
                action()
        finally:
            self.kill_at = None


@pytest.fixture
def disk(monkeypatch) -> Disk:
    disk = Disk()
    open_path = Path.open

    def killing_open(path, mode="r", *arguments, **options):
        if "r" not in mode and disk.about_to("open"):
            raise KilledError
        return open_path(path, mode, *arguments, **options)

    def killing_fsync(descriptor):  # and does not wait for the disk
        if disk.about_to("sync"):  # half of the file has got there
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            raise KilledError

    def killing(operation):
        def method(path, *arguments, **options):
            if disk.about_to(operation.__name__):
                raise KilledError
            return operation(path, *arguments, **options)

        return method

    monkeypatch.setattr(Path, "open", killing_open)
    monkeypatch.setattr(os, "fsync", killing_fsync)
    for operation in (Path.replace, Path.unlink, Path.rmdir):
        monkeypatch.setattr(Path, operation.__name__, killing(operation))
    return disk


def resume(small, counting, folder, rounds, in_memory=True, **engine):
    checkpoint = Checkpoint(folder, "a run")
    store = ClientStore(folder, in_memory)
    return small.run(counting, rounds=rounds, checkpoint=checkpoint, store=store, **engine)


@pytest.mark.parametrize("in_memory", [True, False])
def test_killed_at_any_operation_the_last_whole_round_is_there(
    small, counting, assert_same_run, disk, tmp_path, in_memory
):
    def run(folder, rounds, **engine):
        return resume(small, counting, folder, rounds, in_memory, participation=0.67, **engine)

    whole = tmp_path / "whole"
    uninterrupted = small.run(counting, rounds=3, participation=0.67)
    operations = disk.count(lambda: run(whole, 3))
    assert {"open", "sync", "replace", "unlink"} == set(disk.done)
    # in each round two clients, the server, the answers and the manifest
    assert disk.done.count("sync") == 3 * (2 + 1 + 1 + 1)

    for operation in range(1, operations + 1):
        folder, reported = tmp_path / str(operation), []
        disk.kill(operation, lambda: run(folder, 3, on_round=reported.append))  # noqa: B023 - called at once
        # one that struck after the manifest's rename, while old files were removed, finds the round saved
        found = run(folder, 0).state
        assert found.round in (len(reported), len(reported) + 1)
        assert found.round == 0 or found.shared["w"].tolist() == [found.round] * 3
        assert_same_run(run(folder, 3), uninterrupted)
        if found.round < 3:  # else nothing was saved any more, and what is left over waits for remove()
            assert {path.name for path in folder.iterdir()} == {path.name for path in whole.iterdir()}
        Checkpoint(folder, "a run").remove()
        assert not folder.exists()


def test_killed_while_it_is_removed_a_checkpoint_is_whole_or_gone(small, counting, disk, tmp_path):
    def saved(name):
        resume(small, counting, tmp_path / name, 2)
        return Checkpoint(tmp_path / name, "a run")

    operations = disk.count(saved("whole").remove)
    assert operations >= 8  # server, three clients, answers of two rounds, manifest, folder
    for operation in range(1, operations + 1):
        checkpoint = saved(str(operation))
        disk.kill(operation, checkpoint.remove)
        assert resume(small, counting, checkpoint.folder, 0).state.round in (0, 2)
        checkpoint.remove()
        assert not checkpoint.folder.exists()


def test_a_round_leaves_no_files_of_earlier_ones(small, counting, tmp_path):
    """But the answers of the two before it."""
    resume(small, counting, tmp_path, 5)
    assert {path.name for path in tmp_path.iterdir()} == {
        "state.json",
        "server-round-5.safetensors",
        *(f"client-{client}-round-5.safetensors" for client in range(3)),
        *(f"answers-round-{number}.safetensors" for number in (3, 4, 5)),
    }


def test_remove_leaves_nothing_and_starts_afresh(small, counting, tmp_path):
    folder = tmp_path / "checkpoint"
    resume(small, counting, folder, 2)
    for _ in range(2):  # and there may be nothing to remove
        Checkpoint(folder, "a run").remove()
        assert not folder.exists()
    assert resume(small, counting, folder, 0).state.round == 0


def test_the_guard_stands_before_every_write(small, counting, tmp_path):
    def refuse():
        raise CheckpointError("not the holder")

    with pytest.raises(CheckpointError, match="not the holder"):
        small.run(counting, rounds=1, checkpoint=Checkpoint(tmp_path, "a", refuse))
    assert list(tmp_path.iterdir()) == []


# ---- damage ----------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(small, counting, tmp_path) -> Path:
    """The folder of a checkpoint after two rounds."""
    resume(small, counting, tmp_path, 2)
    return tmp_path


def assert_refused(small, counting, folder, name="checkpoint"):
    """The error names the folder to remove, and nothing in it is touched."""
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
