"""The majority, local or overall: the most frequent training label is every answer. No model, nothing exchanged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedsim.algorithms import Workload
from fedsim.algorithms.central import pooled
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.errors import FederationError
from fedsim.store import ClientStore
from fedsim.wire import Channel

WHOSE = ("own", "all")

TRAINS = False


def local_majority(setting: Workload, whose: str = "own") -> FederatedAlgorithm:
    """The floor that personalisation has to beat: what follows from a client's training labels alone.

    Its most frequent class or tag, of equals the smallest id; for a score, the mean of its training scores.
    whose: labels, a client's "own", or those of "all" clients together, which all then answer: the overall majority,
    the floor of whoever is scored on all clients' examples.
    """
    if whose not in WHOSE:
        raise FederationError(f"whose: expected one of {', '.join(WHOSE)}, found {whose!r}")
    everyone: list[Client] = []

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        everyone[:] = clients
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        return FederationState(state.round + 1, {}, {}, state.clients), RoundMetrics((), None)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        if whose == "all":
            return setting.objective.prior(pooled(everyone), subset)
        if client is None:
            raise FederationError("local majority: the server has no answer of its own; ask the clients")
        return setting.objective.prior(client.train, subset)

    return FederatedAlgorithm(init, round, predict, personal=whose == "own")
