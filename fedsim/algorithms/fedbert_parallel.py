"""FedBERT, parallel (Tian et al. 2022, Algorithm 2): clients train in parallel, then parts are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

import numpy as np
import torch

from fedsim.algorithms import Workload, require_choice
from fedsim.algorithms.averaging import flat_moments, moments_in
from fedsim.data import Client, Subset
from fedsim.engine import ClientUpdate, FederatedAlgorithm, FederationState, RoundMetrics, RoundOutcome, UpdateOutcome
from fedsim.errors import FederationError
from fedsim.split import Side, SplitMethod, SplitUpdate, together
from fedsim.store import same_device
from fedsim.wire import Channel, Params


def fedbert_parallel(
    workload: Workload, averaged: str = "head-embeddings", transformer: str = "shared"
) -> FederatedAlgorithm:
    """Split training of all clients in parallel; after a round's local epochs, some parts are `averaged`.

    averaged: "embeddings" (EmdAvg, figure 7b), "head-embeddings" (figure 7c), or "all", transformers included (parallel
    FedAvg); a head's tied word embeddings count as embeddings. Client weights are N_k / N (equation 6). transformer:
    "shared": one on the server, which takes a step on each client's batch in turn (section 3.4), or "own": a copy per
    client on the server (Algorithm 2, line 3), averaged only with "all" (line 7). Without "all" the authors' code
    continues with one client's model; here with the first client's.
    """
    require_choice("averaged", averaged, ("embeddings", "head-embeddings", "all"))
    require_choice("transformer", transformer, ("shared", "own"))
    if averaged == "all" and transformer == "shared":
        raise FederationError("averaged 'all': expected a transformer for each client, as 'own' gives, found 'shared'")
    method = _Parallel(workload, averaged, copies=transformer == "own")
    return FederatedAlgorithm(
        method.init,
        method.round,
        method.predict,
        bool(method.private),
        method.server,
        alike=lambda round: averaged,
        client_update=method.client_update if method.copies else None,
    )


@dataclass
class _Parallel(SplitMethod):
    """The parts of the round. copies: whether the server keeps one transformer per client."""

    averaged: str
    copies: bool

    @cached_property
    def sent(self) -> list[str]:
        """The averaged tensors on the clients' side."""
        return sorted(self.workload.model.groups.embeddings) if self.averaged == "embeddings" else self.at_client

    @cached_property
    def private(self) -> list[str]:
        """The tensors that every client keeps private in all rounds."""
        common = self.at_server if self.averaged == "all" or not self.copies else []
        return sorted({*self.at_client, *self.at_server}.difference(self.sent, common))

    def round(self, state: FederationState, cohort: Sequence[Client], channel: Channel) -> RoundOutcome:
        number, shared = state.round + 1, self.workload.server_params(state)
        present = {name: value for name, value in state.shared.items() if name not in self.sent}
        updates = []
        for client in cohort:
            received = channel.to_client(client.id, {name: shared[name] for name in self.sent})
            private = state.clients.get(client.id)
            updates.append(ClientUpdate(number, client, present, private, received, channel.apart()))
        common = None
        if self.copies:
            outcomes = list(self.workload.map_clients(self.client_update, updates))
        else:
            steps = sum(self.workload.training.steps(client.train) for client in cohort)
            common = self._side(shared, self.at_server, state.round, steps, state.moments)
            outcomes = self._trained(updates, common)
        for row in (row for outcome in outcomes for row in outcome.crossed):
            channel.ledger.add(row)
        losses, sizes = tuple(outcome.loss for outcome in outcomes), [len(client.train) for client in cohort]
        mean: Params = {}
        for client, outcome, weight in zip(cohort, outcomes, np.array(sizes) / sum(sizes), strict=True):
            trained = same_device(outcome.uploaded, self.workload.model.device)
            averaged, onto = ({name: each[name] for name in self.sent} for each in (trained, shared))
            uploaded = trained | channel.to_server(client.id, averaged, onto=onto)
            for name, value in uploaded.items():
                mean.setdefault(name, torch.zeros_like(value)).add_(value, alpha=float(weight))
            state.clients.put(client.id, number, outcome.kept)
        merged, kept = mean | channel.at_rest({name: mean[name] for name in self.sent}), {}
        if common is not None:
            merged, kept = merged | common.values, common.moments
        learned = FederationState(number, {**state.shared, **merged}, kept, state.clients)
        return learned, RoundMetrics(losses, float(np.average(losses, weights=sizes)))

    def client_update(self, update: ClientUpdate) -> UpdateOutcome:
        """Train one client with its own transformer on the server."""
        return self._trained([update], None)[0]

    def _trained(self, updates: Sequence[ClientUpdate], common: Side | None) -> list[UpdateOutcome]:
        """Train one batch per client in turn, until every client has finished; see `_split`."""
        splits = [self._split(update, common) for update in updates]
        for _ in zip_longest(*splits):
            pass
        return [self._outcome(split) for split in splits]

    def _split(self, update: ClientUpdate, common: Side | None) -> SplitUpdate:
        """A client's split training, with the `common` server side or with a separate one."""
        values = self.workload.initial | update.shared | update.private | update.received
        moments = moments_in(update.private)
        done, steps = update.round - 1, self.workload.training.steps(update.client.train)
        client_side = self._side(values, self.at_client, done, steps, moments)
        server = common or self._side(values, self.at_server, done, steps, moments)
        return SplitUpdate(self.workload, update.channel, update.client, update.round, client_side, server)

    def _side(self, values: Params, names: Sequence[str], done: int, steps: int, moments: dict[str, Params]) -> Side:
        """The party that trains these parameters, after `done` rounds with `steps` steps per round."""
        rounds = self.workload.training.config.rounds
        return Side(self.workload, values, names, moments, done * steps, rounds * steps)

    def _outcome(self, split: SplitUpdate) -> UpdateOutcome:
        """The outcome: averaged tensors, including those at the server, and kept ones (private tensors and moments)."""
        trained, moments = split.client_side.values | split.server.values, split.client_side.moments
        if self.copies:
            moments = together(moments, split.server.moments)
        averaged = [*self.sent, *(self.at_server if self.averaged == "all" else ())]
        kept = {name: trained[name] for name in self.private} | flat_moments(moments)
        return UpdateOutcome(
            {name: trained[name] for name in averaged}, kept, split.loss, tuple(split.channel.ledger.rows)
        )

    def _model(self, state: FederationState, client: Client | None) -> Params:
        """A client's W_k^E, W_k^T and W_k^H; for the server, the first client's."""
        number = min(state.clients, default=0) if client is None else client.id
        kept = state.clients.get(number)
        private = {name: kept[name] for name in self.private if name in kept}
        return self.workload.server_params(state) | same_device(private, self.workload.model.device)

    def predict(self, state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        return self.workload.answers(self._model(state, client), subset)

    def server(self, state: FederationState) -> Params:
        """Every parameter by name: averages, or the first client's if never averaged."""
        return self._model(state, None)
