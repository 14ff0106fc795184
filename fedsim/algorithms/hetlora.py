"""HetLoRA (Cho et al. 2024) with zero-padding: clients have different ranks; the server pads before averaging."""

from __future__ import annotations

from collections.abc import Sequence

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging
from fedsim.engine import FederatedAlgorithm
from fedsim.lora import Ranks, lora_of


def hetlora(workload: Workload, ranks: Sequence[int], head: str = "shared") -> FederatedAlgorithm:
    """A client gets the first r rows of A and columns of B for its rank r; with equal ranks this is FedIT.

    The paper's rank self-pruning and sparsity weights are omitted. ranks: the clients', in turn. head: "shared",
    "local", or "frozen" as initialised.
    """
    lora = lora_of(workload, "hetlora")
    plan = lora.plan(head, lora.a | lora.b)
    return averaging(workload, lambda round, client: plan, ranks=Ranks(ranks, lora.rank))
