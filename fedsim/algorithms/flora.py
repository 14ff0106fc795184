"""FLoRA (Wang et al. 2024): clients' factors are stacked and merged into the weights, and LoRA restarts."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import Merged, Uploads, averaging
from fedsim.engine import FederatedAlgorithm
from fedsim.lora import Ranks, drawn, lora_of, stacked
from fedsim.rng import SERVER
from fedsim.wire import Params


def flora(workload: Workload, head: str = "shared", ranks: Sequence[int] | None = None) -> FederatedAlgorithm:
    """Stacking p_k B_k and A_k gives the exact mean of the products, for clients with any ranks.

    Every client receives the stack and merges it like the server. Then all reinitialise A from the same seed, the
    round's, and set B to 0. head: "shared", "local", or "frozen" as initialised. ranks: the clients', in turn.
    """
    lora = lora_of(workload, "flora")
    plan = lora.plan(head, lora.a | lora.b, download=frozenset())

    def merge(uploads: Uploads) -> Merged:
        server: Params = {}
        stack: Params = {}
        for layer in lora.layers:
            b, a = stacked(uploads.sent, uploads.weights, layer)
            sent = uploads.at_rest({layer.b: b, layer.a: a})
            server |= layer.added(uploads.server, lora.scale * sent[layer.b] @ sent[layer.a])
            stack |= sent
        server |= drawn(lora.layers, uploads.server, workload.training.seed, uploads.round, SERVER)
        server |= {layer.b: torch.zeros_like(uploads.server[layer.b]) for layer in lora.layers}
        return Merged(server, {"stacks": stack})

    of_clients = Ranks(ranks, lora.rank) if ranks else None
    return averaging(workload, lambda round, client: plan, merge=merge, ranks=of_clients)
