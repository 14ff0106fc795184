"""D-FedFreezeBERT (Galal et al. 2024, Algorithm 1): the encoder is frozen, the head is averaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging, frozen_states
from fedsim.engine import FederatedAlgorithm
from fedsim.plan import identity_plan


def fedfreezebert(
    workload: Workload,
    server: Mapping[str, Any] | None = None,
    proximal: float = 0.0,
    cached: bool = True,
    half_features: bool = False,
) -> FederatedAlgorithm:
    """Clients train and exchange only the head W_s, on a frozen encoder's features.

    Equation 1: 2 T n_c SizeOf(W_s) bytes in T rounds with n_c clients. The server averages as in FedAvg; FedProx with
    `proximal` > 0; any `server` optimiser. The paper's optimiser is Adam: AdamW with `training.weight_decay` 0.
    cached: the encoder processes each example once; if False, in every epoch as in the paper. half_features: keep
    features in half precision.
    """
    model = workload.model.groups
    plan = identity_plan(model.names, shared=model.head)
    prepared = frozen_states(workload, cached, half_features)
    return averaging(workload, lambda round, client: plan, server, proximal, prepared)
