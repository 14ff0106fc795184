"""The model as it is, as a reference like other methods. Nothing is trained, and nothing is sent."""

from __future__ import annotations

import numpy as np

from fedsim.algorithms import Workload, idle_round, silent_start
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState

TRAINS = False


def untrained(setting: Workload) -> FederatedAlgorithm:
    """One model for all clients, which answers the same after every round."""

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        return setting.answers(setting.server_params(state), subset)

    return FederatedAlgorithm(silent_start, idle_round, predict, personal=False, server=setting.server_params)
