"""LoRA for server and clients: factor names, products, ranks and decompositions.

Notation of Hu et al. (2022): W + s B A, with A [r, d_in], B [d_out, r] and s = alpha / r.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fedsim.algorithms import Workload, require_choice
from fedsim.errors import FederationError
from fedsim.models.adapters import holds_rows
from fedsim.plan import ClientId, ExchangePlan, identity_plan
from fedsim.rng import torch_seeded
from fedsim.wire import Params

A, B = "lora_A", "lora_B"
HEADS = ("shared", "local", "frozen")


@dataclass(frozen=True)
class Layer:
    """One layer's parameter names. in_rows: whether its weight is stored transposed, as in GPT-2."""

    weight: str
    a: str
    b: str
    in_rows: bool = False

    @property
    def names(self) -> tuple[str, str, str]:
        """The weight's name and the factors'."""
        return self.weight, self.a, self.b

    def added(self, params: Mapping[str, Tensor], change: Tensor) -> Params:
        """The layer's weight with a change [d_out, d_in] added."""
        return {self.weight: params[self.weight] + (change.T if self.in_rows else change)}


@dataclass(frozen=True)
class Lora:
    """A model's LoRA.

    Args:
        layers: The adapted layers.
        rank: r.
        scale: s.
        names: All parameters.
        head: The head's parameters.
    """

    layers: tuple[Layer, ...]
    rank: int
    scale: float
    names: frozenset[str]
    head: frozenset[str]

    @property
    def a(self) -> frozenset[str]:
        """The names of all factors A."""
        return frozenset(layer.a for layer in self.layers)

    @property
    def b(self) -> frozenset[str]:
        """The names of all factors B."""
        return frozenset(layer.b for layer in self.layers)

    def plan(
        self,
        head: str,
        shared: frozenset[str],
        local: frozenset[str] = frozenset(),
        download: frozenset[str] | None = None,
    ) -> ExchangePlan:
        """The plan that trains `shared` and `local` factors and, unless it is "frozen", the head.

        head: "shared", "local" or "frozen". download: the factors that go down; None: the shared ones.
        """
        require_choice("head", head, HEADS)
        shared_head, local_head = (self.head if head == role else frozenset[str]() for role in ("shared", "local"))
        plan = identity_plan(self.names, shared | shared_head, local | local_head)
        return plan if download is None else replace(plan, download=download | shared_head)


def lora_of(workload: Workload, method: str) -> Lora:
    """The model's LoRA; FederationError if it has no LoRA. method: for the message."""
    model, config = workload.model, workload.model.network.adapter
    if config is None or config.kind != "lora":
        raise FederationError(
            f"{method}: expected a model with the adapter lora, found {config.kind if config else 'none'}; "
            f"""set adapter={{"kind": "lora"}}"""
        )
    in_rows = holds_rows(model.network.encoder)
    stems = sorted(name.removesuffix(f".{A}") for name in model.network.adapted if name.endswith(A))
    layers = tuple(Layer(f"{stem}.weight", f"{stem}.{A}", f"{stem}.{B}", in_rows) for stem in stems)
    return Lora(layers, config.r or 0, config.scale, frozenset(model.parameters), model.groups.head)


@dataclass(frozen=True)
class Ranks:
    """Ranks per client; clients take the listed ranks in turn.

    A client with a lower rank than the server has zeros in the other rows of A and columns of B. Their gradients are 0,
    so that they stay 0, and only the client's rank crosses the wire (Cho et al. 2024).
    """

    ranks: Sequence[int]
    most: int  # the server's rank

    def __post_init__(self) -> None:
        if not self.ranks or not all(isinstance(rank, int) and 0 < rank <= self.most for rank in self.ranks):
            given = ", ".join(map(str, self.ranks)) or "none"
            raise FederationError(f"ranks: expected integers from 1 to the adapter's r, {self.most}, found {given}")

    def cut(self, client: ClientId, params: Mapping[str, Tensor]) -> Params:
        """The tensors, truncated to a client's rank."""
        rank = self.ranks[client % len(self.ranks)]
        return {
            name: value[:rank] if name.endswith(A) else value[:, :rank] if name.endswith(B) else value
            for name, value in params.items()
        }

    def filled(self, params: Mapping[str, Tensor]) -> Params:
        """The tensors, zero-padded from a client's rank to the server's shapes."""
        filled, pad = dict(params), torch.nn.functional.pad
        for name, value in params.items():
            if name.endswith(A):
                filled[name] = pad(value, (0, 0, 0, self.most - len(value)))
            elif name.endswith(B):
                filled[name] = pad(value, (0, self.most - value.shape[1]))
        return filled


def drawn(layers: Sequence[Layer], like: Mapping[str, Tensor], seed: int, round: int, client: int) -> Params:
    """Random factors A with the library's initialisation (He et al. 2015, a = √5), from the generator for this key."""
    with torch_seeded(seed, round, client, "adapter"):
        factors = {layer.a: torch.empty_like(like[layer.a]) for layer in layers}
        for factor in factors.values():
            torch.nn.init.kaiming_uniform_(factor, a=math.sqrt(5))
    return factors


def decomposed(b: Tensor, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """U, singular values and V^T of the product b a, by QR of both factors, without forming the product."""
    left, upper = torch.linalg.qr(b)
    right, lower = torch.linalg.qr(a.T)
    u, values, vt = torch.linalg.svd(upper @ lower.T, full_matrices=False)
    return left @ u, values, vt @ right.T


def stacked(sent: Sequence[Params], weights: Sequence[float], layer: Layer) -> tuple[Tensor, Tensor]:
    """All clients' factors for a layer, stacked along the rank; b a is the weighted mean of their products."""
    b = torch.cat([weight * params[layer.b] for params, weight in zip(sent, weights, strict=True)], 1)
    return b, torch.cat([params[layer.a] for params in sent])
