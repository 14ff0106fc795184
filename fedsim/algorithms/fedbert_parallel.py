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
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics, RoundOutcome
from fedsim.errors import FederationError
from fedsim.split import Side, SplitMethod, SplitUpdate, batch_by_batch, one_after_the_other, together
from fedsim.store import same_device
from fedsim.wire import Channel, Params


def fedbert_parallel(
    workload: Workload, averaged: str = "head-embeddings", transformer: str = "shared"
) -> FederatedAlgorithm:
    """Split training of all clients in parallel; after a round's local epochs, some parts are `averaged`.

    averaged: "embeddings" (EmdAvg, figure 7b), "head-embeddings" (figure 7c), or "all", the transformers too (parallel
    FedAvg); tied word embeddings of a head count as embeddings. Clients weigh N_k / N (equation 6).
    transformer: "shared", one on the server, which takes a step on a batch of each client in turn (section 3.4), or
    "own", a copy on the server for each client (Algorithm 2, line 3), averaged only with "all" (line 7). Without it the
    authors' code continues with one client's model; here that is the first's.
    """
    require_choice("averaged", averaged, ("embeddings", "head-embeddings", "all"))
    require_choice("transformer", transformer, ("shared", "own"))
    if averaged == "all" and transformer == "shared":
        raise FederationError("averaged 'all': expected a transformer for each client, as 'own' gives, found 'shared'")
    method = _Parallel(workload, averaged, copies=transformer == "own")
    return FederatedAlgorithm(
        method.init, method.round, method.predict, bool(method.private), method.server, alike=lambda round: averaged
    )


@dataclass
class _Parallel(SplitMethod):
    """The round's parts. copies: whether the server keeps a transformer for each client."""

    averaged: str
    copies: bool

    @cached_property
    def sent(self) -> list[str]:
        """What is averaged of the clients' side."""
        return sorted(self.workload.model.groups.embeddings) if self.averaged == "embeddings" else self.at_client

    @cached_property
    def private(self) -> list[str]:
        """What every client keeps to itself in all rounds."""
        common = self.at_server if self.averaged == "all" or not self.copies else []
        return sorted({*self.at_client, *self.at_server}.difference(self.sent, common))

    def round(self, state: FederationState, cohort: Sequence[Client], channel: Channel) -> RoundOutcome:
        number, shared = state.round + 1, self.workload.server_params(state)
        examples = [len(client.train) for client in cohort]
        steps = [self.workload.training.steps(client.train) for client in cohort]
        common = None if self.copies else self._side(shared, self.at_server, state, sum(steps), state.moments)
        updates = []
        for client, own_steps in zip(cohort, steps, strict=True):
            received = channel.to_client(client.id, {name: shared[name] for name in self.sent})
            values, moments = self._model(state, client) | received, moments_in(state.clients.get(client.id))
            own = self._side(values, self.at_client, state, own_steps, moments)
            server = common or self._side(values, self.at_server, state, own_steps, moments)
            updates.append(SplitUpdate(self.workload, channel, client, number, own, server))
        (one_after_the_other if common is None else batch_by_batch)(updates)
        losses = tuple(update.loss for update in updates)
        mean: Params = {}
        for update, weight in zip(updates, np.array(examples) / sum(examples), strict=True):
            uploaded = channel.to_server(update.client.id, {name: update.own.values[name] for name in self.sent})
            uploaded |= update.server.values if self.averaged == "all" else {}  # which the server has already
            for name, value in uploaded.items():
                mean.setdefault(name, torch.zeros_like(value)).add_(value, alpha=float(weight))
            self._keep(update, state)
        merged, kept = mean | channel.at_rest({name: mean[name] for name in self.sent}), {}
        if common is not None:
            merged, kept = merged | common.values, common.moments
        learned = FederationState(number, {**state.shared, **merged}, kept, state.clients)
        return learned, RoundMetrics(losses, float(np.average(losses, weights=examples)))

    def _side(
        self, values: Params, names: Sequence[str], state: FederationState, steps: int, moments: dict[str, Params]
    ) -> Side:
        """The party that trains these parameters, by so many steps a round."""
        rounds = self.workload.training.config.rounds
        return Side(self.workload, values, names, moments, state.round * steps, rounds * steps)

    def _keep(self, update: SplitUpdate, state: FederationState) -> None:
        """Keep the client's private tensors, with the moments of what it trains and of its own transformer."""
        trained, moments = update.own.values | update.server.values, update.own.moments
        if self.copies:
            moments = together(moments, update.server.moments)
        private = {name: trained[name] for name in self.private}
        state.clients.put(update.client.id, update.number, private | flat_moments(moments))

    def _model(self, state: FederationState, client: Client | None) -> Params:
        """W_k^E, W_k^T and W_k^H of a client, or of the first one, which is the server's model."""
        number = min(state.clients, default=0) if client is None else client.id
        kept = state.clients.get(number)
        private = {name: kept[name] for name in self.private if name in kept}
        return self.workload.server_params(state) | same_device(private, self.workload.model.device)

    def predict(self, state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        return self.workload.answers(self._model(state, client), subset)

    def server(self, state: FederationState) -> Params:
        """Every parameter by name: averages, and of what is never averaged the first client's."""
        return self._model(state, None)
