"""FedPer (Arivazhagan et al. 2019): the base layers are averaged, every client keeps its head."""

from __future__ import annotations

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging, whole_model
from fedsim.engine import FederatedAlgorithm
from fedsim.plan import identity_plan


def fedper(workload: Workload, embeddings: str = "frozen") -> FederatedAlgorithm:
    """Algorithms 1 and 2: base layers W_B go down, are trained and go up; personalization layers W_P stay.

    W_P is the head: every parameter above the encoder. Embeddings are "frozen", "global" (the paper's base layers) or
    "local".
    """
    model = workload.model.groups
    trained = whole_model(model, embeddings)
    local = model.head | (model.embeddings if embeddings == "local" else frozenset())
    plan = identity_plan(model.names, shared=trained - local, local=local)
    return averaging(workload, lambda round, client: plan)
