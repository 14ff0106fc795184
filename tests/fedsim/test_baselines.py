"""Reference rows without training rounds: frequent labels, label priors, token frequencies, a linear model."""

import math

import numpy as np
import pytest
import torch

from fedsim.algorithms.central import pooled
from fedsim.data import Client, Examples, Subset
from fedsim.objectives import Classification
from tests.fedsim.conftest import MASKED, SPECIAL, VOCABULARY


def clients_of(labels_of_clients) -> list[Client]:
    """Clients with these training labels, each scored on the first two examples."""
    labels = np.concatenate(labels_of_clients)
    tokens = np.ones(len(labels), dtype=np.int32)
    examples = Examples(tokens, np.zeros_like(tokens), np.arange(len(labels) + 1), labels, padding_id=0)
    parts = np.split(np.arange(len(labels)), np.cumsum([len(each) for each in labels_of_clients])[:-1])
    test = {"test": Subset(examples, np.arange(2))}
    return [Client(number, Subset(examples, part), test) for number, part in enumerate(parts)]


@pytest.mark.parametrize(
    ("labels", "whose", "expected"),
    [
        (([2, 0, 2], [0, 1, 1, 2], [0, 0, 1]), "own", [2, 1, 0]),
        (([2, 1, 2, 1], [3, 0]), "own", [1, 0]),  # of equally frequent labels the smallest id
        (([2, 0, 2], [0, 1, 1, 2], [0, 0, 1]), "all", [0, 0, 0]),
    ],
)
def test_local_majority_answers_the_most_frequent_label(small, labels, whose, expected):
    clients = clients_of([np.array(each) for each in labels])
    algorithm = small.algorithm("local_majority", small.workload(objective=Classification(4)), whose=whose)
    run = small.run(algorithm, clients=clients)
    answers = [algorithm.predict(run.state, client, client.evaluation["test"]) for client in clients]
    assert [answer.argmax(1).tolist() for answer in answers] == [[label, label] for label in expected]


def test_label_prior_adjusts_logits_by_hand():
    (subset,) = (client.train for client in clients_of([np.repeat([0, 1], [1, 5])]))
    everyone = {"classes": torch.tensor([7, 7], dtype=torch.int32)}  # smoothed: a half each, against 2/8 and 6/8
    logits = np.array([[0.5, 0.0], [9.0, -1.0]], np.float32)
    answers = Classification(2).with_prior(logits, subset, everyone)
    np.testing.assert_allclose(answers, np.add(logits, [math.log(1 / 2), math.log(3 / 2)]), rtol=1e-6)
    assert answers.dtype == np.float32
    assert answers.argmax(1).tolist() == [1, 0]


def test_unigram_predicts_the_masked_tokens_of_a_model(small):
    masked_lm = {"objective": MASKED, "head": "masked-lm"}
    algorithm = small.algorithm("unigram", small.workload(**masked_lm))
    state, subset = small.run(algorithm, rounds=1).state, small.clients[1].evaluation["test"]
    answers, model = algorithm.predict(state, None, subset), small.load(**masked_lm).predict(subset, 64, None)
    assert answers[:, 1].tolist() == model[:, 1].tolist()
    train, shares = pooled(small.clients), state.shared["shares"]
    texts = np.split(train.examples.tokens, train.examples.offsets[1:-1])
    counts = np.bincount(np.concatenate([texts[index] for index in train.indices]), minlength=VOCABULARY) + 1.0
    assert not shares[:SPECIAL].any()  # never masked
    torch.testing.assert_close(shares[SPECIAL:].numpy(), counts[SPECIAL:] / counts[SPECIAL:].sum())


def pairs_of(kind: str, count: int = 240) -> Examples:
    """Texts of two classes that differ by a word, by the order of two words, or by what a pair shares."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, count)
    ids, types = [], []
    for label in labels:
        one, other = (list(rng.choice(range(5, 40), 6)) for _ in range(2))
        first = {"word": [*one, 50 + label], "order": [*one, *((50, 51) if label else (51, 50))], "pair": one}[kind]
        second = [] if kind != "pair" else [*(rng.permutation(one) if label else other), 2]
        ids.append([1, *first, 2, *second])  # as BERT's tokenizer puts [CLS] and [SEP]
        types.append([0] * (len(first) + 2) + [1] * len(second))
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in ids])])
    tokens, segments = (np.concatenate(values).astype(np.int32) for values in (ids, types))
    return Examples(tokens, segments, offsets, labels, padding_id=0)


@pytest.mark.parametrize("kind", ["word", "order", "pair"])
def test_linear_model_learns_words_their_order_and_what_a_pair_shares(small, kind):
    examples, cut = pairs_of(kind), 160
    test = {"test": Subset(examples, np.arange(cut, len(examples)))}
    clients = [Client(0, Subset(examples, np.arange(cut)), test)]
    linear, majority = (
        small.run(small.algorithm(name), rounds=1, clients=clients).results[0].pooled_scores["test"]["accuracy"]
        for name in ("linear", "local_majority")
    )
    assert linear > 0.95
    assert majority < 0.65
