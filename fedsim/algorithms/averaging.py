"""The shared round: every averaging method is this one, under its own exchange plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from fedsim.algorithms import Setting
from fedsim.data import Client, Part
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.errors import FederationError
from fedsim.models.anatomy import Anatomy
from fedsim.plan import ClientId, ExchangePlan, PlanFn
from fedsim.server import ServerOptimizer
from fedsim.store import ClientStore, same_device
from fedsim.wire import Channel, Params

EMBEDDINGS = ("frozen", "global", "local")


def as_they_are(part: Part) -> Part:
    """Examples by their token ids."""
    return part


def averaging(
    setting: Setting,
    plan: PlanFn,
    server: Mapping[str, Any] | None = None,
    proximal: float = 0.0,
    prepared: Callable[[Part], Part] = as_they_are,
) -> FederatedAlgorithm:
    """Rounds of: download, train locally, upload, average by name, server step (McMahan et al. 2017, Algorithm 1).

    server: the arguments of a ServerOptimizer; proximal: FedProx's weight (Li et al. 2020), over downloaded tensors;
    prepared: the form in which clients train on examples and answer for them.
    """
    if not isinstance(proximal, int | float) or not proximal >= 0:
        raise FederationError(f"proximal: expected a weight >= 0, found {proximal!r}")
    model, training, optimizer = setting.model, setting.training, ServerOptimizer.from_options(server or {})
    initial: Params = {}  # the pre-trained model that every client is given once

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        if not initial:  # a second run begins where the first began
            initial.update(model.snapshot(model.parameters))
        for client in clients:
            channel.setup(client.id, model.parameters)
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        number = state.round + 1
        plans = {client.id: plan(number, client.id) for client in cohort}
        weights = aggregation_weights(cohort, plans)
        shared = initial | same_device(state.shared, model.device)
        mean: Params = {}
        losses = []
        for client in cohort:
            own = plans[client.id]
            received = channel.to_client(client.id, {name: shared[own.view[name]] for name in sorted(own.download)})
            model.write(initial | state.clients.get(client.id) | received)
            examples = prepared(client.train)
            losses.append(training.run(model, examples, sorted(own.train), number, client.id, received, proximal))
            sent = channel.to_server(client.id, model.read(sorted(own.upload)))
            for name, tensor in sent.items():
                target = own.view[name]
                mean.setdefault(target, torch.zeros_like(tensor)).add_(tensor, alpha=weights[client.id][target])
            state.clients.put(client.id, number, model.read(sorted(own.local)))
        current = {name: shared[name] for name in mean}
        kept = {moment: same_device(params, model.device) for moment, params in state.moments.items()}
        updated, moments = optimizer.step(current, mean, kept)
        sizes = [len(client.train) for client in cohort]
        return (
            FederationState(number, {**state.shared, **channel.at_rest(updated)}, moments, state.clients),
            RoundMetrics(tuple(losses), float(np.average(losses, weights=sizes))),
        )

    def predict(state: FederationState, client: Client, part: Part) -> np.ndarray:
        view = plan(max(state.round, 1), client.id).view
        merged = {name: state.shared[target] for name, target in view.items() if target in state.shared}
        model.write(initial | merged | state.clients.get(client.id))
        return model.predict(prepared(part), setting.evaluation_batch_size, training.width)

    return FederatedAlgorithm(init, round, predict, personal=bool(plan(1, 0).local))


def answering_together(algorithm: FederatedAlgorithm) -> FederatedAlgorithm:
    """The same training, but all clients answer as one: with the plain mean of their models' outputs (an ensemble)."""
    everyone: list[Client] = []

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        everyone[:] = clients
        return algorithm.init(clients, channel, store)

    def predict(state: FederationState, _: Client, part: Part) -> np.ndarray:
        outputs: np.ndarray = np.mean([algorithm.predict(state, client, part) for client in everyone], axis=0)
        return outputs

    return FederatedAlgorithm(init, algorithm.round, predict, personal=False)


def aggregation_weights(
    cohort: Sequence[Client], plans: Mapping[ClientId, ExchangePlan]
) -> dict[ClientId, dict[str, float]]:
    """N_i / N for each client and server tensor, N over those in the cohort who upload that tensor."""
    totals: dict[str, int] = {}
    for client in cohort:
        for name in plans[client.id].upload:
            target = plans[client.id].view[name]
            totals[target] = totals.get(target, 0) + len(client.train)
    return {
        client.id: {
            target: len(client.train) / totals[target]
            for target in (plans[client.id].view[name] for name in plans[client.id].upload)
        }
        for client in cohort
    }


def whole_model(model: Anatomy, embeddings: str) -> frozenset[str]:
    """What a client trains: everything but frozen embeddings."""
    if embeddings not in EMBEDDINGS:
        raise FederationError(f"embeddings: expected one of {', '.join(EMBEDDINGS)}, found {embeddings!r}")
    return model.names - model.embeddings if embeddings == "frozen" else model.names
