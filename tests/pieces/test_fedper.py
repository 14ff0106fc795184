"""FedPer (Arivazhagan et al. 2019): the base layers are averaged, every client keeps a head of its own."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from fedsim.algorithms import Setting
from fedsim.algorithms.averaging import averaging
from fedsim.checkpoint import Checkpoint
from fedsim.engine import FederatedAlgorithm
from fedsim.plan import ClientId, ExchangePlan, identity_plan


def fedper(setting: Setting, **server: Any) -> FederatedAlgorithm:
    """Algorithms 1 and 2: base layers W_B go down, are trained and go up; personalization layers W_P stay."""
    model = setting.model.groups
    exchange = identity_plan(model.names, shared=model.names - model.head, local=model.head)

    def plan(round: int, client: ClientId) -> ExchangePlan:
        return exchange

    return averaging(setting, plan, server)


def test_no_head_crosses_the_wire(small, watched):
    setting, channel = small.setting(), watched()
    run = small.run(fedper(setting), channel, rounds=2)
    parts = setting.model.groups
    assert channel.names == parts.names - parts.head
    assert run.state.shared.keys() == parts.names - parts.head  # nor does the server have one


def test_bytes_are_those_of_the_base_layers(small):
    ledger = small.run(fedper(small.setting()), rounds=2).channel.ledger
    base = 4 * (small.embeddings + small.layers * small.layer)
    assert [row for row in ledger.rows if row.round] == [
        (number, client.id, direction, "parameters", base // 4, base, 1)
        for number in (1, 2)
        for client in small.clients
        for direction in ("down", "up")
    ]
    assert ledger.setup_bytes == len(small.clients) * (base + 4 * small.head)


def test_every_client_has_a_head_of_its_own_and_answers_with_it(small):
    setting = small.setting(epochs=3)
    algorithm = fedper(setting)
    state = small.run(algorithm).state
    heads = {client.id: state.clients.get(client.id) for client in small.clients}
    assert all(head.keys() == setting.model.groups.head for head in heads.values())
    for one, other in itertools.combinations(heads.values(), 2):
        assert all(not torch.equal(one[name], other[name]) for name in one)
    for client in small.clients:
        part = client.evaluation["test"]
        answers = algorithm.predict(state, client, part)
        setting.model.write(setting.initial | state.shared | heads[client.id])
        assert (setting.model.predict(part, 64, None) == answers).all()


def test_a_resumed_run_is_the_uninterrupted_one(small, tmp_path):
    whole = small.run(fedper(small.setting()), rounds=3)
    small.run(fedper(small.setting()), rounds=1, checkpoint=Checkpoint(tmp_path, "fedper"))
    resumed = small.run(fedper(small.setting()), rounds=3, checkpoint=Checkpoint(tmp_path, "fedper"))
    assert resumed.results == whole.results  # the scores of every round, to the last bit
    assert resumed.channel.ledger.rows == whole.channel.ledger.rows
    for client in small.clients:
        kept, expected = resumed.state.clients.get(client.id), whole.state.clients.get(client.id)
        assert kept.keys() == expected.keys()
        assert all(torch.equal(kept[name], expected[name]) for name in kept)


def test_a_server_optimiser_is_an_argument(small):
    plain, adam = (small.run(fedper(small.setting(), **server)) for server in ({}, {"name": "adam"}))
    assert adam.state.moments.keys() == {"m", "v"}
    assert plain.results != adam.results
