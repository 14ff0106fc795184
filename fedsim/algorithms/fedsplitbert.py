"""FedSplitBERT (Li et al. 2022): encoder layers up to the critical layer are shared, those above stay local."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging, whole_model
from fedsim.engine import FederatedAlgorithm
from fedsim.plan import identity_plan


def fedsplitbert(
    workload: Workload,
    critical_layer: int,
    embeddings: str = "frozen",
    server: Mapping[str, Any] | None = None,
    proximal: float = 0.0,
) -> FederatedAlgorithm:
    """Algorithm 1: clients exchange W^g = layers 1 … c and keep W^l_i = layers c + 1 … and the head.

    c from 0 (nothing is exchanged) to the encoder's depth (the head is shared too: FedAvg, section III-A).
    With the channel's codec fp16 this is "FedSplitBERT + qat". Embeddings are "frozen", "global" or "local".
    """
    model = workload.model.groups
    trained = whole_model(model, embeddings)
    shared = model.up_to(critical_layer)
    if critical_layer == model.depth:
        shared |= model.head
    if embeddings == "global" and critical_layer > 0:
        shared |= model.embeddings
    plan = identity_plan(model.names, shared=shared, local=trained - shared)
    return averaging(workload, lambda round, client: plan, server, proximal)
