"""FedSA-LoRA (Guo et al. 2024): both factors are trained, A is averaged, every client keeps its B."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging
from fedsim.data import Client
from fedsim.engine import FederatedAlgorithm, FederationState
from fedsim.lora import lora_of
from fedsim.plan import ClientId
from fedsim.store import ClientStore
from fedsim.wire import Channel, Params

ONE = 0  # the client id that stores all clients' tensors


def fedsa_lora(workload: Workload, head: str = "local", in_turn: bool = False) -> FederatedAlgorithm:
    """A learns shared knowledge, B a client's specific knowledge.

    head: "local" as in the authors' settings, "shared", or "frozen" as initialised.
    in_turn: one B (and local head), which each client inherits from the previous client. The authors' code at commit
    fc276b5e computes this, because its settings give all clients one model object (core/fed_runner.py).
    """
    lora = lora_of(workload, "fedsa_lora")
    plan = lora.plan(head, lora.a, local=lora.b)
    if not in_turn:
        return averaging(workload, lambda round, client: plan)
    method = averaging(replace(workload, map_clients=map), lambda round, client: plan)  # one client after the other

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        return method.init(clients, channel, _HandedOn(store.folder, store.in_memory))

    return replace(method, init=init, client_update=None)


class _HandedOn(ClientStore):
    """A store in which every client reads the previous client's tensors."""

    def get(self, client: ClientId) -> Params:
        return super().get(ONE)

    def put(self, client: ClientId, round: int, tensors: Mapping[str, Tensor]) -> None:
        super().put(ONE, round, tensors)
