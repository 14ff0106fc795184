"""FedBERT, parallel (Tian et al. 2022, Algorithm 2): clients train side by side, then parts of them are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from fedsim.algorithms import Workload, require_choice
from fedsim.algorithms.averaging import flat_moments, moments_in
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.errors import FederationError
from fedsim.split import (
    Side,
    SplitUpdate,
    client_side,
    in_turn,
    kept_moments,
    server_side,
    side,
    side_by_side,
    together,
)
from fedsim.store import ClientStore, same_device
from fedsim.wire import Channel, Params


def fedbert_parallel(
    setting: Workload, averaged: str = "head-embeddings", transformer: str = "shared"
) -> FederatedAlgorithm:
    """Split training of all clients at a time; after a round's local epochs, what is `averaged` becomes one again.

    averaged: "embeddings" (EmdAvg, figure 7b), "head-embeddings" (figure 7c), or "all", the transformers too (parallel
    FedAvg); a head's word embeddings, where it is tied to them, are embeddings. Clients weigh N_k / N (equation 6).
    transformer: "shared", one on the server, which takes a step on a batch of each client in turn (section 3.4), or
    "own", a copy on the server for each client (Algorithm 2, line 3): they are averaged with "all" (line 7), and else
    never, as in the authors' code, which goes on with one client's model: here the first's.
    """
    require_choice("averaged", averaged, ("embeddings", "head-embeddings", "all"))
    require_choice("transformer", transformer, ("shared", "own"))
    if averaged == "all" and transformer == "shared":
        raise FederationError("averaged 'all': expected a transformer for each client, as 'own' gives, found 'shared'")
    method = _Parallel(setting, averaged, copies=transformer == "own")
    return FederatedAlgorithm(
        method.init, method.round, method.predict, bool(method.private), method.server, alike=lambda round: averaged
    )


@dataclass
class _Parallel:
    """The round's parts. copies: whether the server keeps a transformer for each client."""

    setting: Workload
    averaged: str
    copies: bool

    @cached_property
    def at_client(self) -> frozenset[str]:
        """W^E and W^H."""
        return client_side(self.setting.model.groups)

    @cached_property
    def at_server(self) -> frozenset[str]:
        """W^T."""
        return server_side(self.setting.model.groups)

    @cached_property
    def sent(self) -> list[str]:
        """What is averaged of the clients' side."""
        embeddings = self.setting.model.groups.embeddings
        return sorted(embeddings if self.averaged == "embeddings" else self.at_client)

    @cached_property
    def private(self) -> list[str]:
        """What is each client's own for good."""
        common = self.at_server if self.averaged == "all" or not self.copies else frozenset()
        return sorted((self.at_client | self.at_server).difference(self.sent, common))

    def init(self, clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        for client in clients:
            channel.setup(client.id, {name: self.setting.initial[name] for name in sorted(self.at_client)})
        return FederationState(0, {}, {}, store)

    def round(
        self, state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        number, shared = state.round + 1, self.setting.server_params(state)
        steps = sum(self.setting.training.steps(client.train) for client in cohort)
        common = None if self.copies else self._side(shared, self.at_server, state, steps, state.moments)
        turns = [self._turn(state, client, channel, shared, common) for client in cohort]
        (in_turn if common is None else side_by_side)(turns)
        losses = tuple(turn.loss for turn in turns)
        examples = [len(client.train) for client in cohort]
        mean: Params = {}
        for turn, own in zip(turns, examples, strict=True):
            for name, value in self._given(turn, channel).items():
                mean.setdefault(name, torch.zeros_like(value)).add_(value, alpha=own / sum(examples))
            self._keep(turn, state)
        merged = mean | channel.at_rest({name: mean[name] for name in self.sent})
        moments = {}
        if common is not None:
            merged, moments = merged | common.values, kept_moments(self.setting, common)
        learned = FederationState(number, {**state.shared, **merged}, moments, state.clients)
        return learned, RoundMetrics(losses, float(np.average(losses, weights=examples)))

    def _turn(
        self, state: FederationState, client: Client, channel: Channel, shared: Params, common: Side | None
    ) -> SplitUpdate:
        """A client's local epochs, from the averages and what is its own; common: the transformer of all."""
        received = channel.to_client(client.id, {name: shared[name] for name in self.sent})
        values, moments = self._model(state, client) | received, moments_in(state.clients.get(client.id))
        steps = self.setting.training.steps(client.train)
        own = self._side(values, self.at_client, state, steps, moments)
        server = common or self._side(values, self.at_server, state, steps, moments)
        return SplitUpdate(self.setting, channel, client, state.round + 1, own, server)

    def _side(
        self, values: Params, names: frozenset[str], state: FederationState, steps: int, moments: dict[str, Params]
    ) -> Side:
        """The party that trains these parameters, by so many steps a round."""
        rounds = self.setting.training.config.rounds
        return side(self.setting, {name: values[name] for name in names}, moments, state.round * steps, rounds * steps)

    def _given(self, turn: SplitUpdate, channel: Channel) -> Params:
        """What enters the averages of a client: what it uploads, and of its transformer what the server has already."""
        uploaded = channel.to_server(turn.client.id, {name: turn.own.values[name] for name in self.sent})
        return uploaded | (turn.server.values if self.averaged == "all" else {})

    def _keep(self, turn: SplitUpdate, state: FederationState) -> None:
        """Keep what is the client's own, with the moments of what it trains and of its own transformer."""
        trained, moments = turn.own.values | turn.server.values, kept_moments(self.setting, turn.own)
        if self.copies:
            moments = together(moments, kept_moments(self.setting, turn.server))
        own = {name: trained[name] for name in self.private}
        state.clients.put(turn.client.id, turn.number, own | flat_moments(moments))

    def _model(self, state: FederationState, client: Client | None) -> Params:
        """W_k^E, W_k^T and W_k^H of a client; without one, the model that is gone on with."""
        number = min(state.clients, default=0) if client is None else client.id
        kept = state.clients.get(number)
        own = {name: kept[name] for name in self.private if name in kept}
        return self.setting.server_params(state) | same_device(own, self.setting.model.device)

    def predict(self, state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        return self.setting.answers(self._model(state, client), subset)

    def server(self, state: FederationState) -> Params:
        """Every parameter by name: averages, and of what is never averaged the first client's."""
        return self._model(state, None)
