"""What begins from FedAvg's last model: local fine-tuning, and each client's own label prior."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedsim.data import Examples, Subset
from fedsim.objectives import Classification


def begun_from(small, params, **options):
    """A workload whose model begins with these parameters."""

    def load():
        model = small.load(**options)
        model.write(params)
        return model

    return load


def answers_of(algorithm, state, clients):
    return [algorithm.predict(state, client, client.evaluation["test"]) for client in clients]


@pytest.fixture(scope="module")
def averaged(small):
    """FedAvg's last parameters, and what it answers each client."""
    workload = small.workload(epochs=2)
    algorithm = small.algorithm("fedavg", workload)
    state = small.run(algorithm).state
    return workload.server_params(state), answers_of(algorithm, state, small.clients)


def test_fine_tuning_is_local_training_of_fedavgs_model(small, averaged):
    params, _ = averaged
    load = begun_from(small, params)
    workload = small.workload(load, epochs=2)
    algorithm = small.algorithm("fedsplitbert", workload, critical_layer=0)
    run = small.run(algorithm, rounds=1)
    for client, found in zip(small.clients, answers_of(algorithm, run.state, small.clients), strict=True):
        model = load()
        model.write(params)
        names = sorted(model.groups.names - model.groups.embeddings)
        workload.training.run(model, client.train, names, 1, client.id)
        np.testing.assert_array_equal(found, model.predict(client.evaluation["test"], 64, None))


def labelled(labels) -> Subset:
    """Texts of one token with these labels."""
    labels = np.asarray(labels)
    tokens = np.ones(len(labels), dtype=np.int32)
    return Subset(
        Examples(tokens, tokens * 0, np.arange(len(labels) + 1), labels, padding_id=0), np.arange(len(labels))
    )


def of_counts(counts) -> Subset:
    return labelled(np.repeat(np.arange(len(counts)), counts))


def test_logits_are_adjusted_by_hand():
    objective, known = Classification(2), of_counts((1, 5))
    everyone = {"classes": torch.tensor([7, 7], dtype=torch.int32)}  # smoothed: a half each, against 2/8 and 6/8
    answers = objective.with_prior(np.array([[0.5, 0.0], [9.0, -1.0]], np.float32), known, everyone)
    adjustment = [math.log(1 / 4) - math.log(1 / 2), math.log(3 / 4) - math.log(1 / 2)]
    np.testing.assert_allclose(answers, np.add([[0.5, 0.0], [9.0, -1.0]], adjustment), rtol=1e-6)
    assert answers.dtype == np.float32
    assert answers.argmax(1).tolist() == [1, 0]


def prior_of(small, averaged, **options):
    return small.algorithm("local_prior", small.workload(begun_from(small, averaged[0], **options), **options))


def test_label_counts_alone_cross(small, averaged):
    ledger = small.run(prior_of(small, averaged), rounds=1).channel.ledger
    assert sorted(row for row in ledger.rows if row.round) == sorted(
        (1, client.id, direction, "counts", 2, 8, 1) for client in small.clients for direction in ("up", "down")
    )
    model = small.load()
    assert ledger.setup_bytes == 4 * 3 * sum(parameter.numel() for parameter in model.parameters.values())
