"""The most frequent token is the answer at every position: the baseline of inversion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fedsim.algorithms import Workload, silent_start
from fedsim.algorithms.inversion import PUBLIC_TEXTS, known_texts, tokens_of
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.wire import Channel

TRAINS = False


def token_majority(setting: Workload, public_texts: int = PUBLIC_TEXTS) -> FederatedAlgorithm:
    """What a server knows without any features: the most frequent token of the texts from which inversion learns.

    Of equally frequent tokens the one with the smallest id. No model; nothing is sent.
    """

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        tokens = tokens_of(known_texts(cohort, public_texts, setting.training.seed))
        most_frequent = torch.tensor(np.bincount(tokens).argmax())
        return FederationState(state.round + 1, {"token": most_frequent}, {}, state.clients), RoundMetrics((), None)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        return np.full_like(subset.references, state.shared["token"].item())

    return FederatedAlgorithm(silent_start, round, predict, personal=False)
