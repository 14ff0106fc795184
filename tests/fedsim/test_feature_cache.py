"""The cache of features: computed once, whole or absent, and of the encoder as it is."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fedsim import feature_cache
from fedsim.data import Subset
from fedsim.feature_cache import HEADER_BYTES, FeatureCache
from fedsim.training import LocalTraining

WIDTH = 16


def everything(examples):
    return Subset(examples, np.arange(len(examples)))


def computed(cache, deep, head="average", width=None, precision="fp32", examples=None):
    return cache.subset(deep.load(head=head, precision=precision), everything(examples or deep.examples), 64, width)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---- once ------------------------------------------------------------------------------------------------------


def test_a_file_is_computed_once_and_for_each_thing_that_decides_it(deep, tmp_path, monkeypatch):
    asked = []
    original = feature_cache._computed
    monkeypatch.setattr(feature_cache, "_computed", lambda *words: asked.append(words) or original(*words))

    def ask(cache=None, **changes):
        computed(cache or FeatureCache(tmp_path, "encoder"), deep, **changes)
        return len(asked)

    assert ask() == 1
    assert ask() == 1  # another cell: found in the folder
    others = replace(deep.examples, tokens=deep.examples.tokens[::-1].copy())
    relabelled = replace(deep.examples, labels=1 - deep.examples.labels)
    changes = [
        {"head": "ordinary"}, {"head": "psum"}, {"width": WIDTH}, {"precision": "bf16"}, {"examples": others},
        {"cache": FeatureCache(tmp_path, "another encoder")},
    ]  # fmt: skip
    for expected, change in enumerate(changes, start=2):
        assert ask(**change) == expected
    assert ask(head="hsum") == ask(head="psum-copied") == ask(examples=relabelled) == len(changes) + 1
    assert len(files(tmp_path)) == len(changes) + 1


def test_two_that_ask_at_once_compute_once(deep, tmp_path, monkeypatch):
    asked = []
    original = feature_cache._computed
    monkeypatch.setattr(feature_cache, "_computed", lambda *words: asked.append(words) or original(*words))
    found = {}

    def ask(number):
        found[number] = computed(FeatureCache(tmp_path), deep)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == 1
    batches = [subset.examples.collate(np.arange(9))["features"] for subset in found.values()]
    assert len(batches) == 4
    assert all(torch.equal(batch, batches[0]) for batch in batches)


# ---- whole or absent -------------------------------------------------------------------------------------------


def test_a_kill_amid_the_computation_leaves_nothing_that_counts(deep, tmp_path, monkeypatch):
    class KilledError(BaseException):
        pass

    def broken(*words):
        for number, batch in enumerate(original(*words)):
            if number == 2:
                raise KilledError
            yield batch

    original = feature_cache._computed
    with monkeypatch.context() as patch:
        patch.setattr(feature_cache, "_computed", broken)
        with pytest.raises(KilledError):
            computed(FeatureCache(tmp_path), deep)
    assert [Path(name).suffix for name in files(tmp_path)] == [".partial"]
    found = computed(FeatureCache(tmp_path), deep)
    assert [Path(name).suffix for name in files(tmp_path)] == [".features"]
    fresh = computed(FeatureCache(), deep)
    assert torch.equal(
        found.examples.collate(found.indices)["features"], fresh.examples.collate(fresh.indices)["features"]
    )


def flipped(content, place):
    """The content with one bit changed."""
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


DAMAGES = {
    "cut": lambda content: content[:-1],
    "longer": lambda content: content + b"x",
    "a header of another": lambda content: b"x" + content[1:],
    "a bit of the first row": lambda content: flipped(content, HEADER_BYTES),
    "a bit amid the rows": lambda content: flipped(content, len(content) // 2),
    "a bit of a checksum": lambda content: flipped(content, len(content) - 1),
    "a page lost": lambda content: content[: 2 * 4096] + bytes(4096) + content[3 * 4096 :],
    "all pages lost": lambda content: content[:HEADER_BYTES] + bytes(len(content) - HEADER_BYTES),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_computed_again_and_that_is_said_once(deep, tmp_path, damage, caplog):
    good = computed(FeatureCache(tmp_path), deep)
    expected = good.examples.collate(good.indices)["features"]
    (file,) = tmp_path.glob("*.features")
    content = file.read_bytes()
    file.unlink()  # the rows above stay readable
    file.write_bytes(DAMAGES[damage](content))
    for _ in range(2):
        found = computed(FeatureCache(tmp_path), deep)
        assert torch.equal(found.examples.collate(found.indices)["features"], expected)
    assert file.read_bytes() == content
    (said,) = caplog.messages
    assert said.startswith(f"features in {file} are damaged (")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_file_is_on_the_disk_before_it_has_its_name_and_the_name_before_it_counts(deep, tmp_path, monkeypatch):
    done = []
    real, rename = os.fsync, Path.replace

    def sync(descriptor):
        done.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        real(descriptor)

    def replace(path, target):
        done.append(("rename", path.name))
        return rename(path, target)

    monkeypatch.setattr(feature_cache.os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", replace)
    computed(FeatureCache(tmp_path), deep)
    (name,) = (Path(name).stem for name in files(tmp_path))
    assert done == [("sync", f"{name}.partial"), ("rename", f"{name}.partial"), ("sync", tmp_path.name)]


# ---- of the encoder as it is -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["written", "trained"])
def test_an_encoder_that_was_trained_since_has_other_features(deep, tmp_path, how):
    """In one process, and under the name of the same backbone."""
    cache = FeatureCache(tmp_path, "one encoder")
    model = deep.load(head="average")
    subset = everything(deep.examples)
    before = cache.subset(model, subset, 64, WIDTH)
    assert cache.subset(model, subset, 64, WIDTH).examples is before.examples
    original = model.snapshot(model.parameters)
    if how == "written":
        name = min(model.groups.up_to(1))
        model.write({name: model.parameters[name] + 0.1})
    else:
        layer = sorted(model.groups.up_to(1))
        LocalTraining(seed=0, learning_rate=1e-3, batch_size=16).run(model, subset, layer, 1, 0, {}, 0.0)
    after = cache.subset(model, subset, 64, WIDTH)
    fresh = FeatureCache().subset(model, subset, 64, WIDTH)
    indices = subset.indices
    found, expected, old = (one.examples.collate(indices)["features"] for one in (after, fresh, before))
    assert torch.equal(found, expected)
    assert not torch.equal(found, old)
    model.write(original)
    assert torch.equal(cache.subset(model, subset, 64, WIDTH).examples.collate(indices)["features"], old)
    assert len(files(tmp_path)) == 2


def test_every_tensor_and_every_bit_of_the_encoder_counts(deep):
    encoder = deep.load().network.encoder
    digests = {feature_cache.digest_of(encoder)}
    tensors = [tensor.detach() for tensor in encoder.parameters()]
    for tensor in tensors:
        bits = tensor.view(-1).view(torch.int32)
        for place in (0, len(bits) // 2, len(bits) - 1):
            bits[place] ^= 1
            digests.add(feature_cache.digest_of(encoder))
    assert len(digests) == 1 + 3 * len(tensors)


def test_another_batch_size_or_width_is_another_question(deep, tmp_path):
    cache = FeatureCache(tmp_path)
    model = deep.load(head="average")
    for size, width in ((64, None), (7, None), (64, WIDTH)):
        cache.subset(model, everything(deep.examples), size, width)
    assert len(files(tmp_path)) == 3
