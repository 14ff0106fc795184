"""A client's turn: its part of a round, which needs nothing of the others' and so may be computed anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from fedsim.data import Client
from fedsim.wire import Params


@dataclass(frozen=True)
class ClientUpdate:
    """What a client's part of a round follows from, beside its examples.

    shared: of what the server has merged, by the server's names, all that the client views and does not download.
    private: what stayed with it. received: what it downloaded, by its own names.
    """

    round: int
    client: Client
    shared: Params
    private: Params
    received: Params


@dataclass(frozen=True)
class UpdateOutcome:
    """What a client uploads and what stays with it, by its own names, until the next turn; and its mean loss."""

    uploaded: Params
    kept: Params
    loss: float


ComputeUpdate = Callable[[ClientUpdate], UpdateOutcome]
# Asks for turns as they can be begun, perhaps some ahead, and gives their outcomes in the same order: as `map` does.
MapClients = Callable[[ComputeUpdate, Iterable[ClientUpdate]], Iterator[UpdateOutcome]]
