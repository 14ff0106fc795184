"""References without training: most frequent labels, shares of tokens, the model as it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedsim.algorithms import Workload, build_algorithm
from fedsim.algorithms.central import pooled
from fedsim.data import Client, Examples, Subset
from fedsim.objectives import CausalLM, Classification, MaskedLM, Vocabulary

WORDS, SPECIAL, MASK = 60, 10, 3
MASKED, CAUSAL = MaskedLM(WORDS, Vocabulary(WORDS, np.arange(SPECIAL, WORDS), MASK)), CausalLM(WORDS)


def majority_answers(small, labels_of_clients, objective, **options):
    """Answers of clients with these training labels on two examples; asking for a model is an error."""

    def no_model():
        raise AssertionError("the local majority needs no model")

    labels = np.concatenate(labels_of_clients)
    tokens = np.ones(len(labels), dtype=np.int32)
    examples = Examples(tokens, np.zeros_like(tokens), np.arange(len(labels) + 1), labels, padding_id=0)
    parts = np.split(np.arange(len(labels)), np.cumsum([len(own) for own in labels_of_clients])[:-1])
    test = {"test": Subset(examples, np.arange(2))}
    clients = [Client(number, Subset(examples, part), test) for number, part in enumerate(parts)]
    algorithm = build_algorithm("local_majority", Workload(no_model, small.workload().training, objective), options)
    run = small.run(algorithm, clients=clients)
    return [algorithm.predict(run.state, client, test["test"]) for client in clients]


@pytest.mark.parametrize(
    ("labels", "whose", "expected"),
    [
        (([2, 0, 2], [0, 1, 1, 2], [0, 0, 1]), "own", [2, 1, 0]),
        (([2, 1, 2, 1], [3, 0]), "own", [1, 0]),  # of equally frequent labels the smallest id
        (([2, 0, 2], [0, 1, 1, 2], [0, 0, 1]), "all", [0, 0, 0]),
    ],
)
def test_most_frequent_label_is_every_answer(small, labels, whose, expected):
    answers = majority_answers(small, [np.array(own) for own in labels], Classification(4), whose=whose)
    assert [answer.argmax(1).tolist() for answer in answers] == [[label, label] for label in expected]


def unigram_answers(small, objective, head):
    algorithm = small.algorithm("unigram", small.workload(objective=objective, head=head))
    run = small.run(algorithm, rounds=1)
    subset = small.clients[1].evaluation["test"]
    return algorithm.predict(run.state, None, subset), subset, run.state.shared["shares"]


@pytest.fixture
def counts(small):
    """How often each token occurs in the clients' training texts, plus one."""
    train = pooled(small.clients)
    offsets, tokens = train.examples.offsets, train.examples.tokens
    texts = [tokens[offsets[index] : offsets[index + 1]] for index in train.indices]
    return np.bincount(np.concatenate(texts), minlength=WORDS) + 1.0


def test_unigram_answers_with_each_tokens_share(small, counts):
    answers, subset, _ = unigram_answers(small, CAUSAL, "causal-lm")
    offsets, tokens = subset.examples.offsets, subset.examples.tokens
    for place, index in enumerate(subset.indices):
        asked = tokens[offsets[index] + 1 : offsets[index + 1]]
        expected = sum(math.log(counts[token] / counts.sum()) for token in asked)
        assert answers[place] == pytest.approx([expected, len(asked)], rel=1e-5)


def test_unigram_is_asked_for_the_masked_tokens_of_a_model(small, counts):
    answers, subset, shares = unigram_answers(small, MASKED, "masked-lm")
    model = small.load(objective=MASKED, head="masked-lm").predict(subset, 64, None)
    assert answers[:, 1].tolist() == model[:, 1].tolist()
    assert not shares[:SPECIAL].any()  # never asked for
    torch.testing.assert_close(shares[SPECIAL:].numpy(), counts[SPECIAL:] / counts[SPECIAL:].sum())
