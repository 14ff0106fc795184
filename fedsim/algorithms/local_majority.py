"""The local majority: every client answers its most frequent training label. No model, nothing exchanged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedsim.algorithms import Setting
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.errors import FederationError
from fedsim.store import ClientStore
from fedsim.wire import Channel


def local_majority(setting: Setting) -> FederatedAlgorithm:
    """The floor that personalisation has to beat: what follows from a client's training labels alone.

    Its most frequent class or tag, of equals the smallest id; for a score, the mean of its training scores.
    """

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        return FederationState(state.round + 1, {}, {}, state.clients), RoundMetrics((), None)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        if client is None:
            raise FederationError("local majority: the server has no answer of its own; ask the clients")
        return setting.objective.prior(client.train, subset)

    return FederatedAlgorithm(init, round, predict)
