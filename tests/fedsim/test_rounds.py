"""One round: rejected plans, cohorts, the weighted mean, server optimisers, and local tensors."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim.algorithms import build_algorithm
from fedsim.algorithms.averaging import averaging
from fedsim.data import Client, Subset
from fedsim.engine import draw_cohort
from fedsim.errors import DivergedError, FederationError
from fedsim.plan import ExchangePlan
from fedsim.server import ServerOptimizer
from tests.fedsim.conftest import NUMBER, layer_of

VIEW = {"a": "A", "b": "B", "c": "C"}
VALID = {"download": "a", "train": "ab", "upload": "a", "local": "b"}


def plan(view=VIEW, **roles):
    return ExchangePlan(view, **{role: frozenset(names) for role, names in {**VALID, **roles}.items()})


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        *(({role: {*VALID[role], "x"}}, f"{role}: expected parameters of the view, found x") for role in VALID),
        ({"upload": "ab"}, "both uploaded and local, found b"),
        ({"train": "abc"}, "trained parameters uploaded or local, found c"),
        ({"view": {"a": "A", "b": "A"}, "upload": "ab", "local": ""}, "a server parameter for each uploaded one"),
    ],
)
def test_plans_that_make_no_sense_are_refused(roles, message):
    assert plan(download="").upload == {"a"}
    with pytest.raises(FederationError, match=message):
        plan(**roles)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("fedsgd", {}, "unknown algorithm 'fedsgd': expected one of .*fedavg.*fedsplitbert.*local_majority"),
        ("averaging", {}, "unknown algorithm 'averaging'"),
        ("fedavg", {"criticallayer": 1}, "fedavg: unknown option criticallayer; its options: embeddings, server"),
        ("fedsplitbert", {}, "fedsplitbert: missing option critical_layer;"),
        ("fedavg", {"embeddings": "shared"}, "expected one of frozen, global, local, found 'shared'"),
        ("fedsplitbert", {"critical_layer": 4}, "critical layer 4: expected 0 to 3"),
        ("fedavg", {"server": {"name": "adamw"}}, "name: expected 'sgd', 'adam', 'yogi' or 'adagrad', found 'adamw'"),
        ("fedavg", {"server": {"learning_rate": 0.0}}, "learning_rate: expected a number above 0, found 0.0"),
        ("fedavg", {"server": {"learningrate": 1.0}}, "learningrate: expected one of name, learning_rate.*, found an"),
        ("fedavg", {"server": {"name": "adam", "momentum": 0.9}}, "expected momentum only with sgd"),
    ],
)
def test_bad_options_are_refused(small, name, options, message):
    with pytest.raises(FederationError, match=message):
        build_algorithm(name, small.workload(), options)


@pytest.mark.parametrize(
    ("participation", "clients", "size"),
    [(1.0, 7, 7), (0.5, 10, 5), (0.25, 10, 3), (0.24, 10, 2), (0.01, 10, 1)],
)
def test_a_cohort_is_the_rounded_share_in_client_order(participation, clients, size):
    everyone = [Client(number, Subset(None, np.arange(1)), {}) for number in range(clients)]
    ids = [client.id for client in draw_cohort(everyone, participation, seed=0, round=1)]
    assert len(ids) == size
    assert ids == sorted(set(ids))


DEPTHS = {0: (0, 1, 2), 1: (2, 0), 2: (1,)}  # client -> the server's layers in its model, from the bottom


def plan_of(names, layers) -> ExchangePlan:
    """Some of the server's layers and the head go down, are trained and go up."""
    view = {name: name for name in names if layer_of(name) is None}
    for number, target in enumerate(layers):
        view |= {NUMBER.sub(f".layer.{number}.", name): name for name in names if layer_of(name) == target}
    shared = frozenset(name for name in view if layer_of(name) is not None or name.startswith("head."))
    return ExchangePlan(view, shared, shared, shared, frozenset())


