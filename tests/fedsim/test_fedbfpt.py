"""FedBFPT: which layers stand in a client's model, which of them is trained, and what that changes and sends."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from fedsim.checkpoint import Checkpoint
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
def setting_of(deep):
    """A setting of five rounds of masked language modelling, on four layers."""

    def build(**changes):
        values = {"head": "masked-lm", "objective": LM, "rounds": ROUNDS, "batch_size": 8, **changes}
        return deep.setting(**values)

    return build


@pytest.fixture
def method(deep, setting_of):
    """FedBFPT with two local layers, and its setting."""

    def build(setting=None, local_layers=2, **options):
        return deep.algorithm("fedbfpt", setting or setting_of(), local_layers=local_layers, **options)

    return build


@pytest.fixture
def run(deep):
    def runs(algorithm, **engine):
        return deep.run(
            algorithm, score=lambda answers, subset: {"sum": float(answers.sum())}, **{"rounds": ROUNDS, **engine}
        )

    return runs


# ---- a client's model ------------------------------------------------------------------------------------------


def test_a_round_is_that_of_the_hand_built_model(deep, small, method, setting_of, run, assert_same_tensors):
    """Of one client in two rounds, by a model of two layers into which weights are copied by hand."""
    setting = setting_of()
    algorithm, client = method(replace(setting, clients=1)), deep.clients[0]
    found = run(algorithm, clients=[client], rounds=2)

    server, losses = dict(setting.initial), []
    for number in (1, 2):
        (_, above) = standing(algorithm.plan(number, 0))
        model = type(small)(depth=2).load(head="masked-lm", objective=LM)
        names = {name: name.replace(".layer.1.", f".layer.{above}.") for name in model.parameters}
        model.write({name: server[target] for name, target in names.items()})
        trained = sorted(name for name in names if layer_of(name) == 0 or name.startswith("head."))
        losses.append(setting.training.run(model, client.train, trained, number, 0))
        server |= model.snapshot(trained)  # layer 0 and the head have the server's names
    assert [result.metrics.train_loss for result in found.results] == losses
    assert_same_tensors(algorithm.server(found.state), server)


# ---- what changes ----------------------------------------------------------------------------------------------

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
def test_only_what_is_scheduled_changes_on_the_server(method, setting_of, run, case):
    options, expected = CHANGED[case]
    setting = setting_of()
    algorithm = method(setting, **options)
    states = [dict(setting.initial)]
    run(algorithm, on_round=lambda found: states.append(algorithm.server(found.state)))
    for number, (before, after) in enumerate(pairwise(states), start=1):
        moved = {name for name in before if not torch.equal(before[name], after[name])}
        layers = {layer_of(name) for name in moved} - {None}
        if expected is not None:
            assert layers == expected[number - 1]
        else:
            views = [standing(algorithm.plan(number, client)) for client in range(CLIENTS)]
            assert layers == {layer for view in views for layer in view}
        parts = setting.model.groups
        assert parts.head <= moved
        assert (DECODER in moved) == ("trained" in options)
        assert bool(parts.embeddings & moved) == ("trained" in options)


def test_with_all_layers_and_all_trained_it_is_federated_averaging(deep, setting_of, run, assert_same_tensors):
    changes = {"rounds": 3, "batch_size": 4}
    whole = deep.algorithm("fedbfpt", setting_of(**changes), local_layers=DEPTH, trained="all", weights="size")
    fedavg = deep.algorithm("fedavg", setting_of(**changes), embeddings="global")
    one, other = (run(algorithm, rounds=3) for algorithm in (whole, fedavg))
    assert_same_tensors(whole.server(one.state), fedavg.server(other.state))
    assert one.results == other.results
    sent = [[run.channel.ledger.total_bytes(way, number) for number in (1, 2, 3)] for run in (one, other)
            for way in ("up", "down")]  # fmt: skip
    assert sent[0] == sent[2] == sent[3]
    assert sent[1] == [0, *sent[3][1:]]  # every client has the pre-trained model already


@pytest.mark.parametrize("weights", ["uniform", "size"])
def test_the_mean_is_of_equation_1_or_weighted_by_size(deep, method, setting_of, run, recording_channel, weights):
    channel = recording_channel()
    algorithm = method(weights=weights)
    found = run(algorithm, channel=channel, rounds=1)
    sizes = np.array([len(client.train) if weights == "size" else 1 for client in deep.clients])
    for name, merged in found.state.shared.items():
        sent = torch.stack([channel.received[1, client, "up"][name].double() for client in range(CLIENTS)])
        expected = (torch.tensor(sizes / sizes.sum()).view(-1, *[1] * merged.ndim) * sent).sum(0)
        torch.testing.assert_close(merged.double(), expected, rtol=0, atol=1e-6)


# ---- what is sent ----------------------------------------------------------------------------------------------


def test_bytes_of_each_round_are_the_closed_form(deep, method, setting_of, run):
    setting = setting_of()
    found = run(method(setting))
    parts = setting.model.groups
    size = 4 * sum(setting.initial[name].numel() for name in parts.layers[0] | parts.head)
    ledger = found.channel.ledger
    for number in range(1, ROUNDS + 1):
        rows = {(row.client, row.direction): row.bytes for row in ledger.rows if row.round == number}
        down = {(client, "down"): size for client in range(CLIENTS)} if number > 1 else {}
        assert rows == {(client, "up"): size for client in range(CLIENTS)} | down
    assert ledger.setup_bytes == CLIENTS * 4 * sum(tensor.numel() for tensor in setting.initial.values())


# ---- runs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"local_layers": [2, 3, 4], "trained": "all"}])
def test_resumed_after_any_round_it_is_uninterrupted(method, run, assert_same_run, tmp_path, options):
    whole = run(method(**options))
    for stop in range(1, ROUNDS):
        folder = tmp_path / str(stop)
        folder.mkdir()
        run(method(**options), rounds=stop, checkpoint=Checkpoint(folder, "a run"))
        assert_same_run(run(method(**options), checkpoint=Checkpoint(folder, "a run")), whole)
