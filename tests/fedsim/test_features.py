"""Features: what the encoder computes, once for each example, whole or absent, and never in memory whole."""

import json
import multiprocessing
import os
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from fedsim import feature_cache
from fedsim.data import Subset
from fedsim.errors import FederationError
from fedsim.feature_cache import HEADER_BYTES, FeatureCache
from fedsim.features import FeatureExamples, FeatureStore, Layout, Rows
from fedsim.leases import Lease
from fedsim.models.heads import HEADS

WIDTH = 16
ROUNDING = 1e-5  # of hidden states and logits in fp32, which are about 1
OF_TEXTS = [name for name, kind in HEADS.items() if not kind.answers_tokens]
KINDS = ("ordinary", "average", "psum")  # [CLS] of one state, all tokens of one, all tokens of four


def everything(examples):
    return Subset(examples, np.arange(len(examples)))


def computed(cache, deep, head="average", width=None, precision="fp32", examples=None):
    return cache.subset(deep.load(head=head, precision=precision), everything(examples or deep.examples), 64, width)


def file_bytes(deep, value_bytes=4):
    """Bytes of a file of all tokens' last hidden states: header, values, a checksum an example."""
    return HEADER_BYTES + len(deep.examples.tokens) * deep.hidden * value_bytes + len(deep.examples) * 4


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---- what they are ---------------------------------------------------------------------------------------------


def hidden_states(model, batch):
    """What the encoder makes of a batch, with zeros in place of padding."""
    model.network.eval()
    with torch.inference_mode():
        return model.features(batch) * (batch["attention_mask"][None, :, :, None] if model.network.head.tokens else 1)


@pytest.mark.parametrize("width", [None, WIDTH])
@pytest.mark.parametrize("head", KINDS)
def test_features_are_the_hidden_states_to_the_bit_in_the_same_batches(deep, head, width):
    """As the cache makes them: the shortest first, of one length or padded to one width, so many at a time."""
    size = 7
    model = deep.load(head=head)
    subset = FeatureCache().subset(model, everything(deep.examples), size, width)
    order = np.argsort(deep.examples.lengths, kind="stable")
    lengths = deep.examples.lengths[order]
    for length in [None] if width else np.unique(lengths):
        group = order[lengths == length] if length else order
        for start in range(0, len(group), size):
            indices = group[start : start + size]
            batch = deep.examples.collate(indices, width)
            found = subset.examples.collate(indices, width)
            assert torch.equal(found["features"], hidden_states(model, batch))
            assert torch.equal(found["labels"], batch["labels"])
            if model.network.head.tokens:
                assert torch.equal(found["attention_mask"], batch["attention_mask"])


