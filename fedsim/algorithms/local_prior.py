"""FedAvg with each client's own label prior: logit adjustment (Menon et al. 2021) of a model that all have already."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedsim.algorithms import Workload
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.errors import FederationError
from fedsim.store import ClientStore
from fedsim.wire import Channel, Params

TRAINS = False


def local_prior(setting: Workload) -> FederatedAlgorithm:
    """Nothing is trained: clients answer by the model that the run begins with, corrected by their own label shares.

    A client's logits get log p_own - log p_all, with add-one smoothing (section 4.1's adjustment, from the shares that
    the model was trained on to the client's own). In the one round each client's label counts go up and their sum comes
    down, of the kind "counts", 4 bytes a label. Scores are cut to the range of the client's own instead, for which
    nothing is sent. The server's own answers are the model's.
    """
    model, objective = setting.model, setting.objective

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        for client in clients:
            channel.setup(client.id, setting.initial)
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        if state.round > 0:
            raise FederationError("local prior: labels are counted once: expected 1 round")
        everyone: Params = {}
        for client in cohort:
            for name, counts in channel.to_server(client.id, objective.tally(client.train), "counts").items():
                everyone[name] = everyone[name] + counts if name in everyone else counts
        for client in cohort:
            channel.to_client(client.id, everyone, "counts")
        return FederationState(1, everyone, {}, state.clients), RoundMetrics((), None)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        model.set_trained(())  # so that what stands there already is not written again for each client
        model.hold(setting.initial)
        answers = model.predict(subset, setting.evaluation_batch_size, setting.training.width)
        return answers if client is None else objective.with_prior(answers, client.train, state.shared)

    return FederatedAlgorithm(init, round, predict, server=lambda state: dict(setting.initial))
