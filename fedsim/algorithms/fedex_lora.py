"""FedEx-LoRA (Singhal et al. 2025): FedIT's means, with their residual to the mean product added to the weights."""

from __future__ import annotations

import torch

from fedsim.algorithms import Workload, require_choice
from fedsim.algorithms.averaging import Merged, Uploads, averaging
from fedsim.engine import FederatedAlgorithm
from fedsim.lora import lora_of
from fedsim.wire import Params


def fedex_lora(workload: Workload, residual: str = "factored", head: str = "shared") -> FederatedAlgorithm:
    """W + s (mean(B_k A_k) - mean(B_k) mean(A_k)), so that a round's aggregate is exact.

    residual: sent "factored", with rank (K - 1) r; "dense"; or "transposed": dense, and added transposed to square
    weights, as in the authors' code at commit 683a3f30 (fed_agg.py, aggregate_models_ours). head: "shared", "local", or
    "frozen" as initialised.
    """
    require_choice("residual", residual, ("factored", "dense", "transposed"))
    lora = lora_of(workload, "fedex_lora")
    plan = lora.plan(head, lora.a | lora.b)

    def merge(uploads: Uploads) -> Merged:
        changed: Params = {}
        sent: Params = {}
        for layer in lora.layers:
            # sum_k p_k (B_k - mean B)(A_k - mean A): with the last client's B as reference, one term fewer
            *others, last = uploads.sent
            mean = sum(p * each[layer.a] for p, each in zip(uploads.weights, uploads.sent, strict=True))
            pairs = list(zip(uploads.weights, others, strict=False))
            b = torch.cat([p * (each[layer.b] - last[layer.b]) for p, each in pairs] or [last[layer.b][:, :0]], 1)
            a = torch.cat([each[layer.a] - mean for _, each in pairs] or [last[layer.a][:0]])
            factors = {layer.b: b, layer.a: a} if residual == "factored" else {layer.weight: lora.scale * b @ a}
            sent |= (arrived := uploads.at_rest(factors))
            change = (
                arrived[layer.weight] if layer.weight in arrived else lora.scale * arrived[layer.b] @ arrived[layer.a]
            )
            changed |= layer.added(uploads.server, change.T if residual == "transposed" else change)
        return Merged(changed, {"residuals": sent})

    return averaging(workload, lambda round, client: plan, merge=merge)
