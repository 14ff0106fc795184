"""FFA-LoRA (Sun et al. 2024): A stays as initialised, equal for all clients; only B is trained and averaged."""

from __future__ import annotations

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging
from fedsim.engine import FederatedAlgorithm
from fedsim.lora import lora_of


def ffa_lora(workload: Workload, head: str = "shared") -> FederatedAlgorithm:
    """With one A for all, the mean of the clients' B is exact: mean(B_k) A = mean(B_k A).

    head: "shared", "frozen" as initialised (as in some implementations), or "local". alpha only rescales the learning
    rate here, so only one of them is tuned.
    """
    lora = lora_of(workload, "ffa_lora")
    plan = lora.plan(head, lora.b)
    return averaging(workload, lambda round, client: plan)
