"""SCAFFOLD (Karimireddy et al. 2020): control variates take out of each step what drives a client from the mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging, whole_model
from fedsim.data import Client
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics, RoundOutcome
from fedsim.plan import identity_plan
from fedsim.store import same_device
from fedsim.wire import Channel, Params

KIND = "controls"  # in the ledger, and among the server's moments


def scaffold(workload: Workload) -> FederatedAlgorithm:
    """Algorithm 1 with the server's rate 1: a gradient g becomes g - c_i + c, and c_i the mean of the round's g.

    For SGD that is option II, (x - y_i) / (K η) - c + c_i; AdamW's steps are no gradients. Embeddings are frozen.
    """
    model, training = workload.model, workload.training
    names = sorted(whole_model(model.groups, "frozen") & model.trainable)
    plan = identity_plan(model.groups.names, shared=frozenset(names))

    def controls(kept: Mapping[str, Tensor]) -> Params:
        return {name: torch.zeros_like(workload.initial[name]) for name in names} | same_device(kept, model.device)

    def correct(control: Params, common: Params, sums: Params, gradients: Mapping[str, Tensor]) -> None:
        for name, gradient in gradients.items():
            sums[name].add_(gradient)
            gradient.add_(common[name] - control[name])

    def round(state: FederationState, cohort: Sequence[Client], channel: Channel) -> RoundOutcome:
        number, server, sizes = state.round + 1, workload.server_params(state), [len(each.train) for each in cohort]
        current, mean, losses = controls(state.moments.get(KIND, {})), controls({}), list[float]()
        after = {name: value.clone() for name, value in current.items()}
        for client, size in zip(cohort, sizes, strict=True):
            control, sums = controls(state.clients.get(client.id)), controls({})
            received = channel.to_client(client.id, {name: server[name] for name in names})
            change = partial(correct, control, channel.to_client(client.id, current, KIND), sums)
            model.hold(workload.initial | received)
            losses.append(training.run(model, client.train, names, number, client.id, correct=change))
            means = {name: value / training.steps(client.train) for name, value in sums.items()}
            state.clients.put(client.id, number, means)
            arrived = channel.to_server(client.id, model.read(names), onto=server)
            changes = channel.to_server(client.id, {name: means[name] - control[name] for name in names}, KIND)
            for name in names:
                mean[name].add_(arrived[name], alpha=size / sum(sizes))
                after[name].add_(changes[name], alpha=1 / len(workload.members))
        metrics = RoundMetrics(tuple(losses), float(np.average(losses, weights=sizes)))
        return FederationState(number, {**state.shared, **channel.at_rest(mean)}, {KIND: after}, state.clients), metrics

    return replace(averaging(workload, lambda round, client: plan), round=round, client_update=None)
