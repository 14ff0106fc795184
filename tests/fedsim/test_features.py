"""Features: equal to what the encoder computes, once for each example, whole or absent, and never in memory whole."""

import json
import multiprocessing
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock

from fedsim import feature_cache
from fedsim.data import Examples, Part
from fedsim.errors import FederationError
from fedsim.feature_cache import HEADER_BYTES, FeatureCache
from fedsim.features import FeatureExamples, FeatureStore, Layout, Rows
from fedsim.models.heads import HEADS

WIDTH = 16
OF_TEXTS = [name for name, kind in HEADS.items() if not kind.answers_tokens]
KINDS = ("ordinary", "average", "psum")  # [CLS] of one state, all tokens of one, all tokens of four


def everything(examples):
    return Part(examples, np.arange(len(examples)))


def computed(cache, deep, head="average", width=None, precision="fp32", examples=None):
    return cache.part(deep.load(head=head, precision=precision), everything(examples or deep.examples), 64, width)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


# ---- what they are ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", KINDS)
def test_features_are_the_hidden_states_to_the_bit_at_one_width(deep, head):
    """Whatever the batch: side by side with others or alone."""
    model = deep.load(head=head)
    model.model.eval()
    part = computed(FeatureCache(), deep, head, WIDTH)
    rng = np.random.default_rng(0)
    for size in (1, 3, 16, len(part)):
        indices = rng.permutation(len(part))[:size]
        batch = deep.examples.collate(indices, WIDTH)
        with torch.inference_mode():
            expected = model.features(batch) * (
                batch["attention_mask"][None, :, :, None] if model.model.head.tokens else 1
            )
        found = part.examples.collate(indices, WIDTH)
        assert torch.equal(found["features"], expected)
        assert torch.equal(found["labels"], batch["labels"])
        if model.model.head.tokens:
            assert torch.equal(found["attention_mask"], batch["attention_mask"])


@pytest.mark.parametrize("head", KINDS)
def test_features_are_the_hidden_states_to_rounding_at_any_width(deep, head):
    model = deep.load(head=head)
    model.model.eval()
    part = computed(FeatureCache(), deep, head)
    indices = np.arange(len(part))
    batch = deep.examples.collate(indices)
    with torch.inference_mode():
        expected = model.features(batch) * (batch["attention_mask"][None, :, :, None] if model.model.head.tokens else 1)
    torch.testing.assert_close(part.examples.collate(indices)["features"], expected, rtol=0, atol=1e-6)


def test_an_examples_features_do_not_depend_on_its_neighbours(deep):
    """Texts of one length go through the encoder together, without padding."""
    model = deep.load(head="average")
    whole = computed(FeatureCache(), deep).examples
    for index in range(0, len(deep.examples), 7):
        start, end = deep.examples.offsets[index : index + 2]
        alone = Examples(
            deep.examples.tokens[start:end], deep.examples.types[start:end], np.array([0, end - start]), np.zeros(1), 0
        )
        found = FeatureCache().part(model, everything(alone), 64, None).examples
        place = np.array([index])
        assert torch.equal(found.collate(np.array([0]))["features"], whole.collate(place)["features"])


