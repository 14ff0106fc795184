"""Objectives of texts and of tokens, by values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedsim import objectives
from fedsim.data import IGNORED, Examples, Subset
from fedsim.errors import FederationError
from fedsim.models.heads import HEADS
from fedsim.objectives import Classification, Regression, TokenClassification, TokenRecovery

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


def test_token_recovery_by_hand(monkeypatch):
    words = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    objective, subset = TokenRecovery(2, words, torch.tensor([0, 2])), texts([1, 2], targets=[2, NO, 0])
    # Among the words that occur the estimate (2, 0) has the products 2 and -2.
    assert objective.loss(torch.tensor([[2.0, 0.0]]), torch.tensor([2])).item() == pytest.approx(
        math.log(1 + math.e**4)
    )
    batch = subset.examples.collate(subset.indices)
    outputs = torch.tensor([[0.5, 1.0], [-3.0, 2.0]])  # nearest to word 1, which occurs nowhere, and to word 2
    for rows in (objectives.ROWS, 1):
        monkeypatch.setattr(objectives, "ROWS", rows)
        answers = objective.answer(outputs, batch)
        assert answers.tolist() == [[1, 0], [0, 2]]
    assert answers.shape == objective.shape(subset)
    predictions, references = objective.for_metrics(answers, subset)
    assert predictions is answers
    assert references.tolist() == [[2, NO], [NO, 0]]


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