@pytest.mark.parametrize("width", [None, WIDTH])
@pytest.mark.parametrize("head", KINDS)
def test_features_are_the_hidden_states_to_rounding_in_any_batch(deep, head, width):
    """Alone, or beside others of any length."""
    model = deep.load(head=head)
    subset = computed(FeatureCache(), deep, head, width)
    rng = np.random.default_rng(0)
    for size in (1, 3, 16, len(subset)):
        indices = rng.permutation(len(subset))[:size]
        expected = hidden_states(model, deep.examples.collate(indices, width))
        found = subset.examples.collate(indices, width)["features"]
        torch.testing.assert_close(found, expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("head", KINDS)
def test_an_example_is_read_as_the_same_bits_in_every_batch(deep, head, precision):
    subset = computed(FeatureCache(), deep, head, precision=precision)
    whole = subset.examples.collate(subset.indices)["features"]
    for indices in ([4], [17, 4], np.arange(len(subset))[::-1]):
        batch = subset.examples.collate(np.array(indices))
        attended = batch["attention_mask"].bool()
        for place, index in enumerate(indices):
            found = batch["features"][:, place, attended[place]]
            assert torch.equal(found, whole[:, index, : found.shape[1]])


def test_features_computed_again_are_the_same_file(deep, tmp_path):
    contents = []
    for name in ("one", "two"):
        computed(FeatureCache(tmp_path / name), deep, "psum")
        (file,) = (tmp_path / name).glob("*.features")
        contents.append((file.name, file.read_bytes()))
    assert contents[0] == contents[1]


def test_batches_lie_aligned_in_memory(deep):
    """Where they do not, a matrix product has other last bits on some CPUs; a file's rows lie anywhere."""
    subset = computed(FeatureCache(), deep, "psum")
    for size in range(1, 8):
        assert subset.examples.collate(np.arange(size))["features"].data_ptr() % 64 == 0


@pytest.mark.parametrize("head", OF_TEXTS)
def test_a_model_answers_the_same_to_features_and_to_tokens(deep, head):
    model = deep.load(head=head)
    subset = everything(deep.examples)
    expected = model.predict(subset, 8, WIDTH)
    for width in (WIDTH, None):
        found = model.predict(FeatureCache().subset(model, subset, 64, width), 8, width)
        np.testing.assert_allclose(found, expected, atol=ROUNDING)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_values_are_kept_in_the_precision_of_the_arithmetic(deep, precision, tmp_path):
    subset = computed(FeatureCache(tmp_path), deep, precision=precision)
    assert subset.examples.rows.layout.dtype == {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
    (file,) = tmp_path.glob("*.features")
    assert file.stat().st_size == file_bytes(deep, 2 if precision == "bf16" else 4)
    assert json.loads(file.read_bytes()[:HEADER_BYTES])["rows"] == len(deep.examples.tokens)


def test_lengths_are_the_texts_so_that_batches_are_the_same(deep):
    for head in KINDS:
        subset = computed(FeatureCache(), deep, head)
        np.testing.assert_array_equal(subset.examples.lengths, deep.examples.lengths)
        np.testing.assert_array_equal(subset.labels, deep.examples.labels)


# ---- bounded ---------------------------------------------------------------------------------------------------


def test_the_least_recently_used_file_goes_first(deep, tmp_path):
    def ask(encoder):
        computed(FeatureCache(tmp_path, encoder, limit), deep)
        return {json.loads((tmp_path / name).read_bytes()[:HEADER_BYTES])["encoder"] for name in files(tmp_path)}

    size = file_bytes(deep)
    limit = 2 * size
    assert ask("a") == {"a"}
    assert ask("b") == {"a", "b"}
    assert ask("a") == {"a", "b"}
    assert ask("c") == {"a", "c"}
    assert sum(path.stat().st_size for path in tmp_path.glob("*.features")) <= limit


def test_a_file_that_goes_stays_readable_for_who_has_it(deep, tmp_path):
    size = file_bytes(deep)
    subset = computed(FeatureCache(tmp_path, "a", size), deep)
    before = subset.examples.collate(subset.indices)["features"]
    computed(FeatureCache(tmp_path, "b", size), deep)
    assert len(files(tmp_path)) == 1
    assert torch.equal(subset.examples.collate(subset.indices)["features"], before)


def test_a_set_larger_than_the_limit_is_refused(deep, tmp_path):
    with pytest.raises(
        FederationError, match=r"features of 45 examples take .* GB, .* at most 0.00 GB: .*cached=false"
    ):
        computed(FeatureCache(tmp_path, "a", 4096), deep)
    assert not files(tmp_path)


def test_what_another_process_writes_is_neither_removed_nor_ignored(deep, tmp_path, monkeypatch):
    size = file_bytes(deep)
    written = tmp_path / "other.partial"
    written.write_bytes(bytes(size))
    lease = Lease(tmp_path / "other.lock")
    lease.take()
    waits = []

    def finish(seconds):
        assert written.exists()
        waits.append(seconds)
        written.unlink()
        lease.release()

    monkeypatch.setattr(feature_cache.time, "sleep", finish)
    computed(FeatureCache(tmp_path, "a", size), deep)
    assert waits == [feature_cache.POLL_SECONDS]


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _grown(path: Path, rows: int, queue) -> None:
    """How far resident memory grows while a file is checked and every example of it read once."""
    offsets = np.arange(0, rows + 1, 64)
    lengths = np.diff(offsets)
    layout = Layout(rows, 4, 256, torch.float32, blocks=len(lengths))
    before = peak = _resident_bytes()
    with path.open("rb") as file:
        assert layout.damaged_block(file, lengths) is None
        examples = FeatureExamples(Rows(file, layout), True, offsets, lengths, np.zeros(len(lengths)))
    peak = max(peak, _resident_bytes())
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
        file.seek(0, os.SEEK_END)
        file.write(zlib.crc32(bytes(64 * 4 * 256 * 4)).to_bytes(4, "little") * (rows // 64))
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
