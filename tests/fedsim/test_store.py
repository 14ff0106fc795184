"""What stays with each client, in memory and on disk."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim.errors import CheckpointError
from fedsim.store import ClientStore, read_tensors, write_tensors


@pytest.fixture(params=[True, False], ids=["memory", "disk"])
def store(request, tmp_path):
    return ClientStore(tmp_path, in_memory=request.param)


def test_what_is_kept_is_a_copy(store):
    tensor = torch.tensor([1.0, 2.0])
    store.put(1, 1, {"w": tensor})
    tensor.zero_()
    assert store.get(1)["w"].tolist() == [1.0, 2.0]


@settings(deadline=None, max_examples=25)
@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(-100, 100), st.booleans()), max_size=8),
    in_memory=st.booleans(),
)
def test_the_latest_tensors_of_each_client_survive_a_restart(tmp_path_factory, steps, in_memory):
    folder = tmp_path_factory.mktemp("store")
    store, latest = ClientStore(folder, in_memory), {}
    for number, (client, value, restart) in enumerate(steps, start=1):
        store.put(client, number, {"w": torch.tensor([value])})
        latest[client] = value
        if restart:
            files = store.flush(number)
            store = ClientStore(folder, in_memory)
            store.restore(files)
        assert {client: store.get(client)["w"].item() for client in store} == latest


def test_on_disk_an_earlier_version_stays_until_the_checkpoint_lets_go(tmp_path):
    store = ClientStore(tmp_path, in_memory=False)
    store.put(1, 1, {"w": torch.tensor([1.0])})
    committed = store.flush(1)
    store.put(1, 2, {"w": torch.tensor([2.0])})
    assert store.get(1)["w"].item() == 2.0
    again = ClientStore(tmp_path, in_memory=False)
    again.restore(committed)
    assert again.get(1)["w"].item() == 1.0


def test_files_are_checked_when_read(tmp_path):
    path = tmp_path / "w.safetensors"
    digest = write_tensors(path, {"w": torch.arange(3.0)})
    assert read_tensors(path, digest)["w"].tolist() == [0.0, 1.0, 2.0]
    for damage in (path.read_bytes()[:-1], path.read_bytes() + b"\0", b""):
        path.write_bytes(damage)
        with pytest.raises(CheckpointError, match=str(tmp_path)):
            read_tensors(path, digest)
    path.unlink()
    with pytest.raises(CheckpointError, match=str(tmp_path)):
        read_tensors(path, digest)
