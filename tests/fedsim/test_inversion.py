"""The attack on features: what it must recover, what it cannot, and that it uses no other information."""

import numpy as np
import pytest
import torch

from fedsim.algorithms import build_algorithm
from fedsim.data import IGNORED, Client, Examples, Subset
from fedsim.engine import run_federation
from fedsim.wire import Channel

VOCABULARY = 60  # of the small encoder
FIRST, LAST = 1, 2  # stand for [CLS] and [SEP]: not asked for
FREQUENT = 5
TRAIN, TEST = 120, 40


def texts(seed: int, count: int, ids=range(3, VOCABULARY)) -> Examples:
    """Texts of 3 to 8 words, whose answers are their words; every second word or so is FREQUENT."""
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(np.array(ids), size=rng.integers(3, 9)) for _ in range(count)]
    drawn = [np.where(rng.random(len(text)) < 0.4, FREQUENT, text) for text in drawn]
    lengths = np.array([len(text) + 2 for text in drawn])
    tokens = np.concatenate([[FIRST, *text, LAST] for text in drawn]).astype(np.int32)
    targets = np.concatenate([[IGNORED, *text, IGNORED] for text in drawn]).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Examples(tokens, np.zeros_like(tokens), offsets, np.zeros(count, np.int64), 0, targets)


def clients_of(train: Examples, test: Examples) -> list[Client]:
    """Two clients with half of the texts each; both are scored on the same held-out ones."""
    held_out = {"test": Subset(test, np.arange(len(test)))}
    halves = np.array_split(np.arange(len(train)), 2)
    return [Client(number, Subset(train, half), held_out) for number, half in enumerate(halves)]


CLIENTS = clients_of(texts(0, TRAIN), texts(1, TEST))


@pytest.fixture
def attacked(small):
    """Attack a model; return the share of recovered held-out tokens."""

    def attack(name="inversion", load=None, epochs=40, **options):
        workload = small.workload(load, head="average", epochs=epochs)
        algorithm = build_algorithm(name, workload, {"public_texts": TRAIN, **options})
        run = run_federation(algorithm, CLIENTS, Channel(), lambda *_: {}, rounds=1, seed=0)
        held_out = CLIENTS[0].evaluation["test"]
        references = held_out.references
        answers = algorithm.predict(run.state, CLIENTS[1], held_out)
        assert answers.shape == references.shape
        return float((answers == references)[references != IGNORED].mean())

    return attack


@pytest.fixture
def sending(small):
    """Loads a model whose one hidden state is made of token ids [B, S] and word embeddings [V, D]."""

    def sender(states):
        def load():
            model = small.load(head="average", kernels="reference")
            weight = model.network.encoder.get_input_embeddings().weight
            model.network.states = lambda batch: (states(batch["input_ids"], weight),)
            return model

        return load

    return sender


def test_word_embeddings_are_inverted_whole(attacked, sending):
    assert attacked(load=sending(lambda ids, weight: weight[ids])) == 1.0


def test_without_information_the_most_frequent_token_is_the_best_answer(attacked, sending):
    floor = attacked("token_majority")
    assert 0.3 < floor < 0.5  # FREQUENT's share
    assert attacked(load=sending(lambda ids, weight: torch.zeros(*ids.shape, weight.shape[1])), epochs=10) == floor
