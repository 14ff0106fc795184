"""FedBFPT (Wang et al. 2023): sub-models with few layers train one layer at a time, from the bottom up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from fedsim.algorithms import Workload, require_choice
from fedsim.algorithms.averaging import averaging
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState
from fedsim.errors import FederationError, plural
from fedsim.plan import ClientId, ExchangePlan, PlanFn
from fedsim.rng import SERVER, numpy_generator


def fedbfpt(
    workload: Workload,
    local_layers: int | Sequence[int],
    schedule: str = "progressive",
    trained: str = "layer",
    deeper: str = "sampled",
    resampled: str = "round",
    draw: str = "fresh",
    weights: str = "uniform",
) -> FederatedAlgorithm:
    r"""Algorithm 1 with progressive learning and sampled deeper layers (section 3.3); layers count from 0.

    In round i client k trains layer ℓ and the head in a model with m_k^L layers. Layers 0 … ℓ are the server's, and
    those above are sampled from ℓ + 1 … m^G - 1. The client downloads the tensors merged since its last download, and
    nothing in round 1. The server averages the trained tensors (equation 1). Embeddings and a tied decoder stay frozen.

    Args:
        workload: The model, local training and the objective.
        local_layers: m_k^L, one number for all clients or a list with one per client. With the server's number of
            layers, and "all" of them trained, this is federated averaging.
        schedule: Determines ℓ; see `layers_by_round`.
        trained: This "layer" and the head, or "all" of the local model, embeddings included, with deeper layers sampled
            without repetition (FEDBFPT-ALL).
        deeper: The layers above ℓ are "sampled", or the "first" m_k^L layers are used throughout (ablation \M).
        resampled: Layers are sampled again in each "round", or when ℓ changes to another "layer" (ablation \S).
        draw: "fresh" samples per client and round, or "official": the same for all clients and all rounds with one ℓ,
            as the authors' code reseeds its generator (there, but not here, masks and order repeat, too).
        weights: "uniform" (equation 1), or "size", N_k / N, as in the paper's text on clients with unequal sizes.
    """
    require_choice("schedule", schedule, ("progressive", "first", "successive", "last"))
    require_choice("trained", trained, ("layer", "all"))
    require_choice("deeper", deeper, ("sampled", "first"))
    require_choice("resampled", resampled, ("round", "layer"))
    require_choice("draw", draw, ("fresh", "official"))
    model, seed = workload.model.groups, workload.training.seed
    depths = _depths(local_layers, workload, model.depth)
    layer_of = layers_by_round(workload.training.config.rounds, min(depths), schedule)

    def layers(round: int, client: ClientId) -> tuple[int, ...]:
        """The server's layers in the client's model, from the bottom."""
        if deeper == "first":
            return tuple(range(depths[client]))
        layer = layer_of[round - 1]
        drawn_in, drawn_by = round, client
        if draw == "official" or resampled == "layer":
            drawn_in = layer_of.index(layer) + 1  # the first round with this ℓ
        if draw == "official":
            drawn_by = SERVER
        above, missing = range(layer + 1, model.depth), depths[client] - layer - 1
        generator = numpy_generator(seed, drawn_in, drawn_by, "deeper layers")
        drawn = generator.choice(above, missing, replace=trained == "layer") if missing else ()
        return (*range(layer + 1), *sorted(int(number) for number in drawn))

    @lru_cache(maxsize=1024)
    def plan(round: int, client: ClientId) -> ExchangePlan:
        if not 1 <= round <= len(layer_of):
            raise FederationError(f"fedbfpt: expected a round from 1 to {len(layer_of)}, found {round}")
        view = model.view(layers(round, client))
        learned = frozenset(view) if trained == "all" else model.layers[layer_of[round - 1]] | model.head
        return ExchangePlan(view, frozenset(), train=learned, upload=learned, local=frozenset())

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        return method.predict(state, None, subset)  # the server's model, which has every layer

    method = averaging(workload, Pools(plan, workload.cohort), personal=True, weights=weights)
    return replace(method, predict=predict, personal=False)


def layers_by_round(rounds: int, permitted: int, schedule: str) -> tuple[int, ...]:
    r"""The layer ℓ trained in each round, one of the `permitted` lowest layers ("determination", section 3.3).

    "progressive": half of the rounds (rounded up) for layer 0, half of the rest for layer 1, and so on; the last
    permitted layer gets the rest. "first": always layer 0 (ablation \PL). "successive": one round per layer (\SP).
    "last": always the last permitted layer, which the paper does not try.
    """
    if schedule == "last":
        return (permitted - 1,) * rounds
    layers: list[int] = []
    while len(layers) < rounds:
        layer = min(layers[-1] + 1, permitted - 1) if layers and schedule != "first" else 0
        left = rounds - len(layers)
        layers += [layer] * (1 if schedule == "successive" else left if layer == permitted - 1 else (left + 1) // 2)
    return tuple(layers)


def _depths(local_layers: int | Sequence[int], workload: Workload, depth: int) -> tuple[int, ...]:
    """m_k^L for each client; FederationError unless it is between 1 and the server's number of layers."""
    clients = len(workload.members)
    given: list[Any] = list(local_layers) if isinstance(local_layers, list | tuple) else [local_layers] * clients
    if len(given) != clients:
        raise FederationError(
            f"local_layers: expected one number, or one for each of {plural(clients, 'client')}, found {len(given)}"
        )
    for number in given:
        if type(number) is not int or not 1 <= number <= depth:
            raise FederationError(f"local_layers: expected 1 to {depth}, the encoder's layers, found {number!r}")
    return tuple(given)


class Pools:
    """A plan that downloads the tensors a client lacks (FedBFPT, section 3.2: "parameter pool").

    A client keeps a copy of the server's model. In a round it fetches the viewed tensors that any client has changed
    since its last fetch; in round 1 nothing. This follows from all clients' plans in earlier rounds, so plans must be a
    pure function of round and client.
    """

    def __init__(self, plan: PlanFn, cohort: Callable[[int], Sequence[ClientId]]) -> None:
        """plan: the plan without downloads. cohort: the ids of a round's participants."""
        self._plan, self._cohort = plan, cohort
        self._merged: list[frozenset[str]] = []  # per round, from the first: the server's names
        self._stale: dict[ClientId, list[frozenset[str]]] = {}  # before each round: the server's names

    def __call__(self, round: int, client: ClientId) -> ExchangePlan:
        """The client's plan with its downloads."""
        plan, stale = self._plan(round, client), self._stale_before(round, client)
        return replace(plan, download=frozenset(name for target, name in _fetched(plan).items() if target in stale))

    def _stale_before(self, round: int, client: ClientId) -> frozenset[str]:
        """Tensors that the server has merged and the client has not fetched since."""
        stale = self._stale.setdefault(client, [frozenset()])
        while (number := len(stale)) < round:
            fetched = _fetched(self._plan(number, client)) if client in self._cohort(number) else {}
            stale.append((stale[-1] - fetched.keys()) | self._merged_in(number))
        return stale[round - 1]

    def _merged_in(self, round: int) -> frozenset[str]:
        while len(self._merged) < round:
            number = len(self._merged) + 1
            plans = [self._plan(number, client) for client in self._cohort(number)]
            self._merged.append(frozenset(plan.view[name] for plan in plans for name in plan.upload))
        return self._merged[round - 1]


def _fetched(plan: ExchangePlan) -> dict[str, str]:
    """The server's names in a client's view, without local ones -> one of the client's names for each."""
    return {target: name for name, target in plan.view.items() if name not in plan.local}
