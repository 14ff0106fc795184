"""Central training: all clients' examples in one place. The reference of every federated method; nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedsim.algorithms import Setting
from fedsim.algorithms.averaging import as_they_are, whole_model
from fedsim.data import Client, Part
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.errors import FederationError
from fedsim.store import ClientStore, same_device
from fedsim.wire import Channel, Params

TRAINED = ("model", "head")


def pooled(clients: Sequence[Client]) -> Part:
    """The training examples of all clients, in client order."""
    return Part(clients[0].train.examples, np.concatenate([client.train.indices for client in clients]))


def central(
    setting: Setting, train: str = "model", embeddings: str = "frozen", cached: bool = True
) -> FederatedAlgorithm:
    """One model trained on the clients' examples together; train: "model", or "head", over a frozen encoder.

    A round is `training.epochs` epochs with an optimiser of its own, as a client's is: a run of one round and five
    epochs has one optimiser throughout. Order and dropout are drawn as the first client's, so that with one client
    this is FedAvg (or D-FedFreezeBERT). Embeddings are "frozen" or "global", which is trained. cached: a frozen encoder
    sees each example once.
    """
    if train not in TRAINED:
        raise FederationError(f"train: expected one of {', '.join(TRAINED)}, found {train!r}")
    model, training = setting.model, setting.training
    names = sorted(whole_model(model.anatomy, embeddings) if train == "model" else model.anatomy.head)
    prepared = setting.by_features if train == "head" and cached else as_they_are
    initial: Params = {}

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        if not initial:  # a second run begins where the first began
            initial.update(model.snapshot(model.parameters))
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        number = state.round + 1
        model.write(initial | same_device(state.shared, model.device))
        loss = training.run(model, prepared(pooled(cohort)), names, number, cohort[0].id, {}, proximal=0.0)
        return FederationState(number, model.snapshot(names), {}, state.clients), RoundMetrics((loss,), loss)

    def predict(state: FederationState, client: Client, part: Part) -> np.ndarray:
        model.write(initial | same_device(state.shared, model.device))
        return model.predict(prepared(part), setting.evaluation_batch_size, training.width)

    return FederatedAlgorithm(init, round, predict, personal=False)
