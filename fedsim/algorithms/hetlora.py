"""HetLoRA (Cho et al. 2024), by padding: clients have their own ranks, the server averages with zeros beyond them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging
from fedsim.engine import FederatedAlgorithm
from fedsim.lora import Ranks, lora_of
from fedsim.plan import identity_plan


def hetlora(
    workload: Workload, ranks: Sequence[int], head: str = "shared", server: Mapping[str, Any] | None = None
) -> FederatedAlgorithm:
    """Clients get the first rows of A and columns of B, as many as their rank; at equal ranks this is FedIT.

    The paper's self-pruning of ranks and its weights by sparsity are left out. ranks: of the clients, in turn. head:
    "shared", "local", or "frozen" at its draw.
    """
    lora = lora_of(workload, "hetlora")
    plan = identity_plan(lora.names, *lora.with_head(head, lora.a | lora.b, frozenset()))
    rank = workload.initial[lora.layers[0].a].shape[0]
    return averaging(workload, lambda round, client: plan, server, ranks=Ranks(ranks, rank))
