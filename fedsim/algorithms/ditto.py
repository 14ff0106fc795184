"""Ditto (Li et al. 2021): next to the shared model of FedAvg, each client trains a model of its own towards it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging, whole_model
from fedsim.data import Client, Subset
from fedsim.engine import ClientUpdate, FederatedAlgorithm, FederationState
from fedsim.plan import identity_plan
from fedsim.store import same_device
from fedsim.wire import Params

PERSONAL = "own/"  # before the names of a client's own model


def ditto(workload: Workload, pull: float = 0.1) -> FederatedAlgorithm:
    """Algorithm 1: v_k takes the round's local steps on F_k(v) + λ/2 ‖v - w‖² for the received w, and never leaves.

    pull: λ; with 0 each client trains alone. The losses are the shared model's. Embeddings are frozen.
    """
    model, training = workload.model, workload.training
    names = sorted(whole_model(model.groups, "frozen") & model.trainable)
    plan = identity_plan(model.groups.names, shared=whole_model(model.groups, "frozen"))

    def personal(kept: Params) -> Params:
        return same_device(
            {name: kept.get(f"{PERSONAL}{name}", workload.initial[name]) for name in names}, model.device
        )

    def train_personal(update: ClientUpdate) -> Params:
        client = update.client
        model.hold(workload.initial | personal(update.private))
        training.run(model, client.train, names, update.round, client.id, update.received, pull)
        return {f"{PERSONAL}{name}": value for name, value in model.snapshot(names).items()}

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        if client is None:
            return shared.predict(state, client, subset)
        return workload.answers(workload.initial | personal(state.clients.get(client.id)), subset)

    shared = averaging(workload, lambda round, client: plan, apart=train_personal)
    return replace(shared, predict=predict, personal=True)
