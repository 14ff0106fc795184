"""What stays with each client, in memory and on disk."""

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim.errors import CheckpointError
from fedsim.store import ClientStore, read_tensors, write_tensors


@pytest.fixture(params=[True, False], ids=["memory", "disk"])
def store(request, tmp_path):
    return ClientStore(tmp_path, in_memory=request.param)


def test_a_client_that_never_took_part_has_nothing(store):
    assert store.get(5) == {}
    assert list(store) == []


def test_what_is_kept_is_a_copy(store):
    tensor = torch.tensor([1.0, 2.0])
    store.put(1, 1, {"w": tensor})
    tensor.zero_()
    assert store.get(1)["w"].tolist() == [1.0, 2.0]


def test_a_parameter_is_kept_without_its_graph(store):
    store.put(1, 1, {"w": torch.nn.Parameter(torch.ones(2))})
    assert not store.get(1)["w"].requires_grad


def test_clients_are_listed_in_order_and_apart(store):
    for client in (10, 2, 0):
        store.put(client, 1, {"w": torch.tensor([float(client)])})
    assert list(store) == [0, 2, 10]
    assert [store.get(client)["w"].item() for client in store] == [0.0, 2.0, 10.0]


def test_nothing_to_keep_leaves_no_trace(store, tmp_path):
    store.put(1, 1, {})
    assert list(store) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64])
def test_types_and_shapes_are_kept(store, dtype):
    tensors = {
        "a": torch.arange(6).reshape(2, 3).to(dtype),
        "transposed": torch.ones(2, 3).to(dtype).T,
        "b": torch.ones(()).to(dtype),
    }
    store.put(1, 1, tensors)
    found = store.get(1)
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == dtype
        assert torch.equal(found[name], tensor)


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


def test_on_disk_nothing_is_held_in_memory(tmp_path):
    store = ClientStore(tmp_path, in_memory=False)
    store.put(1, 1, {"w": torch.tensor([1.0])})
    store.get(1)["w"].fill_(9.0)
    assert store.get(1)["w"].item() == 1.0


def test_in_memory_only_what_changed_is_written(tmp_path):
    store = ClientStore(tmp_path)
    store.put(1, 1, {"w": torch.tensor([1.0])})
    store.put(2, 1, {"w": torch.tensor([2.0])})
    first = store.flush(1)
    store.put(2, 2, {"w": torch.tensor([3.0])})
    second = store.flush(2)
    assert second["1"] == first["1"]
    assert second["2"] != first["2"]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_store_on_disk_needs_a_folder():
    with pytest.raises(ValueError, match="needs a folder"):
        ClientStore(in_memory=False)


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


def test_a_file_is_what_the_safetensors_library_writes_and_reads(tmp_path):
    tensors = {
        "wide": torch.arange(3, dtype=torch.float64),
        "flag": torch.tensor([True, False, True]),
        "byte": torch.arange(5, dtype=torch.uint8),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "turned": torch.arange(6.0).reshape(2, 3).T,
        "empty": torch.empty(0, 4),
        "näme": torch.tensor(7),
    }
    path = tmp_path / "all.safetensors"
    write_tensors(path, tensors)
    found = safetensors.torch.load_file(path)
    assert found.keys() == tensors.keys()
    assert all(
        torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype for name, tensor in tensors.items()
    )
    write_tensors(path, {})
    assert safetensors.torch.load_file(path) == {}
