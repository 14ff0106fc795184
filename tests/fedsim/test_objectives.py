"""Objectives of texts, of tokens and of language models, by values worked out by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim import objectives
from fedsim.data import IGNORED, Examples, Subset
from fedsim.errors import FederationError
from fedsim.models.heads import HEADS
from fedsim.objectives import CausalLM, Classification, Regression, TokenClassification, TokenRecovery
from tests.fedsim.conftest import CAUSAL, MASK, MASKED, SPECIAL, VOCABULARY

NO = IGNORED
LANGUAGE = {"masked-lm": MASKED, "causal-lm": CAUSAL}
EMBEDDINGS = "encoder.embeddings.word_embeddings.weight"
# Probabilities 1/4 and 3/4, then 1/2 and 1/2: as targets 0 and 1 they cost ln 4 and ln 2.
LOGITS, TARGETS = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]]), torch.tensor([0, 1])
LOSS = (math.log(4) + math.log(2)) / 2


def texts(lengths, labels=None, targets=None) -> Subset:
    """Texts of these lengths."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.arange(5, 5 + offsets[-1], dtype=np.int32)
    labels = np.zeros(len(lengths), np.int64) if labels is None else np.array(labels)
    asked = None if targets is None else np.array(targets)
    return Subset(Examples(tokens, np.zeros_like(tokens), offsets, labels, 0, asked), np.arange(len(lengths)))


def test_classification_by_hand():
    objective, subset = Classification(2), texts([1, 2, 1], labels=[0, 1, 1])
    assert objective.loss(LOGITS, TARGETS).item() == pytest.approx(LOSS)
    batch = subset.examples.collate(subset.indices)
    assert objective.weight(batch) == 3
    answers = objective.answer(torch.tensor([[0.0, 1.0], [3.0, 2.0], [-2.0, -1.0]]), batch)
    assert answers.shape == objective.shape(subset) == (3, 2)
    predictions, references = objective.for_metrics(answers, subset)
    assert (predictions.tolist(), references.tolist()) == ([1, 0, 1], [0, 1, 1])
    assert objective.prior(subset, subset).argmax(1).tolist() == [1, 1, 1]


def test_regression_by_hand():
    objective, subset = Regression(), texts([1, 1], labels=np.array([0.0, 1.0], np.float32))
    outputs = torch.tensor([[1.0], [3.0]])
    batch = subset.examples.collate(subset.indices)
    assert objective.loss(outputs, batch["labels"]).item() == (1 + 4) / 2
    predictions, references = objective.for_metrics(objective.answer(outputs, batch), subset)
    assert (predictions.tolist(), references.tolist()) == ([1.0, 3.0], [0.0, 1.0])
    assert objective.prior(subset, subset).tolist() == [[0.5], [0.5]]


def test_token_classification_by_hand():
    objective, subset = TokenClassification(2), texts([2, 3], targets=[NO, 0, NO, 1, NO])
    assert objective.loss(LOGITS, TARGETS).item() == pytest.approx(LOSS)
    batch = subset.examples.collate(subset.indices)
    assert objective.weight(batch) == 2  # texts
    answers = objective.answer(LOGITS, batch)
    assert answers.shape == objective.shape(subset) == (2, 3, 2)
    assert not answers[subset.references == NO].any()
    predictions, references = objective.for_metrics(answers, subset)
    assert predictions.tolist() == [[NO, 1, NO], [NO, 0, NO]]
    assert references.tolist() == [[NO, 0, NO], [NO, 1, NO]]


@pytest.mark.parametrize("rows", [objectives.ROWS, 1])
def test_token_recovery_by_hand(monkeypatch, rows):
    monkeypatch.setattr(objectives, "ROWS", rows)
    embeddings = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    objective, subset = TokenRecovery(2, embeddings, torch.tensor([0, 2])), texts([1, 2], targets=[2, NO, 0])
    # Among the words that occur the estimate (2, 0) has the products 2 and -2.
    loss = objective.loss(torch.tensor([[2.0, 0.0]]), torch.tensor([2])).item()
    assert loss == pytest.approx(math.log(1 + math.e**4))
    outputs = torch.tensor([[0.5, 1.0], [-3.0, 2.0]])  # nearest to word 1, which occurs nowhere, and to word 2
    answers = objective.answer(outputs, subset.examples.collate(subset.indices))
    assert answers.tolist() == [[1, 0], [0, 2]]
    assert objective.for_metrics(answers, subset)[1].tolist() == [[2, NO], [NO, 0]]


