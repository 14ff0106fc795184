"""FedBERT, sequential (Tian et al. 2022, Algorithm 3): clients train in turn and pass on embeddings and head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fedsim.algorithms import Workload, require_choice
from fedsim.algorithms.averaging import flat_moments, moments_in
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics, RoundOutcome
from fedsim.errors import FederationError, plural
from fedsim.plan import ClientId
from fedsim.server import Moments
from fedsim.split import Side, SplitMethod, SplitUpdate, together
from fedsim.store import ClientStore
from fedsim.wire import Channel, Params


def fedbert_sequential(workload: Workload, turns: str = "pass", handed_on: str = "parameters") -> FederatedAlgorithm:
    """Head-embedding share (figure 7a): one transformer on the server, updated by one client after the other.

    A client receives W^E and W^H from the previous client through the server, which trains W^T. The first client has
    them from the set-up, and nothing is sent to a client that continues its turn. turns: "pass": each client spends its
    whole budget before the next one starts (section 4.2.1), with rounds divided evenly and in order; or "round": every
    client in the cohort trains in every round, as in the published Algorithm 3. handed_on: only W^E and W^H
    ("parameters"), with an optimiser per client, or also their moments ("optimizer"), as in the authors' code. The
    learning-rate schedule spans all turns.
    """
    require_choice("turns", turns, ("pass", "round"))
    require_choice("handed_on", handed_on, ("parameters", "optimizer"))
    method = _Sequential(workload, turns_by_round(workload, turns), handed_on == "optimizer")
    server = workload.server_params
    return FederatedAlgorithm(
        method.init, method.round, method.predict, False, server, alike=method.handed, learners=method.learners
    )


def turns_by_round(workload: Workload, turns: str) -> list[list[ClientId]]:
    """Each round's clients, in order; FederationError if rounds cannot be divided evenly."""
    config, clients = workload.training.config, len(workload.members)
    rounds = config.rounds
    if turns == "round":
        return [workload.cohort(number) for number in range(1, rounds + 1)]
    if rounds % clients or config.participation < 1:
        raise FederationError(
            f"turns 'pass': expected a participation of 1 and a number of rounds that is divisible by {clients}, the "
            f"number of clients, found {plural(rounds, 'round')} and a participation of {config.participation}"
        )
    return [[workload.members[number * clients // rounds]] for number in range(rounds)]


@dataclass
class _Sequential(SplitMethod):
    """The parts of the round. turns: clients per round; with_moments: whether optimiser states are passed on, too."""

    turns: Sequence[Sequence[ClientId]]
    with_moments: bool

    def init(self, clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        self.steps = {client.id: self.workload.training.steps(client.train) for client in clients}  # per turn
        return super().init(clients, channel, store)

    def round(self, state: FederationState, cohort: Sequence[Client], channel: Channel) -> RoundOutcome:
        number, values = state.round + 1, self.workload.server_params(state)
        order = self.learners(number, cohort)
        done, total = (
            sum(self.steps[one] for turns in of for one in turns) for of in (self.turns[: number - 1], self.turns)
        )
        server = Side(self.workload, values, self.at_server, state.moments, done, total)
        passed = {name: values[name] for name in self.at_client}
        moments = {
            kind: {name: params[name] for name in self.at_client if name in params}
            for kind, params in state.moments.items()
        }
        losses = []
        for client, (comes, goes) in zip(order, self.handed(number), strict=True):
            kept = moments if self.with_moments else moments_in(state.clients.get(client.id))
            before = passed if comes else None
            if comes:
                passed, kept = self._sent(channel.to_client, client.id, passed, kept)
            client_side = Side(self.workload, passed, self.at_client, kept, server.optimizer.done, total)
            update = SplitUpdate(self.workload, channel, client, number, client_side, server)
            for _ in update:  # train all batches
                pass
            losses.append(update.loss)
            passed, kept = client_side.values, client_side.moments
            if goes:
                passed, kept = self._sent(partial(channel.to_server, onto=before), client.id, passed, kept)
            if self.with_moments:
                moments = kept
            else:
                state.clients.put(client.id, number, flat_moments(kept))
        mean = float(np.average(losses, weights=[len(client.train) for client in order]))
        learned = FederationState(number, passed | server.values, together(server.moments, moments), state.clients)
        return learned, RoundMetrics(tuple(losses), mean)

    def handed(self, round: int) -> tuple[tuple[bool, bool], ...]:
        """Per turn: whether W^E and W^H come from another client, and whether they go to another or the server."""
        ids, before, after = self.turns[round - 1], self.turns[: round - 1], self.turns[round:]
        holders = [before[-1][-1] if before else ids[0], *ids[:-1]]
        takers = [*ids[1:], after[0][0] if after else None]
        return tuple(
            (learner != holder, learner != taker) for learner, holder, taker in zip(ids, holders, takers, strict=True)
        )

    def learners(self, round: int, cohort: Sequence[Client]) -> Sequence[Client]:
        """The clients that train in a round, in order."""
        return [next(client for client in cohort if client.id == one) for one in self.turns[round - 1]]

    def _sent(
        self, send: Callable[..., Params], client: ClientId, values: Params, moments: Moments
    ) -> tuple[Params, Moments]:
        """Send W^E, W^H and their moments; returns what arrives. Moments that are not passed on stay unchanged."""
        arrived = send(client, values)
        if not self.with_moments:
            return arrived, moments
        return arrived, moments_in(send(client, flat_moments(moments), "moments"))

    def predict(self, state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        return self.workload.answers(self.workload.server_params(state), subset)
