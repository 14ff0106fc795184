"""Objectives of texts and of tokens, by values worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from fedsim import objectives
from fedsim.data import IGNORED, Examples, Subset
from fedsim.errors import FederationError
from fedsim.models.heads import HEADS
from fedsim.objectives import OBJECTIVES, Classification, Regression, TokenClassification, TokenRecovery, tokens
from fedsim.objectives import build_objective as build

NO = IGNORED
# Probabilities 1/4 and 3/4, then 1/2 and 1/2: as targets 0 and 1 they cost ln 4 and ln 2.
LOGITS = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]])
TARGETS = torch.tensor([0, 1])
LOSS = (math.log(4) + math.log(2)) / 2


def texts(lengths, labels=None, targets=None) -> Subset:
    """Texts of these lengths."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.arange(5, 5 + offsets[-1], dtype=np.int32)
    labels = np.zeros(len(lengths), np.int64) if labels is None else np.array(labels)
    examples = Examples(
        tokens, np.zeros_like(tokens), offsets, labels, 0, None if targets is None else np.array(targets)
    )
    return Subset(examples, np.arange(len(lengths)))


# ---- targets in a batch ----------------------------------------------------------------------------------------


def test_targets_lie_at_their_tokens_and_nothing_is_asked_of_padding():
    subset = texts([2, 3], targets=[NO, 1, 0, NO, 2])
    assert subset.examples.collate(np.array([1, 0]))["labels"].tolist() == [[0, NO, 2], [NO, 1, NO]]
    assert subset.examples.collate(np.array([0]), width=4)["labels"].tolist() == [[NO, 1, NO, NO]]
    assert subset.references.tolist() == [[NO, 1, NO], [0, NO, 2]]
    assert Subset(subset.examples, np.array([0])).references.tolist() == [[NO, 1]]


# ---- of texts --------------------------------------------------------------------------------------------------


def test_classification_by_hand():
    objective, subset = Classification(2), texts([1, 2, 1], labels=[0, 1, 1])
    assert objective.loss(LOGITS, TARGETS).item() == pytest.approx(LOSS)
    assert objective.shape(subset) == (3, 2)
    batch = subset.examples.collate(subset.indices)
    assert objective.weight(batch) == 3
    answers = objective.answer(torch.tensor([[0.0, 1.0], [3.0, 2.0], [-2.0, -1.0]]), batch)
    predictions, references = objective.for_metrics(answers, subset)
    assert (predictions.tolist(), references.tolist()) == ([1, 0, 1], [0, 1, 1])
    assert objective.prior(subset, subset).argmax(1).tolist() == [1, 1, 1]


def test_regression_by_hand():
    objective, subset = Regression(), texts([1, 1], labels=np.array([0.0, 1.0], np.float32))
    outputs = torch.tensor([[1.0], [3.0]])
    batch = subset.examples.collate(subset.indices)
    assert objective.loss(outputs, batch["labels"]).item() == (1 + 4) / 2
    predictions, references = objective.for_metrics(objective.answer(outputs, batch), subset)
    assert (predictions.tolist(), predictions.dtype) == ([1.0, 3.0], np.float64)
    assert references.tolist() == [0.0, 1.0]
    assert objective.shape(subset) == objective.prior(subset, subset).shape == (2, 1)
    assert objective.prior(subset, subset)[:, 0].tolist() == [0.5, 0.5]


# ---- of tokens -------------------------------------------------------------------------------------------------


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


def test_a_batch_that_asks_nothing_costs_nothing():
    for objective in (TokenClassification(2), build("causal_lm", vocabulary=objectives.Vocabulary(2))):
        assert objective.loss(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64)).item() == 0


def test_the_most_frequent_tag_is_of_asked_tokens_alone():
    known, subset = texts([4], targets=[NO, 2, 2, 1]), texts([1, 2], targets=[0, 0, NO])
    prior = TokenClassification(3).prior(known, subset)
    assert prior.shape == (2, 2, 3)
    assert (prior.argmax(2) == 2).all()


