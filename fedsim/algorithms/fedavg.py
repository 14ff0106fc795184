"""Federated averaging (McMahan et al. 2017), with any server optimiser (FedOpt, Reddi et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging, whole_model
from fedsim.engine import FederatedAlgorithm
from fedsim.plan import identity_plan


def fedavg(
    workload: Workload,
    embeddings: str = "frozen",
    server: Mapping[str, Any] | None = None,
    proximal: float = 0.0,
) -> FederatedAlgorithm:
    """Every trained tensor goes down, is trained and goes up; embeddings are "frozen", "global" or "local".

    FedAvg by default; FedProx with `proximal` > 0; FedAdam, FedYogi and FedAdagrad with a `server` optimiser.
    """
    model = workload.model.groups
    trained = whole_model(model, embeddings)
    local = model.embeddings if embeddings == "local" else frozenset()
    plan = identity_plan(model.names, shared=trained - local, local=local)
    return averaging(workload, lambda round, client: plan, server, proximal)
