"""The floor that personalisation has to beat."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.algorithms import Workload, build_algorithm
from fedsim.data import Client, Examples, Subset
from fedsim.objectives import Classification, Regression


def federation(small, labels_of_clients, outputs, **options):
    """Clients with these training labels, each tested on two examples; asking for a model is an error."""

    def no_model():
        raise AssertionError("the local majority needs no model")

    labels = np.concatenate(labels_of_clients)
    lengths = np.ones(len(labels), dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.ones(len(labels), dtype=np.int32)
    examples = Examples(tokens, np.zeros_like(tokens), offsets, labels, padding_id=0)
    ends = np.cumsum([len(subset) for subset in labels_of_clients])
    clients = [
        Client(number, Subset(examples, np.arange(end - len(subset), end)), {"test": Subset(examples, np.arange(2))})
        for number, (subset, end) in enumerate(zip(labels_of_clients, ends, strict=True))
    ]
    objective = Regression() if outputs == 1 else Classification(outputs)
    algorithm = build_algorithm("local_majority", Workload(no_model, small.setting().training, objective), options)
    run = small.run(algorithm, clients=clients)
    return run, [algorithm.predict(run.state, client, client.evaluation["test"]) for client in clients]


def test_each_client_answers_its_own_most_frequent_label(small):
    run, answers = federation(small, [np.array(subset) for subset in ([2, 0, 2], [0, 1, 1, 2], [0, 0, 1])], outputs=3)
    assert [answer.argmax(1).tolist() for answer in answers] == [[2, 2], [1, 1], [0, 0]]
    # the test examples' labels are 2 and 0: one of two for the first client and the third, none for the second
    assert [scores["test"]["accuracy"] for scores in run.results[-1].client_scores] == [0.5, 0.0, 0.5]


def test_of_equally_frequent_labels_the_smallest_counts(small):
    _, answers = federation(small, [np.array([2, 1, 2, 1]), np.array([3, 0])], outputs=4)
    assert [answer.argmax(1).tolist() for answer in answers] == [[1, 1], [0, 0]]


def test_a_score_is_answered_by_the_mean(small):
    parts = [np.array([0.5, 1.5, 4.0], dtype=np.float32), np.array([5.0, 4.5], dtype=np.float32)]
    _, answers = federation(small, parts, outputs=1)
    assert [answer.shape for answer in answers] == [(2, 1), (2, 1)]
    assert [answer[:, 0].tolist() for answer in answers] == [[2.0, 2.0], [4.75, 4.75]]


@pytest.mark.parametrize("outputs", [1, 2])
def test_nothing_is_exchanged(small, outputs):
    labels = np.array([0, 1, 1]) if outputs == 2 else np.array([0.0, 1.0], dtype=np.float32)
    run, _ = federation(small, [labels, labels], outputs)
    assert run.channel.ledger.rows == []
    assert run.channel.ledger.setup_bytes == run.channel.ledger.total_bytes() == 0
    assert [result.metrics.train_loss for result in run.results] == [None, None]
    assert run.state.round == 2


# ---- all clients' labels together ----------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=4))
def test_overall_all_answer_the_most_frequent_label_of_all(small, labels):
    parts = [np.array(own) for own in labels]
    run, answers = federation(small, [*parts, np.array([0, 0])], outputs=4, whose="all")
    expected = np.bincount(np.concatenate([*parts, [0, 0]])).argmax()
    assert {tuple(answer.argmax(1).tolist()) for answer in answers} == {(expected, expected)}
    assert run.channel.ledger.rows == []