@pytest.mark.parametrize("rows", [objectives.ROWS, 2])
def test_answers_of_language_models_are_summed_log_likelihoods_and_counts(monkeypatch, rows):
    monkeypatch.setattr(objectives, "ROWS", rows)
    # Two words; probabilities 3/4, 1/2 and 1/2 of the three tokens asked for.
    outputs = torch.tensor([[0.0, math.log(3)], [0.0, 0.0], [0.0, 0.0]])
    batch = {"labels": torch.tensor([[1, NO, 0], [NO, NO, NO], [NO, 0, NO]])}
    answers = CausalLM(2).answer(outputs, batch)
    np.testing.assert_allclose(answers, [[math.log(3 / 8), 2], [0, 0], [math.log(1 / 2), 1]], atol=1e-6)
    assert CausalLM(2).for_metrics(answers, texts([3]))[1].tolist() == [2, 0, 1]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, VOCABULARY - 1), min_size=6, max_size=6), min_size=1, max_size=8),
    st.integers(0, 99),
)
def test_a_share_of_the_ordinary_tokens_is_masked_and_no_special_one(rows, seed):
    before = torch.tensor(rows)
    batch = MASKED.prepare({"input_ids": before}, np.random.default_rng(seed))
    ordinary, asked = before >= SPECIAL, batch["labels"] != NO
    count = int(ordinary.sum())
    assert int(asked.sum()) == (max(1, round(0.15 * count)) if count else 0)
    assert not (asked & ~ordinary).any()
    assert torch.equal(batch["labels"][asked], before[asked])
    assert torch.equal(batch["input_ids"][~asked], before[~asked])
    put = batch["input_ids"][asked]
    assert ((put == MASK) | (put >= SPECIAL)).all()
    assert before.tolist() == rows


def test_of_masked_tokens_8_in_10_become_the_mask_and_1_another():
    batch = MASKED.prepare({"input_ids": torch.full((200, 100), 42)}, np.random.default_rng(0))
    put = batch["input_ids"][batch["labels"] != NO]
    assert len(put) == 3000
    shares = [float((put == MASK).float().mean()), float((put == 42).float().mean())]
    # Three standard errors of 3000 draws; one in fifty of the random tokens is the same.
    assert shares == pytest.approx([0.8, 0.1 + 0.1 / 50], abs=3 * math.sqrt(0.8 * 0.2 / 3000))


@pytest.mark.parametrize("head", LANGUAGE)
def test_the_tied_decoder_is_counted_once_and_moves_absent_words(small, head):
    workload = small.workload(objective=LANGUAGE[head], head=head, weight_decay=0.0)
    model, client = workload.model, small.clients[2]
    head_size = {"causal-lm": 0, "masked-lm": 16 * 16 + 16 + 2 * 16 + VOCABULARY}[head]  # dense, LayerNorm, bias
    total = sum(parameter.numel() for parameter in model.network.encoder.parameters()) + head_size
    assert sum(parameter.numel() for parameter in model.parameters.values()) == total
    assert model.network.head.decoder is model.parameters[EMBEDDINGS]
    run = small.run(small.algorithm("fedavg", workload, embeddings="global"), clients=[client], rounds=1)
    assert run.channel.ledger.total_bytes("up") == 4 * total
    absent = np.setdiff1d(np.arange(1, VOCABULARY), [*small.examples.token_ids(client.train.indices), MASK])
    assert len(absent) > 10
    assert (run.state.shared[EMBEDDINGS] != workload.initial[EMBEDDINGS]).any(1).numpy()[absent].all()


@pytest.mark.parametrize("head", ["pooled", "tokens"])
def test_a_head_that_answers_for_something_else_is_refused(small, head):
    answers_tokens = HEADS[head].answers_tokens
    model = small.load((Classification if answers_tokens else TokenClassification)(2), head)
    asks, answers = ("texts", "tokens") if answers_tokens else ("tokens", "texts")
    message = f"expected one that answers for {asks}, as .* needs, found one for {answers}; choose"
    with pytest.raises(FederationError, match=message) as error:
        model.path_logits(small.examples.collate(np.arange(2)))
    named = str(error.value).rpartition("the heads ")[2].split(", ")
    assert named == [name for name, kind in HEADS.items() if kind.answers_tokens != answers_tokens]
