"""FedRot-LoRA (2026): before the upload, each client rotates its factors towards the received ones."""

from __future__ import annotations

import torch
from torch import Tensor

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging
from fedsim.engine import FederatedAlgorithm
from fedsim.errors import FederationError
from fedsim.lora import lora_of
from fedsim.wire import Params


def fedrot_lora(workload: Workload, strength: float = 1.0, head: str = "shared") -> FederatedAlgorithm:
    """B R and R^T A have the product B A; R aligns A (in even rounds) or B (in odd rounds) with the received factor.

    strength: the paper's λ: 1 for the full rotation, less for the rotation nearest to (1 - λ) I + λ R. It starts in
    round 2, as B is 0 before. head: "shared", "local", or "frozen" as initialised.
    """
    if not isinstance(strength, int | float) or not 0 < strength <= 1:
        raise FederationError(f"strength: expected a number above 0 and up to 1, found {strength!r}")
    lora = lora_of(workload, "fedrot_lora")
    plan = lora.plan(head, lora.a | lora.b)

    def rotate(round: int, received: Params, trained: Params) -> Params:
        turned = dict(trained)
        for layer in lora.layers if round > 1 else ():
            a, b = trained[layer.a], trained[layer.b]
            # Orthogonal Procrustes (Schönemann 1966): the R that minimises |R^T A - A'| or |B R - B'|
            r = _rotation(b.T @ received[layer.b] if round % 2 else a @ received[layer.a].T)
            r = r if strength == 1 else _rotation((1 - strength) * torch.eye(len(r), device=r.device) + strength * r)
            turned[layer.a], turned[layer.b] = r.T @ a, b @ r
        return turned

    return averaging(workload, lambda round, client: plan, finish=rotate)


def _rotation(overlap: Tensor) -> Tensor:
    """The rotation nearest to a matrix: U V^T, with the last direction flipped if that is a reflection."""
    u, _, vt = torch.linalg.svd(overlap)
    sign = torch.sign(torch.linalg.det(u @ vt))
    return torch.cat([u[:, :-1], sign * u[:, -1:]], 1) @ vt
