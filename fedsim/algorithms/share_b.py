"""Fed-ALoRA's choice (2025): both factors are trained, B is averaged, every client keeps its A."""

from __future__ import annotations

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging
from fedsim.engine import FederatedAlgorithm
from fedsim.lora import lora_of
from fedsim.plan import identity_plan


def share_b(workload: Workload, head: str = "shared") -> FederatedAlgorithm:
    """FedSA-LoRA with A and B swapped. head: "shared", "local", or "frozen" as initialised."""
    lora = lora_of(workload, "share_b")
    plan = identity_plan(lora.names, *lora.with_head(head, lora.b, lora.a))
    return averaging(workload, lambda round, client: plan)
