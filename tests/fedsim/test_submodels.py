"""Clients whose models are not the server's: fewer layers, other positions, several depths side by side."""

from __future__ import annotations

import re

import torch

from fedsim.algorithms.averaging import averaging
from fedsim.plan import ExchangePlan

NUMBER = re.compile(r"\.layer\.(\d+)\.")


def layer_of(name: str) -> int | None:
    found = NUMBER.search(name)
    return int(found[1]) if found else None


def viewed(names, layers) -> dict[str, str]:
    """A view of some of the server's layers: the client's i-th layer is the server's `layers[i]`-th, from 0."""
    view = {name: name for name in names if layer_of(name) is None}
    for own, target in enumerate(layers):
        view |= {NUMBER.sub(f".layer.{own}.", name): name for name in names if layer_of(name) == target}
    return view


def plan_of(workload, layers, trained=None, local=frozenset()) -> ExchangePlan:
    """Its layers and the head go down, are trained and go up, but for what is local."""
    view = viewed(workload.model.parameters, layers)
    own = frozenset(name for name in view if layer_of(name) is not None or name.startswith("head."))
    shared = own - local
    return ExchangePlan(view, shared, own, shared, frozenset(local))


DEPTHS = {0: (0, 1, 2), 1: (2, 0), 2: (1,)}  # client -> layers


def test_depths_meet_in_one_cohort_and_each_tensor_is_the_mean_of_those_who_send_it(small, recording_channel):
    workload, channel = small.workload(), recording_channel()
    plans = {client: plan_of(workload, layers) for client, layers in DEPTHS.items()}
    run = small.run(averaging(workload, lambda round, client: plans[client], personal=True), channel=channel, rounds=2)
    sizes = {client.id: len(client.train) for client in small.clients}
    for target, merged in run.state.shared.items():
        sent = {
            client: channel.received[2, client, "up"][name]
            for client, plan in plans.items()
            for name in plan.upload
            if plan.view[name] == target
        }
        assert set(sent) == {client for client, layers in DEPTHS.items() if layer_of(target) in (None, *layers)}
        total = sum(sizes[client] for client in sent)
        expected = sum(tensor.double() * sizes[client] / total for client, tensor in sent.items())
        torch.testing.assert_close(merged.double(), expected, rtol=0, atol=1e-6)
    sent = [sum(row.bytes for row in run.channel.ledger.rows if row[:3] == (2, client, "up")) for client in DEPTHS]
    assert sent[0] > sent[1] > sent[2]
