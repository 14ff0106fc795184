"""Central training on all clients' examples: the reference for every federated method; nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedsim.algorithms import Workload, require_choice, silent_start
from fedsim.algorithms.averaging import frozen_states, whole_model
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics, RoundOutcome
from fedsim.wire import Channel


def pooled(clients: Sequence[Client]) -> Subset:
    """The training examples of all clients, in client order."""
    return Subset(clients[0].train.examples, np.concatenate([client.train.indices for client in clients]))


def central(
    workload: Workload,
    train: str = "model",
    embeddings: str = "frozen",
    cached: bool = True,
    of: str = "all",
    half_features: bool = False,
) -> FederatedAlgorithm:
    """One model is trained on all clients' examples.

    A round is `local_epochs` epochs with a new optimiser, as on a client; a run with one round or a "kept" optimiser
    uses one optimiser throughout. Order and dropout equal the first client's, so that with one client this is FedAvg
    (or D-FedFreezeBERT).

    Args:
        workload: The model, local training and the objective.
        train: What is trained: the "model", or only the "head" on a frozen encoder.
        embeddings: Whether embeddings are "frozen", or trained ("global").
        cached: Whether a frozen encoder processes each example only once.
        of: Whose examples are used: those of "all" clients, or only the "first" client's (FedBERT's single client).
        half_features: Whether a frozen encoder's features are kept in half precision.
    """
    require_choice("of", of, ("all", "first"))
    require_choice("train", train, ("model", "head"))
    model, training = workload.model, workload.training
    trained = whole_model(model.groups, embeddings) if train == "model" else model.groups.head
    names = sorted(trained & model.trainable)
    prepared = frozen_states(workload, train == "head" and cached, half_features)

    def learners(round: int, cohort: Sequence[Client]) -> Sequence[Client]:
        return cohort if of == "all" else cohort[:1]

    def round(state: FederationState, cohort: Sequence[Client], channel: Channel) -> RoundOutcome:
        number = state.round + 1
        model.write(workload.server_params(state))
        moments = dict(state.moments)
        examples = pooled(learners(number, cohort))
        loss = training.run(model, prepared(examples), names, number, cohort[0].id, moments=moments)
        return FederationState(number, model.snapshot(names), moments, state.clients), RoundMetrics((loss,), loss)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        model.write(workload.server_params(state))
        return workload.scored(model, prepared(subset))

    return FederatedAlgorithm(
        silent_start, round, predict, personal=False, server=workload.server_params, learners=learners
    )
