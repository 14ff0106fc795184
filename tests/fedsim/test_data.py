"""Batches and blocks: every example or token once, padded as requested."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim.data import Examples, Subset, packed, training_batches

WIDTH = 40
LENGTHS = st.lists(st.integers(1, WIDTH), min_size=1, max_size=120)


def make_examples(lengths, padding_id=0):
    """Example i consists of tokens i + 1, is of type i % 2 and has the label i."""
    index = np.arange(len(lengths))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens = np.repeat(index + 1, lengths).astype(np.int32)
    types = np.repeat(index % 2, lengths).astype(np.int32)
    return Examples(tokens, types, offsets, index.astype(np.int64), padding_id)


def make_part(lengths, seed=0):
    """Some of the examples, in another order."""
    chosen = np.random.default_rng(seed).permutation(len(lengths))[: max(1, len(lengths) * 2 // 3)]
    return Subset(make_examples(lengths), chosen)


def assert_batch_is_true_to_its_examples(batch, examples):
    for row, label in enumerate(batch["labels"].tolist()):
        length = examples.lengths[label]
        assert batch["attention_mask"][row].tolist() == [1] * length + [0] * (batch["input_ids"].shape[1] - length)
        assert set(batch["input_ids"][row, :length].tolist()) == {label + 1}
        assert set(batch["input_ids"][row, length:].tolist()) <= {examples.padding_id}
        assert set(batch["token_type_ids"][row, :length].tolist()) == {label % 2}
        assert not batch["token_type_ids"][row, length:].any()


@settings(deadline=None, max_examples=60)
@given(LENGTHS, st.integers(1, 17), st.sampled_from([None, WIDTH]), st.integers(0, 2**32))
def test_an_epoch_holds_every_example_once(lengths, batch_size, width, seed):
    subset = make_part(lengths)
    batches = list(training_batches(subset, batch_size, width, np.random.default_rng(seed)))
    assert len(batches) == math.ceil(len(subset) / batch_size)
    sizes = sorted((len(batch["labels"]) for batch in batches), reverse=True)
    assert all(size == batch_size for size in sizes[:-1])
    seen = [label for batch in batches for label in batch["labels"].tolist()]
    assert sorted(seen) == sorted(subset.indices.tolist())
    for batch in batches:
        longest = subset.examples.lengths[batch["labels"].numpy()].max()
        assert {tuple(batch[name].shape) for name in ("input_ids", "attention_mask", "token_type_ids")} == {
            (len(batch["labels"]), width or longest)
        }
        assert_batch_is_true_to_its_examples(batch, subset.examples)


PADDING, OPENING = 7, 5
LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=12)


def blocks_of(lengths, length, opening):
    """Blocks of texts whose tokens are all different, from 100 on."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return packed(np.arange(100, 100 + offsets[-1], dtype=np.int32), offsets, length, PADDING, opening), offsets


def read(blocks, indices):
    """The blocks' tokens, without padding."""
    if not len(indices):
        return []
    batch = blocks.collate(indices)
    kept = batch["attention_mask"].numpy().astype(bool)
    return [row[mask].tolist() for row, mask in zip(batch["input_ids"].numpy(), kept, strict=True)]


@given(
    LENGTHS, st.integers(2, 8), st.sampled_from([None, OPENING]), st.integers(1, 4), st.randoms(use_true_random=False)
)
def test_each_owner_has_own_texts_once_and_full_blocks(lengths, length, opening, owners, random):
    whole, offsets = blocks_of(lengths, length, opening)
    order = list(range(len(lengths)))
    random.shuffle(order)
    parts = [np.array(order[owner::owners], dtype=np.int64) for owner in range(owners)]
    blocks, owned = whole.shared_out(parts)
    room = length - (opening is not None)
    assert np.concatenate(owned).tolist() == list(range(len(blocks)))
    for part, indices in zip(parts, owned, strict=True):
        stream = [token for text in part for token in range(100 + offsets[text], 100 + offsets[text + 1])]
        rows = read(blocks, indices)
        assert all(row[0] == OPENING for row in rows if opening)
        inside = [row[opening is not None :] for row in rows]
        full = len(stream) // room
        assert [token for row in inside for token in row] == (stream[: full * room] if full else stream)
        assert len(rows) == (full or bool(stream))
        assert all(len(row) == length for row in rows) or (len(rows) == 1 and len(stream) < room)
        assert [len(row) for row in rows] == blocks.lengths[indices].tolist()
