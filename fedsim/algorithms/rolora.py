"""RoLoRA (Chen et al. 2024): odd rounds train and average B, even rounds A."""

from __future__ import annotations

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging
from fedsim.engine import FederatedAlgorithm
from fedsim.lora import lora_of
from fedsim.plan import ClientId, ExchangePlan


def rolora(workload: Workload, head: str = "shared") -> FederatedAlgorithm:
    """Alternating minimisation: with the other factor fixed, each mean is exact.

    A client downloads the factor changed in the previous round, or both if it did not take part in that round. head:
    "shared", "frozen" as initialised, or "local".
    """
    lora = lora_of(workload, "rolora")

    def factor(round: int) -> frozenset[str]:
        return lora.b if round % 2 else lora.a

    def plan(round: int, client: ClientId) -> ExchangePlan:
        missed = round > 1 and client not in workload.cohort(round - 1)
        changed = lora.a | lora.b if missed else factor(max(1, round - 1))
        return lora.plan(head, factor(round), download=changed)

    return averaging(workload, plan)
