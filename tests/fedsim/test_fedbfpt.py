"""FedBFPT: the layers of a client's model, the trained one, and what changes and is sent."""

from dataclasses import replace
from itertools import pairwise, product

import pytest
import torch

from fedsim.algorithms.fedbfpt import layers_by_round
from tests.fedsim.conftest import MASKED, Small, assert_same_tensors, layer_of

DEPTH, CLIENTS, ROUNDS = 4, 3, 5
DECODER = "encoder.embeddings.word_embeddings.weight"


def standing(plan) -> tuple[int, ...]:
    """The server's layers in a client's model, from the bottom."""
    pairs = {(layer_of(name), layer_of(target)) for name, target in plan.view.items()}
    return tuple(target for layer, target in sorted(pair for pair in pairs if pair[0] is not None))


def workload_of(deep, **changes):
    """Five rounds of masked language modelling, on four layers."""
    return deep.workload(**{"head": "masked-lm", "objective": MASKED, "rounds": ROUNDS, "batch_size": 8, **changes})


def test_a_round_is_that_of_the_hand_built_model(deep):
    """One client in two rounds, compared with a model of two layers with weights copied by hand."""
    workload, client = workload_of(deep, clients=1), deep.clients[0]
    algorithm = deep.algorithm("fedbfpt", workload, local_layers=2)
    outcome = deep.run(algorithm, clients=[client])
    server, losses = dict(workload.initial), []
    for number in (1, 2):
        (_, above) = standing(algorithm.plan(number, 0))
        model = Small(num_hidden_layers=2).load(MASKED, "masked-lm")
        names = {name: name.replace(".layer.1.", f".layer.{above}.") for name in model.parameters}
        model.write({name: server[target] for name, target in names.items()})
        trained = sorted(name for name in names if layer_of(name) == 0 or name.startswith("head."))
        losses.append(workload.training.run(model, client.train, trained, number, 0))
        server |= model.snapshot(trained)  # layer 0 and the head have the server's names
    assert [result.metrics.train_loss for result in outcome.results] == losses
    assert_same_tensors(algorithm.server(outcome.state), server)


# Options, and the server's layers that each of five rounds changes, of two local layers of four; None: any above 0.
CHANGED = [
    ({}, [{0}, {0}, {0}, {1}, {1}]),
    ({"schedule": "first"}, [{0}] * 5),
    ({"deeper": "first"}, [{0}, {0}, {0}, {1}, {1}]),
    ({"resampled": "layer"}, [{0}, {0}, {0}, {1}, {1}]),
    ({"schedule": "successive"}, [{0}, {1}, {1}, {1}, {1}]),
    ({"schedule": "last"}, [{1}] * 5),
    ({"draw": "official"}, [{0}, {0}, {0}, {1}, {1}]),
    ({"trained": "all"}, None),
    ({"trained": "all", "deeper": "first"}, [{0, 1}] * 5),
]


@pytest.mark.parametrize(("options", "expected"), CHANGED)
def test_only_what_is_scheduled_changes_on_the_server(deep, options, expected):
    workload = workload_of(deep)
    algorithm, parts = deep.algorithm("fedbfpt", workload, local_layers=2, **options), workload.model.groups
    states = [dict(workload.initial)]
    deep.run(algorithm, rounds=ROUNDS, on_round=lambda outcome: states.append(algorithm.server(outcome.state)))
    for number, (before, after) in enumerate(pairwise(states), start=1):
        moved = {name for name in before if not torch.equal(before[name], after[name])}
        views = [standing(algorithm.plan(number, client)) for client in range(CLIENTS)]
        everywhere = {layer for view in views for layer in view}
        assert {layer_of(name) for name in moved} - {None} == (expected[number - 1] if expected else everywhere)
        assert parts.head <= moved
        assert (DECODER in moved) == ("trained" in options)
        assert bool(parts.embeddings & moved) == ("trained" in options)


def test_with_all_layers_and_all_trained_it_is_federated_averaging(deep):
    changes = {"rounds": 3, "batch_size": 4}
    whole = deep.algorithm("fedbfpt", workload_of(deep, **changes), local_layers=DEPTH, trained="all", weights="size")
    fedavg = deep.algorithm("fedavg", workload_of(deep, **changes), embeddings="global")
    one, other = (deep.run(algorithm, rounds=3) for algorithm in (whole, fedavg))
    assert_same_tensors(whole.server(one.state), fedavg.server(other.state))
    assert one.results == other.results
    up, down, *rest = (
        [outcome.channel.ledger.total_bytes(way, number) for number in (1, 2, 3)]
        for outcome in (one, other)
        for way in ("up", "down")
    )
    assert rest == [up, up]
    assert down == [0, *up[1:]]  # every client has the pre-trained model already


@pytest.mark.parametrize("participation", [1.0, 0.34])
@pytest.mark.parametrize("options", [{}, {"schedule": "successive"}, {"local_layers": [2, 3, 4], "trained": "all"}])
def test_a_client_trains_on_what_it_was_given_before(deep, options, participation):
    """The pre-trained model with all later downloads."""
    trained = []

    def watched(compute, updates):
        for update in updates:
            number, client = update.round, update.client.id
            view = algorithm.plan(number, client).view
            received = {view[name]: tensor for name, tensor in update.received.items()}
            pools[client] |= received
            begins = workload.initial | update.shared | received
            assert_same_tensors(*({name: each[name] for name in view.values()} for each in (begins, pools[client])))
            trained.append((number, client))
            yield compute(update)

    workload = replace(workload_of(deep, participation=participation), map_clients=watched)
    algorithm = deep.algorithm("fedbfpt", workload, **{"local_layers": 2, **options})
    pools = {client: dict(workload.initial) for client in range(CLIENTS)}
    deep.run(algorithm, rounds=ROUNDS, participation=participation)
    assert len(trained) == ROUNDS * round(participation * CLIENTS)


@pytest.mark.parametrize("trained", ["layer", "all"])
def test_drawn_layers_lie_above_the_trained_one_in_order(trained):
    wide, repeated = Small(num_hidden_layers=12), False
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
