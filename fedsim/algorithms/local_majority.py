"""The most frequent training label, a client's own or that of all, is every answer. No model; nothing is exchanged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedsim.algorithms import Workload, idle_round, require_choice, silent_start
from fedsim.algorithms.central import pooled
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState
from fedsim.errors import FederationError
from fedsim.store import ClientStore
from fedsim.wire import Channel

TRAINS = False


def local_majority(setting: Workload, whose: str = "own") -> FederatedAlgorithm:
    """The baseline that personalisation has to beat: what follows from a client's training labels alone.

    The most frequent class or tag, of equally frequent ones the smallest id; for a score, the mean training score.
    whose: labels: a client's "own", or those of "all" clients together, which all clients then answer.
    """
    require_choice("whose", whose, ("own", "all"))
    everyone: list[Client] = []

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        everyone[:] = clients
        return silent_start(clients, channel, store)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        if whose == "all":
            return setting.objective.prior(pooled(everyone), subset)
        if client is None:
            raise FederationError("local majority: the server has no answer of its own; ask the clients")
        return setting.objective.prior(client.train, subset)

    return FederatedAlgorithm(init, idle_round, predict, personal=whose == "own")
