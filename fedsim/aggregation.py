"""Measures of how aggregation changes low-rank updates, taken after a round without effect on training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import torch
from torch import Tensor

from fedsim.algorithms import Workload
from fedsim.lora import Layer, Ranks, lora_of
from fedsim.plan import ClientId, ExchangePlan
from fedsim.wire import Params

BEGUN, TRAINED, AFTER = range(3)  # a client's tensors before training, after it, and at the start of the next round


def watched(workload: Workload, plans: Mapping[ClientId, ExchangePlan], ranks: Ranks | None) -> Watch:
    """A watch over a cohort's factors; an empty one if the model has no LoRA or is on `meta`."""
    adapter, device = workload.model.network.adapter, workload.model.device
    if adapter is None or adapter.kind != "lora" or device.type == "meta":
        return Watch()
    lora, views = lora_of(workload, "the measure"), [plan.view for plan in plans.values()]
    layers = [each for each in lora.layers if all(view.get(name) == name for view in views for name in each.names)]
    return Watch(layers, lora.scale, tuple(plans), ranks, device)


class Watch:
    """The low-rank factors of a round's clients."""

    def __init__(
        self,
        layers: Sequence[Layer] = (),
        scale: float = 1.0,
        clients: Sequence[ClientId] = (),
        ranks: Ranks | None = None,
        device: torch.device | None = None,
    ) -> None:
        """layers: those that every client has under the server's names. scale: s in W + s B A."""
        self._layers, self._scale, self._ranks, self._device = layers, scale, ranks, device
        self._of: dict[ClientId, list[Params]] = {client: [] for client in clients}

    def begun(self, client: ClientId, params: Params) -> None:
        """Record a client's tensors before training: factors as copies, as training changes them; weights without."""
        if self._layers:
            weights = {layer.weight: params[layer.weight] for layer in self._layers}
            self._of[client].append(weights | self._factors(client, params))

    def trained(self, client: ClientId, params: Params) -> None:
        """Record a client's trained tensors."""
        if self._layers:
            self._of[client].append(self._of[client][BEGUN] | self._factors(client, params))

    def _factors(self, client: ClientId, params: Params) -> Params:
        """The factors in `params`, truncated to the client's rank and in the server's shapes."""
        names = [name for layer in self._layers for name in (layer.a, layer.b) if name in params]
        factors = {name: params[name].to(self._device, torch.float64, copy=True) for name in names}
        return self._ranks.filled(self._ranks.cut(client, factors)) if self._ranks else factors

    def measured(self, shares: Sequence[float], after: Callable[[ClientId], Params]) -> dict[str, float | None]:
        """The round's measures over all layers; None if undefined, {} without layers.

        Args:
            shares: p_k for each client; they sum to 1.
            after: A client's tensors at the start of the next round.

        Returns:
            aggregation_error: ‖Σ p_k (W'_k / s + B'_k A'_k) − Σ p_k (W_k / s + B_k A_k)‖ / ‖Σ p_k B_k A_k‖ in Frobenius
            norms, with client k's W_k, B_k, A_k after its training and W'_k, B'_k, A'_k at the start of the next round;
            0 if aggregation keeps the mean product. cosine_a, cosine_b: the mean cosine between two clients' trained
            factors, over pairs and layers. overlap_a: the same for the share of A's row space that two clients have in
            common, which does not depend on the basis: r / d_in for independent draws.
        """
        if not self._layers:
            return {}
        for client in self._of:
            self.begun(client, after(client))
        clients = list(self._of.values())
        missed, mean = 0.0, 0.0
        for layer in self._layers:
            products = [[params[layer.b] @ params[layer.a] for params in each] for each in clients]
            moved = [self._moved(layer, each) for each in clients]
            changes = [
                product[AFTER] - product[TRAINED] + change for product, change in zip(products, moved, strict=True)
            ]
            missed += _square(shares, changes)
            mean += _square(shares, [product[TRAINED] for product in products])
        names = [(layer.a, layer.b) for layer in self._layers]
        factors_a = [[each[TRAINED][a] for each in clients] for a, _ in names]
        return {
            "aggregation_error": math.sqrt(missed / mean) if mean > 0 and math.isfinite(missed) else None,
            "cosine_a": _over_pairs(_cosine, factors_a),
            "cosine_b": _over_pairs(_cosine, [[each[TRAINED][b] for each in clients] for _, b in names]),
            "overlap_a": _over_pairs(_overlap, factors_a),
        }

    def _moved(self, layer: Layer, of: Sequence[Params]) -> Tensor | float:
        """The change of a client's weight over the round, [d_out, d_in], divided by s."""
        before, after = of[BEGUN][layer.weight], of[AFTER][layer.weight]
        if before is after:  # the method does not change the weights
            return 0.0
        change = (after.to(torch.float64) - before.to(torch.float64)) / self._scale
        return change.T if layer.in_rows else change


def _square(shares: Sequence[float], matrices: Sequence[Tensor]) -> float:
    """The squared norm of the weighted mean."""
    weighted = [share * matrix for share, matrix in zip(shares, matrices, strict=True)]
    return float(torch.stack(weighted).sum(0).square().sum())


def _over_pairs(similarity: Callable[[Tensor, Tensor], float], by_layer: Sequence[Sequence[Tensor]]) -> float | None:
    """The mean over layers and pairs of clients; None for one client or if a tensor is 0."""
    values = [similarity(*pair) for tensors in by_layer for pair in combinations(tensors, 2)]
    mean = math.fsum(values) / len(values) if values else math.nan
    return mean if math.isfinite(mean) else None


def _cosine(one: Tensor, other: Tensor) -> float:
    """The cosine of all values; nan if a tensor is 0."""
    return float(one.flatten() @ other.flatten() / (one.norm() * other.norm()))


def _overlap(one: Tensor, other: Tensor) -> float:
    """The mean squared cosine of the principal angles between two row spaces; nan if a tensor is 0."""
    bases = []
    for factor in (one, other):
        _, values, rows = torch.linalg.svd(factor, full_matrices=False)
        bases.append(rows[values > values[0] * 1e-9])
    least = min(map(len, bases))
    return float((bases[0] @ bases[1].T).square().sum() / least) if least else math.nan
