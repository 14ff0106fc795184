"""Frozen encoders and central training: what never changes, what is sent, and what must be equal to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from fedsim.data import Client, Subset
from fedsim.wire import Channel


def test_frozen_tensors_never_change_a_bit_and_never_cross(small):
    setting = small.setting(epochs=2, batch_size=4)
    before = setting.model.snapshot(setting.model.parameters)
    channel = Channel()
    run = small.run(small.algorithm("fedfreezebert", setting), channel=channel)
    head = setting.model.groups.head
    assert set(run.state.shared) == head
    for name, tensor in setting.model.parameters.items():
        assert torch.equal(tensor, before[name]) == (name not in head)
    values = sum(before[name].numel() for name in head)
    sent = [row for row in channel.ledger.rows if row.round > 0]
    assert {(row.values, row.bytes) for row in sent} == {(values, 4 * values)}
    assert len(sent) == 2 * 2 * len(small.clients)  # equation 1: down and up, rounds, clients


def test_one_client_is_central_training_of_the_head(small):
    def run(name, **options):
        setting = small.setting(epochs=3, batch_size=4)
        return small.run(small.algorithm(name, setting, **options), clients=small.clients[1:2], rounds=2)

    frozen, central = run("fedfreezebert"), run("central", train="head")
    assert [result.metrics for result in frozen.results] == [result.metrics for result in central.results]
    assert [result.client_scores for result in frozen.results] == [result.client_scores for result in central.results]
    assert set(frozen.state.shared) == set(central.state.shared)
    for name, tensor in frozen.state.shared.items():
        assert torch.equal(tensor, central.state.shared[name])


def test_central_training_sees_every_clients_examples_and_sends_nothing(small):
    channel = Channel()
    merged = Client(0, Subset(small.examples, np.concatenate([c.train.indices for c in small.clients])), {})
    together = small.run(small.algorithm("central", small.setting(batch_size=4)), channel=channel)
    alone = small.run(small.algorithm("central", small.setting(batch_size=4)), clients=[merged])
    assert channel.ledger.rows == []
    assert all(torch.equal(together.state.shared[name], tensor) for name, tensor in alone.state.shared.items())


def test_a_global_model_answers_a_common_test_set_once(small):
    common = small.clients[0].evaluation["test"]
    clients = [Client(client.id, client.train, {"test": common}) for client in small.clients]
    asked = []

    def run(name, **options):
        algorithm = small.algorithm(name, **options)
        asked.clear()
        watched = _watched(algorithm, asked)
        return small.run(watched, clients=clients, rounds=1)

    result = run("fedavg").results[0]
    assert len(asked) == 1
    assert len(result.client_scores) == len(clients)
    assert len({str(scores) for scores in result.client_scores}) == 1
    run("fedsplitbert", critical_layer=1)
    assert len(asked) == len(clients)


def _watched(algorithm, asked):
    def predict(state, client, subset):
        asked.append(client.id)
        return algorithm.predict(state, client, subset)

    return replace(algorithm, predict=predict)
