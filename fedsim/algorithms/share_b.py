"""Fed-ALoRA's choice (2025): both factors are trained, B is averaged, every client keeps its A."""

from __future__ import annotations

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging
from fedsim.engine import FederatedAlgorithm
from fedsim.lora import lora_of


def share_b(workload: Workload, head: str = "shared") -> FederatedAlgorithm:
    """FedSA-LoRA with A and B swapped. head: "shared", "local", or "frozen" as initialised."""
    lora = lora_of(workload, "share_b")
    plan = lora.plan(head, lora.b, local=lora.a)
    return averaging(workload, lambda round, client: plan)
