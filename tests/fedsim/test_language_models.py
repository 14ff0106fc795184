"""Masked and causal language models: what is hidden, what is asked, and word embeddings that are the decoder too."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim import objectives
from fedsim.data import IGNORED
from fedsim.objectives import CausalLM, Classification, MaskedLM, Vocabulary

NO = IGNORED
WORDS, SPECIAL, MASK = 60, 10, 3  # the small encoder's; ids below SPECIAL are special
VOCABULARY = Vocabulary(WORDS, np.arange(SPECIAL, WORDS), MASK)
MASKED, CAUSAL = MaskedLM(WORDS, VOCABULARY), CausalLM(WORDS)
HEADS = {"masked-lm": MASKED, "causal-lm": CAUSAL}
EMBEDDINGS = "encoder.embeddings.word_embeddings.weight"


def batch_of(ids, mask=None):
    ids = torch.as_tensor(ids)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids) if mask is None else torch.tensor(mask)}


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, WORDS - 1), min_size=6, max_size=6), min_size=1, max_size=8), st.integers(0, 99)
)
def test_a_share_of_the_ordinary_tokens_is_hidden_and_no_special_one(rows, seed):
    batch = batch_of(rows)
    before = batch["input_ids"].clone()
    found = MASKED.prepare(batch, np.random.default_rng(seed))
    ordinary = before >= SPECIAL
    asked = found["labels"] != NO
    count = int(ordinary.sum())
    assert int(asked.sum()) == (max(1, round(0.15 * count)) if count else 0)
    assert not (asked & ~ordinary).any()
    assert torch.equal(found["labels"][asked], before[asked])
    assert torch.equal(found["input_ids"][~asked], before[~asked])
    put = found["input_ids"][asked]
    assert ((put == MASK) | (put >= SPECIAL)).all()
    assert torch.equal(batch["input_ids"], before)


def test_of_hidden_tokens_8_in_10_become_the_mask_and_1_another():
    before = torch.full((200, 100), 42)
    found = MASKED.prepare(batch_of(before), np.random.default_rng(0))
    put = found["input_ids"][found["labels"] != NO]
    assert len(put) == 3000
    shares = [float((put == MASK).float().mean()), float((put == 42).float().mean())]
    # three standard errors of 3000 draws; one in fifty of the random tokens is the same
    assert shares == pytest.approx([0.8, 0.1 + 0.1 / 50], abs=3 * math.sqrt(0.8 * 0.2 / 3000))
    others = put[(put != MASK) & (put != 42)]
    assert len(others.unique()) == len(VOCABULARY.ordinary_ids) - 1


@pytest.mark.parametrize("rows", [objectives.ROWS, 2])
def test_answers_are_summed_log_likelihoods_and_counts(small, monkeypatch, rows):
    monkeypatch.setattr(objectives, "ROWS", rows)
    # Two words; probabilities 3/4, 1/2 and 1/2 of the three tokens asked for.
    outputs = torch.tensor([[0.0, math.log(3)], [0.0, 0.0], [0.0, 0.0]])
    batch = {"labels": torch.tensor([[1, NO, 0], [NO, NO, NO], [NO, 0, NO]])}
    answers = CausalLM(2).answer(outputs, batch)
    expected = [[math.log(3 / 8), 2], [0, 0], [math.log(1 / 2), 1]]
    np.testing.assert_allclose(answers, expected, atol=1e-6)
    likelihoods, counts = CausalLM(2).for_metrics(answers, small.clients[0].train)
    assert (likelihoods.dtype, counts.tolist()) == (np.float64, [2, 0, 1])


@pytest.mark.parametrize("head", HEADS)
def test_the_decoder_is_the_embeddings_and_counted_once(small, head):
    model = small.load(objective=HEADS[head], head=head)
    encoder = dict(model.network.encoder.named_parameters())
    own = {"causal-lm": 0, "masked-lm": 16 * 16 + 16 + 2 * 16 + WORDS}[head]  # dense, LayerNorm, bias
    total = sum(parameter.numel() for parameter in encoder.values()) + own
    assert sum(parameter.numel() for parameter in model.parameters.values()) == total
    assert model.network.head.decoder is model.parameters[EMBEDDINGS]
    assert not any("decoder" in name for name in model.groups.names)

    workload = small.workload(objective=HEADS[head], head=head)
    run = small.run(small.algorithm("fedavg", workload, embeddings="global"), clients=small.clients[:1], rounds=1)
    assert run.channel.ledger.total_bytes("up") == 4 * total


@pytest.mark.parametrize("head", [*HEADS, "pooled"])
def test_a_tied_decoder_moves_words_that_a_client_does_not_have(small, head):
    objective = HEADS.get(head, Classification(2))
    workload = small.workload(objective=objective, head=head, weight_decay=0.0)
    client = small.clients[2]
    run = small.run(small.algorithm("fedavg", workload, embeddings="global"), clients=[client], rounds=1)
    absent = np.setdiff1d(np.arange(1, WORDS), [*small.examples.words(client.train.indices), MASK])
    assert len(absent) > 10
    moved = (run.state.shared[EMBEDDINGS] != workload.initial[EMBEDDINGS]).any(1).numpy()[absent]
    assert moved.all() if head in HEADS else not moved.any()
