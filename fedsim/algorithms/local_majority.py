"""The local majority: every client answers its most frequent training label. No model, nothing exchanged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedsim.algorithms import Setting
from fedsim.data import Client, Part
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.store import ClientStore
from fedsim.wire import Channel


def local_majority(setting: Setting) -> FederatedAlgorithm:
    """The floor that personalisation has to beat; for a score, the mean of the client's training scores.

    Of labels that are equally frequent, the smallest id.
    """

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        return FederationState(state.round + 1, {}, {}, state.clients), RoundMetrics((), None)

    def predict(state: FederationState, client: Client, part: Part) -> np.ndarray:
        outputs = np.zeros((len(part), setting.outputs), dtype=np.float32)
        if setting.outputs == 1:
            outputs[:] = client.train.labels.mean()
        else:
            outputs[:, np.bincount(client.train.labels, minlength=setting.outputs).argmax()] = 1
        return outputs

    return FederatedAlgorithm(init, round, predict)
