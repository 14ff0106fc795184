"""FedRep (Collins et al. 2021): each client first trains its own head, then the body, which alone is averaged."""

from __future__ import annotations

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging, whole_model
from fedsim.engine import FederatedAlgorithm
from fedsim.plan import identity_plan


def fedrep(workload: Workload) -> FederatedAlgorithm:
    """Algorithm 1: with the received body fixed the head takes its steps, then the body its own with the head fixed.

    Both have the round's local epochs; embeddings are frozen. FedPer trains head and body together instead.
    """
    model = workload.model.groups
    plan = identity_plan(model.names, shared=whole_model(model, "frozen") - model.head, local=model.head)
    return averaging(workload, lambda round, client: plan, first=model.head)