def test_ignored_tokens_enter_neither_loss_nor_answers(small):
    model = small.load(objective=TokenClassification(3), head="tokens")
    model.network.eval()
    rng = np.random.default_rng(0)
    targets = np.where(rng.random(len(small.examples.tokens)) < 0.5, NO, rng.integers(0, 3, len(small.examples.tokens)))
    examples = replace(small.examples, targets=targets)
    subset = Subset(examples, np.arange(9))
    batch = examples.collate(subset.indices)
    asked = batch["labels"] != NO
    with torch.inference_mode():
        (states,) = model.network.states(batch)
        logits = model.network.head.classifier(states)
        torch.testing.assert_close(model.loss(batch), functional.cross_entropy(logits[asked], batch["labels"][asked]))
    answers = model.predict(subset, 4, None)
    np.testing.assert_allclose(answers[asked.numpy()], logits[asked].numpy(), atol=1e-5)
    assert not answers[~asked.numpy()].any()
    np.testing.assert_allclose(model.predict(subset, 4, 16), answers, atol=1e-5)  # padded behind the longest text


def test_token_recovery_by_hand(monkeypatch):
    words = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    objective, subset = TokenRecovery(2, words, torch.tensor([0, 2])), texts([1, 2], targets=[2, NO, 0])
    # Among the words that occur the estimate (2, 0) has the products 2 and -2.
    assert objective.loss(torch.tensor([[2.0, 0.0]]), torch.tensor([2])).item() == pytest.approx(
        math.log(1 + math.e**4)
    )
    batch = subset.examples.collate(subset.indices)
    outputs = torch.tensor([[0.5, 1.0], [-3.0, 2.0]])  # nearest to word 1, which occurs nowhere, and to word 2
    for rows in (tokens.ROWS, 1):
        monkeypatch.setattr(tokens, "ROWS", rows)
        answers = objective.answer(outputs, batch)
        assert answers.tolist() == [[1, 0], [0, 2]]
    assert answers.shape == objective.shape(subset)
    predictions, references = objective.for_metrics(answers, subset)
    assert predictions is answers
    assert references.tolist() == [[2, NO], [NO, 0]]


def test_token_recovery_needs_a_method_that_reads_features(small):
    with pytest.raises(FederationError, match="expected a method that reads tokens off features, as inversion does"):
        build("token_recovery").loss(LOGITS, TARGETS)


# ---- heads and names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", HEADS)
def test_a_head_that_answers_for_something_else_is_refused(deep, head):
    answers_tokens = HEADS[head].answers_tokens
    width = deep.config["vocab_size"]  # which a tied decoder needs
    model = deep.load(head=head, objective=(Classification if answers_tokens else TokenClassification)(width))
    asks, answers = ("texts", "tokens") if answers_tokens else ("tokens", "texts")
    with pytest.raises(
        FederationError, match=f"asks for {asks}, and the head .* answers for {answers}: choose"
    ) as error:
        model.logits(deep.examples.collate(np.arange(2)))
    named = str(error.value).rpartition("the heads ")[2].split(", ")
    assert named == [name for name, kind in HEADS.items() if kind.answers_tokens != answers_tokens]


def test_objectives_are_built_by_name():
    words = objectives.Vocabulary(9, np.arange(4, 9), mask_id=3)
    built = {name: build(name, 3, words) for name in OBJECTIVES}
    widths = {name: objective.outputs for name, objective in built.items()}
    assert widths == {
        "classification": 3, "regression": 1, "token_classification": 3, "token_recovery": 3, "masked_lm": 9,
        "causal_lm": 9,
    }  # fmt: skip
    assert [name for name, kind in built.items() if not kind.own_words] == ["masked_lm", "causal_lm"]
    assert build("masked_lm", 1, words, {"share": 0.3}).share == 0.3


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("tagging", {}, "unknown objective 'tagging': expected one of classification, regression"),
        ("classification", {"share": 0.1}, r"objective classification: unknown options \['share'\]; it takes outputs"),
        ("masked_lm", {"share": 1.0}, r"expected a share in \(0, 1\), found 1.0"),
    ],
)
def test_unknown_names_and_options_are_refused(name, options, message):
    with pytest.raises(FederationError, match=message):
        build(name, 2, objectives.Vocabulary(9, np.arange(4, 9), mask_id=3), options)


def test_masking_without_a_mask_is_refused():
    with pytest.raises(FederationError, match="expected a tokenizer with a mask token, found none"):
        build("masked_lm", vocabulary=objectives.Vocabulary(9))


def test_no_answer_follows_from_a_language_models_targets(small):
    subset = small.clients[0].train
    with pytest.raises(FederationError, match="no answer follows from CausalLM's targets alone"):
        build("causal_lm").prior(subset, subset)
