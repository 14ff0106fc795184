"""Texts end to end in blocks: nothing is lost or doubled, and every block is full."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedsim.data import packed

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


def test_a_batch_has_what_a_model_reads():
    whole, _ = blocks_of([6], 3, OPENING)
    batch = whole.collate(np.array([2, 0]), 4)
    assert batch["input_ids"].tolist() == [[5, 104, 105, 7], [5, 100, 101, 7]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0]] * 2
    assert not batch["token_type_ids"].any()
    assert batch["labels"].tolist() == [0, 0]
    assert {str(tensor.dtype) for tensor in batch.values()} == {"torch.int64"}
