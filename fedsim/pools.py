"""Parameter pools: what each client has of what the server merged, and so what a round's download has to bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fedsim.plan import ClientId, ExchangePlan, PlanFn


class Pools:
    """A plan whose downloads are what clients lack (FedBFPT, section 3.2: "parameter pool").

    A client keeps a copy of the server's model. It views some of it in a round, and then fetches what of that was
    merged since it last fetched it, be it by others; in round 1 that is nothing. This follows from the plans of all
    clients in the rounds before, which must be a pure function of round and client.
    """

    def __init__(self, plan: PlanFn, cohort: Callable[[int], Sequence[ClientId]]) -> None:
        """plan: without downloads. cohort: the ids of the clients that take part in a round."""
        self._plan, self._cohort = plan, cohort
        self._merged: list[frozenset[str]] = []  # by round, the first one first: the server's names
        self._stale: dict[ClientId, list[frozenset[str]]] = {}  # before each round: the server's names

    def __call__(self, round: int, client: ClientId) -> ExchangePlan:
        """The client's plan with what it downloads."""
        own, stale = self._plan(round, client), self._stale_before(round, client)
        return replace(own, download=frozenset(name for target, name in _fetched(own).items() if target in stale))

    def _stale_before(self, round: int, client: ClientId) -> frozenset[str]:
        """What the server has merged and the client has not fetched since."""
        found = self._stale.setdefault(client, [frozenset()])
        while len(found) < round:
            number = len(found)
            fetched = _fetched(self._plan(number, client)) if client in self._cohort(number) else {}
            found.append((found[-1] - fetched.keys()) | self._merged_in(number))
        return found[round - 1]

    def _merged_in(self, round: int) -> frozenset[str]:
        while len(self._merged) < round:
            number = len(self._merged) + 1
            plans = [self._plan(number, client) for client in self._cohort(number)]
            self._merged.append(frozenset(plan.view[name] for plan in plans for name in plan.upload))
        return self._merged[round - 1]


def _fetched(plan: ExchangePlan) -> dict[str, str]:
    """The server's names that a client views and does not keep to itself -> one of the client's own for each."""
    return {target: name for name, target in plan.view.items() if name not in plan.local}
