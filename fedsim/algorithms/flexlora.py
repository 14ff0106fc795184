"""FlexLoRA (Bai et al. 2024): the server forms the mean product and sends its best factors for each client's rank."""

from __future__ import annotations

from collections.abc import Sequence

from fedsim.algorithms import Workload, require_choice
from fedsim.algorithms.averaging import Merged, Uploads, averaging
from fedsim.engine import FederatedAlgorithm
from fedsim.lora import Ranks, decomposed, lora_of, stacked
from fedsim.wire import Params


def flexlora(
    workload: Workload, values: str = "b", head: str = "shared", ranks: Sequence[int] | None = None
) -> FederatedAlgorithm:
    """The server sends mean(B_k A_k) = U S V^T, truncated to the rank.

    The weights never change, and the truncated part is lost.

    Args:
        workload: The model, local training and the objective.
        values: Where the singular values go: to "b" (B = U S, A = V^T), or their roots to "both".
        head: Whether the head is "shared", "local", or "frozen" as initialised.
        ranks: The clients' ranks, in turn.
    """
    require_choice("values", values, ("b", "both"))
    lora = lora_of(workload, "flexlora")
    plan = lora.plan(head, lora.a | lora.b)

    def merge(uploads: Uploads) -> Merged:
        factors: Params = {}
        for layer in lora.layers:
            u, s, vt = decomposed(*stacked(uploads.sent, uploads.weights, layer))
            u, s, vt = u[:, : lora.rank], s[: lora.rank], vt[: lora.rank]
            root = s.sqrt()
            factors[layer.b], factors[layer.a] = (u * s, vt) if values == "b" else (u * root, root[:, None] * vt)
        # Few clients of low ranks have fewer factors than the server.
        return Merged(uploads.at_rest(of_clients.filled(factors) if of_clients else factors))

    of_clients = Ranks(ranks, lora.rank) if ranks else None
    return averaging(workload, lambda round, client: plan, merge=merge, ranks=of_clients)
