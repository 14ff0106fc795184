"""FedBFPT: which layers stand in a client's model, which of them is trained, and what that changes and sends."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
import torch

from fedsim.algorithms.fedbfpt import layers_by_round
from fedsim.objectives import MaskedLM, Vocabulary

NUMBER = re.compile(r"\.layer\.(\d+)\.")
DEPTH, CLIENTS, ROUNDS = 4, 3, 5
LM = MaskedLM(60, Vocabulary(60, np.arange(10, 60), mask_id=3))
DECODER = "encoder.embeddings.word_embeddings.weight"


def layer_of(name: str) -> int | None:
    found = NUMBER.search(name)
    return int(found[1]) if found else None


def standing(plan) -> tuple[int, ...]:
    """The server's layers in a client's model, from the bottom."""
    pairs = {(layer_of(name), layer_of(target)) for name, target in plan.view.items()}
    return tuple(target for own, target in sorted(pair for pair in pairs if pair[0] is not None))


@pytest.fixture
def workload_of(deep):
    """A workload of five rounds of masked language modelling, on four layers."""

    def build(**changes):
        values = {"head": "masked-lm", "objective": LM, "rounds": ROUNDS, "batch_size": 8, **changes}
        return deep.workload(**values)

    return build


@pytest.fixture
def method(deep, workload_of):
    """FedBFPT with two local layers, and its workload."""

    def build(workload=None, local_layers=2, **options):
        return deep.algorithm("fedbfpt", workload or workload_of(), local_layers=local_layers, **options)

    return build


@pytest.fixture
def run(deep):
    def runs(algorithm, **engine):
        return deep.run(
            algorithm, score=lambda answers, subset: {"sum": float(answers.sum())}, **{"rounds": ROUNDS, **engine}
        )

    return runs


def test_a_round_is_that_of_the_hand_built_model(deep, small, method, workload_of, run, assert_same_tensors):
    """Of one client in two rounds, by a model of two layers into which weights are copied by hand."""
    workload = workload_of()
    algorithm, client = method(replace(workload, clients=1)), deep.clients[0]
    found = run(algorithm, clients=[client], rounds=2)

    server, losses = dict(workload.initial), []
    for number in (1, 2):
        (_, above) = standing(algorithm.plan(number, 0))
        model = type(small)(depth=2).load(head="masked-lm", objective=LM)
        names = {name: name.replace(".layer.1.", f".layer.{above}.") for name in model.parameters}
        model.write({name: server[target] for name, target in names.items()})
        trained = sorted(name for name in names if layer_of(name) == 0 or name.startswith("head."))
        losses.append(workload.training.run(model, client.train, trained, number, 0))
        server |= model.snapshot(trained)  # layer 0 and the head have the server's names
    assert [result.metrics.train_loss for result in found.results] == losses
    assert_same_tensors(algorithm.server(found.state), server)


# Options -> the server's layers that each of five rounds changes (of two local layers of four); None: any above 0
CHANGED = {
    "fedbfpt": ({}, [{0}, {0}, {0}, {1}, {1}]),
    "without progressive learning": ({"schedule": "first"}, [{0}] * 5),
    "without mapping": ({"deeper": "first"}, [{0}, {0}, {0}, {1}, {1}]),
    "without sampling in each round": ({"resampled": "layer"}, [{0}, {0}, {0}, {1}, {1}]),
    "a round for each layer": ({"schedule": "successive"}, [{0}, {1}, {1}, {1}, {1}]),
    "the deepest layer alone": ({"schedule": "last"}, [{1}] * 5),
    "the authors' draw": ({"draw": "official"}, [{0}, {0}, {0}, {1}, {1}]),
    "all": ({"trained": "all"}, None),
    "all of the first": ({"trained": "all", "deeper": "first"}, [{0, 1}] * 5),
}


@pytest.mark.parametrize("case", CHANGED)
def test_only_what_is_scheduled_changes_on_the_server(method, workload_of, run, case):
    options, expected = CHANGED[case]
    workload = workload_of()
    algorithm = method(workload, **options)
    states = [dict(workload.initial)]
    run(algorithm, on_round=lambda found: states.append(algorithm.server(found.state)))
    for number, (before, after) in enumerate(pairwise(states), start=1):
        moved = {name for name in before if not torch.equal(before[name], after[name])}
        layers = {layer_of(name) for name in moved} - {None}
        if expected is not None:
            assert layers == expected[number - 1]
        else:
            views = [standing(algorithm.plan(number, client)) for client in range(CLIENTS)]
            assert layers == {layer for view in views for layer in view}
        parts = workload.model.groups
        assert parts.head <= moved
        assert (DECODER in moved) == ("trained" in options)
        assert bool(parts.embeddings & moved) == ("trained" in options)


def test_with_all_layers_and_all_trained_it_is_federated_averaging(deep, workload_of, run, assert_same_tensors):
    changes = {"rounds": 3, "batch_size": 4}
    whole = deep.algorithm("fedbfpt", workload_of(**changes), local_layers=DEPTH, trained="all", weights="size")
    fedavg = deep.algorithm("fedavg", workload_of(**changes), embeddings="global")
    one, other = (run(algorithm, rounds=3) for algorithm in (whole, fedavg))
    assert_same_tensors(whole.server(one.state), fedavg.server(other.state))
    assert one.results == other.results
    sent = [[run.channel.ledger.total_bytes(way, number) for number in (1, 2, 3)] for run in (one, other)
            for way in ("up", "down")]  # fmt: skip
    assert sent[0] == sent[2] == sent[3]
    assert sent[1] == [0, *sent[3][1:]]  # every client has the pre-trained model already


@pytest.mark.parametrize("participation", [1.0, 0.34])
@pytest.mark.parametrize("options", [{}, {"schedule": "successive"}, {"local_layers": [2, 3, 4], "trained": "all"}])
def test_client_trains_on_what_it_was_given_before(
    deep, workload_of, recording_channel, assert_same_tensors, monkeypatch, options, participation
):
    """The pre-trained model, and all that it has downloaded since."""
    workload, channel = workload_of(participation=participation), recording_channel()
    algorithm = deep.algorithm("fedbfpt", workload, **{"local_layers": 2, **options})
    pools = {client: dict(workload.initial) for client in range(CLIENTS)}
    trained = []
    train = type(workload.training).run

    def watched(self, model, subset, names, number, client, *rest, **others):
        view = algorithm.plan(number, client).view
        received = channel.received[number, client, "down"]
        pools[client] |= {view[name]: tensor for name, tensor in received.items()}
        assert_same_tensors(model.read(view), {name: pools[client][target] for name, target in view.items()})
        trained.append((number, client))
        return train(self, model, subset, names, number, client, *rest, **others)

    monkeypatch.setattr(type(workload.training), "run", watched)
    deep.run(algorithm, rounds=ROUNDS, channel=channel, participation=participation, score=lambda *_: {})
    assert len(trained) == ROUNDS * round(participation * CLIENTS)


@pytest.mark.parametrize(
    ("rounds", "permitted", "schedule", "expected"),
    [
        (5, 6, "progressive", (0, 0, 0, 1, 2)),  # the authors' five
        (10, 2, "progressive", (0, 0, 0, 0, 0, 1, 1, 1, 1, 1)),
        (5, 6, "first", (0, 0, 0, 0, 0)),
        (5, 3, "successive", (0, 1, 2, 2, 2)),
        (3, 6, "last", (5, 5, 5)),
    ],
)
def test_schedules_by_hand(rounds, permitted, schedule, expected):
    assert layers_by_round(rounds, permitted, schedule) == expected


@pytest.mark.parametrize("trained", ["layer", "all"])
def test_drawn_layers_lie_above_the_trained_one_in_order(small, trained):
    wide, repeated = type(small)(depth=12), False
    for seed in range(5):
        workload = wide.workload(rounds=ROUNDS, seed=seed)
        algorithm = wide.algorithm("fedbfpt", workload, local_layers=6, trained=trained)
        for number, client in product(range(1, ROUNDS + 1), range(CLIENTS)):
            layers = standing(algorithm.plan(number, client))
            layer = layers_by_round(ROUNDS, 6, "progressive")[number - 1]
            assert layers[: layer + 1] == tuple(range(layer + 1))
            assert len(layers) == 6
            assert list(layers) == sorted(layers)
            assert layer < min(layers[layer + 1 :]) <= max(layers) <= 11
            repeated |= len(set(layers)) < 6
    assert repeated == (trained == "layer")  # "[5, 5, 9]" in the paper's text; two copies could not both be written
