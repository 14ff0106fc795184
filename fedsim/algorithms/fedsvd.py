"""FedSVD (Lee et al. 2025): clients train only B, and the server makes A orthonormal after every round."""

from __future__ import annotations

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import Merged, Uploads, averaging
from fedsim.engine import FederatedAlgorithm
from fedsim.lora import decomposed, lora_of
from fedsim.wire import Params


def fedsvd(workload: Workload, head: str = "shared") -> FederatedAlgorithm:
    """With mean(B_k) A = U S V^T, A becomes V^T and B becomes U S; the product stays the same.

    head: "shared", "local", or "frozen" as initialised, as in the authors' code.
    """
    lora = lora_of(workload, "fedsvd")
    plan = lora.plan(head, lora.b, download=lora.a | lora.b)

    def merge(uploads: Uploads) -> Merged:
        factors: Params = {}
        for layer in lora.layers:
            u, s, factors[layer.a] = decomposed(uploads.server[layer.b], uploads.server[layer.a])
            factors[layer.b] = u * s
        return Merged(uploads.at_rest(factors))

    return averaging(workload, lambda round, client: plan, merge=merge)