@pytest.mark.parametrize("head", OF_TEXTS)
def test_a_model_answers_the_same_to_features_and_to_tokens(deep, head):
    model = deep.load(head=head)
    part = everything(deep.examples)
    expected = model.predict(part, 8, WIDTH)
    np.testing.assert_array_equal(model.predict(FeatureCache().part(model, part, 64, WIDTH), 8, WIDTH), expected)
    found = model.predict(FeatureCache().part(model, part, 64, None), 8, None)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_values_are_kept_in_the_precision_of_the_arithmetic(deep, precision, tmp_path):
    part = computed(FeatureCache(tmp_path), deep, precision=precision)
    assert part.examples.rows.layout.dtype == {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
    (file,) = tmp_path.glob("*.features")
    values = len(deep.examples.tokens) * deep.hidden
    assert file.stat().st_size == HEADER_BYTES + values * (2 if precision == "bf16" else 4)
    assert json.loads(file.read_bytes()[:HEADER_BYTES])["rows"] == len(deep.examples.tokens)


def test_lengths_are_the_texts_so_that_batches_are_the_same(deep):
    for head in KINDS:
        part = computed(FeatureCache(), deep, head)
        np.testing.assert_array_equal(part.examples.lengths, deep.examples.lengths)
        np.testing.assert_array_equal(part.labels, deep.examples.labels)


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
    batches = [part.examples.collate(np.arange(9))["features"] for part in found.values()]
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


@pytest.mark.parametrize("damage", ["cut", "longer", "other"])
def test_a_damaged_file_is_computed_again(deep, tmp_path, damage):
    good = computed(FeatureCache(tmp_path), deep)
    expected = good.examples.collate(good.indices)["features"]
    (file,) = tmp_path.glob("*.features")
    content = file.read_bytes()
    file.write_bytes({"cut": content[:-1], "longer": content + b"x", "other": b"x" + content[1:]}[damage])
    found = computed(FeatureCache(tmp_path), deep)
    assert torch.equal(found.examples.collate(found.indices)["features"], expected)
    assert file.read_bytes() == content


# ---- bounded ---------------------------------------------------------------------------------------------------


def test_the_least_recently_used_file_goes_first(deep, tmp_path):
    def ask(encoder):
        computed(FeatureCache(tmp_path, encoder, limit), deep)
        return {json.loads((tmp_path / name).read_bytes()[:HEADER_BYTES])["encoder"] for name in files(tmp_path)}

    size = HEADER_BYTES + len(deep.examples.tokens) * deep.hidden * 4
    limit = 2 * size
    assert ask("a") == {"a"}
    assert ask("b") == {"a", "b"}
    assert ask("a") == {"a", "b"}
    assert ask("c") == {"a", "c"}
    assert sum(path.stat().st_size for path in tmp_path.glob("*.features")) <= limit


def test_a_file_that_goes_stays_readable_for_who_has_it(deep, tmp_path):
    size = HEADER_BYTES + len(deep.examples.tokens) * deep.hidden * 4
    part = computed(FeatureCache(tmp_path, "a", size), deep)
    before = part.examples.collate(part.indices)["features"]
    computed(FeatureCache(tmp_path, "b", size), deep)
    assert len(files(tmp_path)) == 1
    assert torch.equal(part.examples.collate(part.indices)["features"], before)


def test_a_set_larger_than_the_limit_is_refused(deep, tmp_path):
    with pytest.raises(
        FederationError, match=r"features of 45 examples take .* GB, .* at most 0.00 GB: .*cached=false"
    ):
        computed(FeatureCache(tmp_path, "a", 4096), deep)
    assert not files(tmp_path)


def test_what_another_process_writes_is_neither_removed_nor_ignored(deep, tmp_path, monkeypatch):
    size = HEADER_BYTES + len(deep.examples.tokens) * deep.hidden * 4
    written = tmp_path / "other.partial"
    written.write_bytes(bytes(size))
    lock = FileLock(tmp_path / "other.lock")
    lock.acquire()
    waits = []

    def finish(seconds):
        assert written.exists()
        waits.append(seconds)
        written.unlink()
        lock.release()

    monkeypatch.setattr(feature_cache.time, "sleep", finish)
    computed(FeatureCache(tmp_path, "a", size), deep)
    assert waits == [feature_cache.POLL_SECONDS]


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _grown(path: Path, rows: int, queue) -> None:
    """How far resident memory grows while every example of a file is read once."""
    layout = Layout(rows, 4, 256, torch.float32)
    offsets = np.arange(0, rows + 1, 64)
    lengths = np.diff(offsets)
    with path.open("rb") as file:
        examples = FeatureExamples(Rows(file, layout), True, offsets, lengths, np.zeros(len(lengths)))
    before = peak = _resident_bytes()
    for start in range(0, len(lengths), 16):
        assert not examples.collate(np.arange(start, min(start + 16, len(lengths))))["features"].any()
        peak = max(peak, _resident_bytes())
    queue.put(peak - before)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_stays_flat_however_large_the_file(tmp_path):
    """Half a GiB (of holes) is read, and resident memory grows by less than a quarter of that."""
    rows = 2**17
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(rows * 4 * 256 * 4)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_grown, args=(path, rows, queue))
    process.start()
    grown = queue.get(timeout=120)
    process.join()
    assert grown < 2**27


def test_a_batch_reads_its_own_rows_alone(deep):
    examples = computed(FeatureCache(), deep).examples
    asked = []

    class Watched(np.ndarray):
        def __getitem__(self, key):
            asked.append(key)
            return np.asarray(self)[key]

    examples.rows._values = examples.rows._values.view(Watched)
    examples.collate(np.array([3, 11]))
    assert [(rows.start, rows.stop) for rows in asked] == [
        tuple(deep.examples.offsets[index : index + 2]) for index in (3, 11)
    ]


# ---- what a server keeps ---------------------------------------------------------------------------------------


def test_a_store_gives_back_what_it_was_given_in_each_form(tmp_path):
    rng = np.random.default_rng(0)
    states = torch.from_numpy(rng.standard_normal((2, 3, 4, 5), dtype=np.float32))
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]]).bool()
    labels = torch.tensor([2, 0, 1])
    store = FeatureStore(tmp_path, 2, 5, tokens=True)
    store.add(states, mask, labels)
    store.add(states[:, mask], mask.sum(1, dtype=torch.int32), labels)
    found = store.examples()
    batch = found.collate(np.arange(6))
    np.testing.assert_array_equal(found.lengths, [2, 4, 1, 2, 4, 1])
    assert batch["labels"].tolist() == [2, 0, 1, 2, 0, 1]
    assert torch.equal(batch["features"], torch.cat([states * mask[None, :, :, None]] * 2, dim=1))
    assert torch.equal(batch["attention_mask"].bool(), torch.cat([mask, mask]))
    assert not files(tmp_path)  # it has no name, and a kill leaves nothing

    first = FeatureStore(tmp_path, 2, 5, tokens=False)
    first.add(states[:, :, :1], None, labels)
    assert torch.equal(first.examples().collate(np.array([2, 0]), width=9)["features"], states[:, [2, 0], :1])
