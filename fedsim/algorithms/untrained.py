"""The model as it is: what training starts from, as a row like others. Nothing is trained, and nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedsim.algorithms import Workload
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.store import ClientStore
from fedsim.wire import Channel

TRAINS = False


def untrained(setting: Workload) -> FederatedAlgorithm:
    """One model for all clients, which answers the same after every round."""

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        return FederationState(state.round + 1, {}, {}, state.clients), RoundMetrics((), None)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        return setting.answers(setting.server_params(state), subset)

    return FederatedAlgorithm(init, round, predict, personal=False, server=setting.server_params)
