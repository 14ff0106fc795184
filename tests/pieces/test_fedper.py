"""FedPer: every layer is averaged, every client keeps a head of its own."""

from __future__ import annotations

import itertools

import torch

from fedsim.algorithms import Workload, build_algorithm
from fedsim.algorithms.fedper import fedper
from fedsim.checkpoint import Checkpoint
from fedsim.engine import FederatedAlgorithm


def as_printed(setting: Workload, **options) -> FederatedAlgorithm:
    """The paper's: base layers are all that is not the head, the embeddings too."""
    return fedper(setting, embeddings="global", **options)


def test_no_head_crosses_the_wire(small, watched):
    setting, channel = small.setting(), watched()
    run = small.run(as_printed(setting), channel, rounds=2)
    parts = setting.model.groups
    assert channel.names == parts.names - parts.head
    assert run.state.shared.keys() == parts.names - parts.head  # nor does the server have one


def test_bytes_are_those_of_the_base_layers(small):
    ledger = small.run(as_printed(small.setting()), rounds=2).channel.ledger
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
    algorithm = as_printed(setting)
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
    whole = small.run(as_printed(small.setting()), rounds=3)
    small.run(as_printed(small.setting()), rounds=1, checkpoint=Checkpoint(tmp_path, "fedper"))
    resumed = small.run(as_printed(small.setting()), rounds=3, checkpoint=Checkpoint(tmp_path, "fedper"))
    assert resumed.results == whole.results  # the scores of every round, to the last bit
    assert resumed.channel.ledger.rows == whole.channel.ledger.rows
    for client in small.clients:
        kept, expected = resumed.state.clients.get(client.id), whole.state.clients.get(client.id)
        assert kept.keys() == expected.keys()
        assert all(torch.equal(kept[name], expected[name]) for name in kept)


def test_one_client_alone_is_fedavg(small):
    """Whose head stays where it is."""
    alone = small.clients[:1]
    runs = [
        small.run(build_algorithm(name, small.setting(), {}), clients=alone, rounds=3) for name in ("fedper", "fedavg")
    ]
    assert runs[0].results == runs[1].results
