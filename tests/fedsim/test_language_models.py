"""Masked and causal language models: what is hidden, what is asked, and word embeddings that are the decoder too."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim import objectives
from fedsim.data import IGNORED, Subset
from fedsim.errors import FederationError
from fedsim.objectives import CausalLM, Classification, MaskedLM, Vocabulary, language
from tests.local_training import local_training

NO = IGNORED
WORDS, SPECIAL, MASK = 60, 10, 3  # the small encoder's; ids below SPECIAL are special
VOCABULARY = Vocabulary(WORDS, np.arange(SPECIAL, WORDS), MASK)
MASKED, CAUSAL = MaskedLM(WORDS, VOCABULARY), CausalLM(WORDS)
HEADS = {"masked-lm": MASKED, "causal-lm": CAUSAL}
IDS = st.integers(0, WORDS - 1)
EMBEDDINGS = "encoder.embeddings.word_embeddings.weight"


def batch_of(ids, mask=None):
    ids = torch.as_tensor(ids)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids) if mask is None else torch.tensor(mask)}


# ---- what is hidden --------------------------------------------------------------------------------------------


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


def test_the_share_is_an_option():
    objective = objectives.build_objective("masked_lm", 1, VOCABULARY, {"share": 0.5, "mask_share": 1.0})
    found = objective.prepare(batch_of([[20, 21, 22, 23]]), np.random.default_rng(0))
    assert int((found["input_ids"] == MASK).sum()) == int((found["labels"] != NO).sum()) == 2


@pytest.mark.parametrize("other", [{"seed": 1}, {"round": 2}, {"client": 1}])
def test_training_hides_others_for_each_seed_round_and_client(small, other):
    def hidden(seed=0, round=1, client=0):
        training = local_training(seed=seed, learning_rate=1.0, batch_size=4, epochs=2)
        drawn = training.batches(small.clients[0].train, MASKED, round, client)
        return [batch["input_ids"].tolist() for batch in drawn]

    assert hidden() == hidden()
    assert hidden() != hidden(**other)


def test_an_evaluation_hides_the_same_tokens_every_time(small):
    model, subset = small.load(objective=MASKED, head="masked-lm"), small.clients[0].evaluation["test"]
    first = model.predict(subset, 2, None)
    assert np.array_equal(model.predict(subset, 2, None), first)
    assert first.shape == MASKED.shape(subset) == (len(subset), 2)
    assert (first[:, 0] < 0).any()


def test_hidden_tokens_alone_go_through_the_output_layer(small):
    model, subset = small.load(objective=MASKED, head="masked-lm"), small.clients[0].train
    rows = []
    model.network.head.norm.register_forward_hook(lambda module, inputs, output: rows.append(len(inputs[0])))
    answers = model.predict(subset, 4, None)
    assert sum(rows) == answers[:, 1].sum() < small.examples.lengths[subset.indices].sum() / 3
    rows.clear()
    batch = MASKED.prepare(subset.examples.collate(subset.indices), np.random.default_rng(0))
    model.loss(batch)
    assert rows == [MASKED.weight(batch)]


# ---- what is asked ---------------------------------------------------------------------------------------------


def test_each_token_is_asked_for_but_the_first_and_no_padding():
    batch = batch_of([[5, 6, 7], [8, 9, 0]], mask=[[1, 1, 1], [1, 1, 0]])
    found = CAUSAL.prepare(batch, np.random.default_rng(0))
    assert found["labels"].tolist() == [[6, 7, NO], [9, NO, NO]]  # at the token before
    assert found["input_ids"] is batch["input_ids"]
    assert CAUSAL.weight(found) == 3  # tokens, so that a loss is one a token


@pytest.mark.parametrize("rows", [language.ROWS, 2])
def test_answers_are_summed_log_likelihoods_and_counts(small, monkeypatch, rows):
    monkeypatch.setattr(language, "ROWS", rows)
    # Two words; probabilities 3/4, 1/2 and 1/2 of the three tokens asked for.
    outputs = torch.tensor([[0.0, math.log(3)], [0.0, 0.0], [0.0, 0.0]])
    batch = {"labels": torch.tensor([[1, NO, 0], [NO, NO, NO], [NO, 0, NO]])}
    answers = CausalLM(2).answer(outputs, batch)
    expected = [[math.log(3 / 8), 2], [0, 0], [math.log(1 / 2), 1]]
    np.testing.assert_allclose(answers, expected, atol=1e-6)
    likelihoods, counts = CausalLM(2).for_metrics(answers, small.clients[0].train)
    assert (likelihoods.dtype, counts.tolist()) == (np.float64, [2, 0, 1])


def test_no_answer_is_a_whole_vocabulary_wide(small):
    for head, objective in HEADS.items():
        answers = small.load(objective=objective, head=head).predict(small.clients[0].train, 4, None)
        assert answers.shape == (14, 2)
        lengths = small.examples.lengths[small.clients[0].train.indices]
        if objective is CAUSAL:
            assert answers[:, 1].tolist() == (lengths - 1).tolist()


def test_a_part_that_asks_nothing_has_no_loss(small):
    """Texts of one token: a causal model is given each first token and asked for none."""
    tokens = small.examples.tokens[:3]
    examples = type(small.examples)(tokens, np.zeros_like(tokens), np.arange(4), np.zeros(3, np.int64), 0)
    model = small.load(objective=CAUSAL, head="causal-lm")
    training = local_training(seed=0, learning_rate=1e-3, batch_size=2)
    loss = training.run(model, Subset(examples, np.arange(3)), sorted(model.groups.names), 1, 0)
    assert loss == 0


# ---- the tied decoder ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", HEADS)
def test_the_decoder_is_the_embeddings_and_counted_once(small, head):
    model = small.load(objective=HEADS[head], head=head)
    encoder = dict(model.network.encoder.named_parameters())
    own = {"causal-lm": 0, "masked-lm": 16 * 16 + 16 + 2 * 16 + WORDS}[head]  # dense, LayerNorm, bias
    total = sum(parameter.numel() for parameter in encoder.values()) + own
    assert sum(parameter.numel() for parameter in model.parameters.values()) == total
    assert model.network.head.decoder is model.parameters[EMBEDDINGS]
    assert not any("decoder" in name for name in model.groups.names)

    setting = small.setting(objective=HEADS[head], head=head)
    run = small.run(small.algorithm("fedavg", setting, embeddings="global"), clients=small.clients[:1], rounds=1)
    assert run.channel.ledger.total_bytes("up") == 4 * total


@pytest.mark.parametrize("head", HEADS)
def test_an_untied_decoder_is_the_heads_own(small, head):
    tied, untied = (small.load(objective=HEADS[head], head=name) for name in (head, f"{head}-untied"))
    assert untied.groups.head - tied.groups.head == {"head.decoder"}
    decoder = untied.parameters["head.decoder"]
    assert decoder.shape == untied.parameters[EMBEDDINGS].shape
    assert float((decoder - untied.parameters[EMBEDDINGS]).detach().abs().max()) > 0
    setting = small.setting(objective=HEADS[head], head=f"{head}-untied")
    run = small.run(small.algorithm("fedavg", setting, embeddings="global"), clients=small.clients[:1], rounds=1)
    assert not torch.equal(run.state.shared["head.decoder"], setting.initial["head.decoder"])


@pytest.mark.parametrize("head", [*HEADS, "pooled"])
def test_a_tied_decoder_moves_words_that_a_client_does_not_have(small, head):
    objective = HEADS.get(head, Classification(2))
    setting = small.setting(objective=objective, head=head, weight_decay=0.0)
    client = small.clients[2]
    run = small.run(small.algorithm("fedavg", setting, embeddings="global"), clients=[client], rounds=1)
    absent = np.setdiff1d(np.arange(1, WORDS), [*small.examples.words(client.train.indices), MASK])
    assert len(absent) > 10
    moved = (run.state.shared[EMBEDDINGS] != setting.initial[EMBEDDINGS]).any(1).numpy()[absent]
    assert moved.all() if head in HEADS else not moved.any()


def test_a_decoder_of_other_words_is_refused(small):
    for head in HEADS:
        with pytest.raises(FederationError, match="expected as many outputs as the encoder's 60 words, got 2"):
            small.load(head=head)


def test_a_language_model_learns(small):
    for head, objective in HEADS.items():
        setting = small.setting(objective=objective, head=head, epochs=5)
        run = small.run(small.algorithm("central", setting, embeddings="global"), rounds=4)
        losses = [result.metrics.train_loss for result in run.results]
        assert losses[-1] < losses[0] - 0.1


# ---- scoring ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", HEADS)
def test_scoring_begins_with_the_widest_batch_and_answers_the_same(small, head, monkeypatch):
    """What is hidden is drawn from the narrowest on, as ever; so the answers hang on no order."""
    subset, model = small.clients[1].train, small.load(objective=HEADS[head], head=head)
    widths, compute = [], model._path_logits

    def noted(batch, **options):
        widths.append(batch["input_ids"].shape[1])
        return compute(batch, **options)

    with monkeypatch.context() as patch:
        patch.setattr(model, "_path_logits", noted)
        found = model.predict(subset, 2, None)
    assert len(set(widths)) > 1
    assert widths == sorted(widths, reverse=True)
    with monkeypatch.context() as patch:
        patch.setattr("fedsim.models.model.reversed", list, raising=False)
        np.testing.assert_array_equal(model.predict(subset, 2, None), found)
