"""Split learning (Gupta and Raskar 2018): the network is cut between client and server, who meet on every batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fedsim.algorithms import Workload, build_algorithm
from fedsim.data import Batch, Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.split import crossing
from fedsim.rng import torch_seeded
from fedsim.store import ClientStore
from fedsim.training import Optimizer
from fedsim.wire import Channel


def split_learning(setting: Workload, cut: int = 1) -> FederatedAlgorithm:
    """Clients in turn train F_a, embeddings and layers 1 … cut, with a server that has F_b, all above.

    Each takes F_a over from the one before, by way of the server; the labels are the server's to know.
    """
    model, training = setting.model, setting.training
    parts = model.groups
    f_a = sorted(parts.embeddings | parts.up_to(cut))
    f_b = sorted(parts.names.difference(f_a))

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        return FederationState(0, {}, {}, store)

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        model.write(setting.server_params(state))
        losses = tuple(turn(client, state.round + 1, channel) for client in cohort)
        mean = float(np.average(losses, weights=[len(client.train) for client in cohort]))
        learned = FederationState(state.round + 1, model.snapshot(parts.names), {}, state.clients)
        return learned, RoundMetrics(losses, mean)

    def turn(client: Client, number: int, channel: Channel) -> float:
        model.write(channel.to_client(client.id, model.read(f_a)))
        a, b = (training.optimizer_of(model, names, client.train, number) for names in (f_a, f_b))
        model.set_trained(f_a + f_b)
        model.network.train()
        total = 0.0
        with torch_seeded(training.seed, number, client.id, "dropout"):
            for batch in training.batches(client.train, model.objective, number, client.id):
                total += step(client.id, batch, a, b, channel) * len(batch["labels"])
        model.write(channel.to_server(client.id, model.read(f_a)))
        return total / (training.config.local_epochs * len(client.train))

    def step(client: int, batch: Batch, a: Optimizer, b: Optimizer, channel: Channel) -> float:
        crossed: dict[str, Tensor] = {}

        def to_server(x_BSD: Tensor) -> Tensor:
            crossed["sent"] = x_BSD
            crossed["received"] = channel.to_server(client, {"x": x_BSD}, "activations")["x"].requires_grad_()
            return crossed["received"]

        known = channel.to_server(client, {"labels": batch["labels"]}, "labels")
        mask = channel.to_server(client, {"mask": batch["attention_mask"].bool()}, "masks")["mask"]
        with crossing(model, cut, to_server):
            loss = model.loss({**batch, **known, "attention_mask": mask.long()})
        b.backward(loss)
        gradient = channel.to_client(client, {"x": b.gradient(crossed["received"])}, "gradients")["x"]
        a.backward(crossed["sent"], gradient)
        a.step()
        b.step()
        return loss.item()

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        model.write(setting.server_params(state))
        return model.predict(subset, setting.evaluation_batch_size, training.width)

    return FederatedAlgorithm(init, round, predict, personal=False, server=setting.server_params)


@pytest.mark.parametrize("cut", [0, 1, 3])
def test_with_one_client_it_is_central_training(small, cut):
    alone: Any = small.clients[:1]  # dropout and weight decay included
    # Behind the last layer all tokens' states cross, and the packed layers compute those alone that the head reads.
    kernels = "reference" if cut == 3 else "packed"
    settings = [small.setting(epochs=2, schedule="linear", warmup=0.2, rounds=2, kernels=kernels) for _ in range(2)]
    split = small.run(split_learning(settings[0], cut), clients=alone)
    central = small.run(build_algorithm("central", settings[1], {"embeddings": "global"}), clients=alone)
    assert all(torch.equal(split.state.shared[name], value) for name, value in central.state.shared.items())
    assert [result.client_scores for result in split.results] == [result.client_scores for result in central.results]
    losses = [[result.metrics.train_loss for result in run.results] for run in (split, central)]
    assert losses[0] == pytest.approx(losses[1])


@pytest.mark.parametrize(("codec", "size"), [("fp32", 4), ("fp16", 2)])
def test_every_batch_is_a_message_of_known_bytes(small, codec, size):
    batch, padded, epochs = 4, small.positions, 2
    setting = small.setting(batch_size=batch, width=padded, epochs=epochs)
    ledger = small.run(split_learning(setting), Channel(codec), rounds=2).channel.ledger
    f_a = small.embeddings + small.layer
    expected = set()
    for client in small.clients:
        texts, messages = epochs * len(client.train), epochs * -(-len(client.train) // batch)
        states = texts * padded * small.width
        expected |= {
            (client.id, "up", "activations", states, size * states, messages),
            (client.id, "down", "gradients", states, size * states, messages),
            (client.id, "up", "labels", texts, 8 * texts, messages),
            (client.id, "up", "masks", texts * padded, texts * padded, messages),
            (client.id, "down", "parameters", f_a, size * f_a, 1),
            (client.id, "up", "parameters", f_a, size * f_a, 1),
        }
    for number in (1, 2):
        assert {row[1:] for row in ledger.rows if row.round == number} == expected