@pytest.mark.parametrize("depths", [dict.fromkeys(DEPTHS, DEPTHS[0]), DEPTHS], ids=["one depth", "several depths"])
@pytest.mark.parametrize("participation", [1.0, 0.67])
def test_merged_tensors_are_the_mean_of_those_who_send_them(small, depths, participation):
    uploads = {}

    def recorded(compute, updates):
        for update in updates:
            outcome = compute(update)
            uploads[update.client.id] = {name: tensor.clone() for name, tensor in outcome.uploaded.items()}
            yield outcome

    workload = replace(small.workload(), map_clients=recorded)
    plans = {client: plan_of(workload.model.parameters, layers) for client, layers in depths.items()}
    algorithm = averaging(workload, lambda round, client: plans[client], personal=True)
    run = small.run(algorithm, rounds=1, participation=participation)
    result = run.results[0]
    sizes = {client: len(small.clients[client].train) for client in result.cohort}
    assert len(sizes) == round(3 * participation)
    for target, merged in run.state.shared.items():
        sent = {
            client: uploads[client][name]
            for client in result.cohort
            for name in plans[client].upload
            if plans[client].view[name] == target
        }
        assert set(sent) == {client for client in result.cohort if layer_of(target) in (None, *depths[client])}
        total = sum(sizes[client] for client in sent)
        expected = sum(tensor.double() * sizes[client] / total for client, tensor in sent.items())
        torch.testing.assert_close(merged.double(), expected, rtol=0, atol=1e-6)
    metrics = result.metrics
    assert metrics.train_loss == pytest.approx(np.average(metrics.client_losses, weights=list(sizes.values())))


BETA2, TAU, ETA = 0.99, 1e-3, 0.1


def second_moment(name: str, v: float, delta: float) -> float:
    """Lines 11 to 13 of Algorithm 2 of Reddi et al. (2021)."""
    square = delta * delta
    if name == "adagrad":
        return v + square
    if name == "yogi":
        return v - (1 - BETA2) * square * math.copysign(1, v - square)
    return BETA2 * v + (1 - BETA2) * square


@pytest.mark.parametrize(("name", "beta1"), [("adam", 0.9), ("yogi", 0.9), ("adagrad", 0.0)])
@pytest.mark.parametrize("means", [(1.5, 1.2), (1.0004, 1.0003)])
def test_two_steps_of_a_server_optimiser_by_hand(name, beta1, means):
    """The second pair first moves by less than tau, so both of Yogi's signs occur."""
    x, m, v = 1.0, 0.0, TAU**2
    optimizer = ServerOptimizer(name, learning_rate=ETA)
    current, moments = {"w": torch.tensor([x], dtype=torch.float64)}, {}
    for mean in means:
        delta = mean - x
        m = beta1 * m + (1 - beta1) * delta
        v = second_moment(name, v, delta)
        x = x + ETA * m / (math.sqrt(v) + TAU)
        current, moments = optimizer.step(current, {"w": torch.tensor([mean], dtype=torch.float64)}, moments)
        values = [tensor.item() for tensor in (current["w"], moments["m"]["w"], moments["v"]["w"])]
        assert values == pytest.approx([x, m, v], rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=5), st.floats(0.01, 0.99), st.booleans())
def test_server_momentum_is_that_of_pytorch(means, momentum, nesterov):
    """DiLoCo's outer optimiser is PyTorch's SGD on the pseudo-gradient, from the mean to the server."""
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    theirs = torch.optim.SGD([weight], lr=0.7, momentum=momentum, nesterov=nesterov)
    ours = ServerOptimizer("sgd", 0.7, momentum=momentum, nesterov=nesterov)
    current, moments = {"w": torch.ones(1, dtype=torch.float64)}, {}
    for mean in means:
        weight.grad = weight.detach() - mean
        theirs.step()
        current, moments = ours.step(current, {"w": torch.tensor([mean], dtype=torch.float64)}, moments)
        torch.testing.assert_close(current["w"], weight.detach(), rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("critical_layer", [0, 1])
def test_a_client_that_never_took_part_predicts_with_merged_and_initial_tensors(small, critical_layer):
    workload = small.workload()
    algorithm = small.algorithm("fedsplitbert", workload, critical_layer=critical_layer)
    run = small.run(algorithm, rounds=1, participation=0.34)
    (member,) = run.results[0].cohort
    resting = next(client for client in small.clients if client.id != member)
    subset = resting.evaluation["test"]
    answers = algorithm.predict(run.state, resting, subset)
    fresh = small.load()
    fresh.write({**workload.initial, **run.state.shared})
    np.testing.assert_array_equal(answers, fresh.predict(subset, 64, None))
    assert len(run.state.shared) == (16 if critical_layer else 0)  # tensors of one layer
    assert not np.array_equal(algorithm.predict(run.state, small.clients[member], subset), answers)


def test_divergence_names_round_and_client(small):
    workload = small.workload(learning_rate=1e30, batch_size=4)
    with pytest.raises(DivergedError, match=r"round 1 on client 0: the mean loss is (nan|inf).*1e\+30"):
        small.run(small.algorithm("fedavg", workload))
