"""The shared round: all averaging methods use it, each with its exchange plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from fedsim.aggregation import watched
from fedsim.algorithms import Workload, require_choice
from fedsim.data import Client, Subset
from fedsim.engine import ClientUpdate, FederatedAlgorithm, FederationState, RoundMetrics, RoundOutcome, UpdateOutcome
from fedsim.errors import FederationError
from fedsim.lora import Ranks, drawn, lora_of
from fedsim.models.model import ParameterGroups
from fedsim.plan import ClientId, ExchangePlan, PlanFn
from fedsim.server import Moments, ServerOptimizer
from fedsim.store import ClientStore, same_device
from fedsim.wire import Channel, Params

MOMENT = "optimizer/"  # prefix of optimiser moments that a client keeps
SENT = "sent-"  # prefix of kinds that the server keeps to send in the next round


@dataclass(frozen=True)
class Uploads:
    """A round's uploads.

    Args:
        server: The server's tensors, means included.
        sent: Each client's upload, in its rank and in order.
        weights: Each client's weight, in the same order.
        at_rest: Rounds tensors as a transfer does, so that clients and server compute with the same values.
    """

    round: int
    server: Params
    sent: Sequence[Params]
    weights: Sequence[float]
    at_rest: Callable[[Params], Params]


class Merged(NamedTuple):
    """The outcome of a server step.

    server: the changed tensors, also frozen ones. sent: kind -> payload for this round's clients in the next round, to
    repeat the change to frozen tensors; other clients receive all changed frozen tensors instead.
    """

    server: Params
    sent: Moments = {}  # noqa: RUF012 - never changed


Merge = Callable[[Uploads], Merged]
Finish = Callable[[int, Params, Params], Params]  # (round, received, to upload) -> to upload
Apart = Callable[[ClientUpdate], Params]  # what a client trains apart from the shared round -> what it keeps of that


def as_they_are(subset: Subset) -> Subset:
    """Examples as token ids."""
    return subset


def frozen_states(workload: Workload, cached: bool, half: bool) -> Callable[[Subset], Subset]:
    """How a method with a frozen encoder reads examples: as features if `cached`, else as token ids.

    half: keep features in half precision; FederationError if none are kept.
    """
    if half and not cached:
        raise FederationError("half_features: expected cached features, found none; leave half_features out")
    return partial(workload.by_features, half=half) if cached else as_they_are


def averaging(
    workload: Workload,
    plan: PlanFn,
    server: Mapping[str, Any] | None = None,
    proximal: float = 0.0,
    prepared: Callable[[Subset], Subset] = as_they_are,
    personal: bool | None = None,
    weights: str = "size",
    merge: Merge | None = None,
    finish: Finish | None = None,
    ranks: Ranks | None = None,
    first: frozenset[str] = frozenset(),
    apart: Apart | None = None,
) -> FederatedAlgorithm:
    """Each round: download, train locally, upload, average by name, server step (McMahan et al. 2017, Algorithm 1).

    Args:
        workload: The model, local training and the objective.
        plan: A client's exchange plan in a round. It has to download every merged tensor that the client may have
            missed: the others in its view count as present at the client (see `fedbfpt.Pools`).
        server: The arguments of a ServerOptimizer.
        proximal: The weight of FedProx's term (Li et al. 2020), which covers downloaded tensors.
        prepared: Converts examples for training and answers.
        personal: Whether clients' models differ. None: the first client's plan decides, and other plans must agree.
        weights: The clients' weights in a mean: by examples ("size", N_i / N) or equal ("uniform").
        merge: The server's processing after the mean.
        finish: A client's processing before the upload.
        ranks: For clients with narrower factors than the server's.
        first: Tensors that a client trains alone before the others, for as many epochs.
        apart: A client's training apart from the shared round.
    """
    if not isinstance(proximal, int | float) or not proximal >= 0:
        raise FederationError(f"proximal: expected a weight >= 0, found {proximal!r}")
    require_choice("weights", weights, ("size", "uniform"))
    if workload.model.network.adapter:
        plan = of_trainable(plan, workload.model.trainable)
    if personal is None:
        personal = _is_personal(plan(1, 0), workload.initial)
    optimizer = ServerOptimizer.from_options(server or {})
    shared = _Averaging(
        workload, plan, optimizer, proximal, prepared, personal, weights, merge, finish, ranks, first, apart
    )
    alone = merge is None and ranks is None  # whether the plan alone determines what a client sends
    return FederatedAlgorithm(
        shared.init,
        shared.round,
        shared.predict,
        personal,
        workload.server_params,
        plan if alone else None,
        None if alone else shared.cohorts,
        client_update=shared.client_update,
    )


@dataclass
class _Averaging:
    """The parts of the round; the fields are `averaging`'s arguments."""

    workload: Workload
    plan: PlanFn
    optimizer: ServerOptimizer
    proximal: float
    prepared: Callable[[Subset], Subset]
    personal: bool
    weights: str
    merge: Merge | None
    finish: Finish | None
    ranks: Ranks | None
    first: frozenset[str]
    apart: Apart | None

    def cohorts(self, round: int) -> Hashable:
        """The clients of this round and the previous one, which determine what is sent."""
        return tuple(self.workload.cohort(round)), tuple(self.workload.cohort(round - 1)) if round > 1 else ()

    def init(self, clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        for client in clients:
            if not self.personal and _is_personal(self.plan(1, client.id), self.workload.initial):
                raise FederationError(
                    f"averaging: client {client.id} has a personal model, the first client has none; "
                    "give personal=True where plans differ"
                )
            channel.setup(client.id, self.workload.initial)
            adapter = self.workload.model.network.adapter
            if adapter and adapter.draws == "own":
                seed, local = self.workload.training.seed, self._plan(1, client.id).local
                factors = drawn(lora_of(self.workload, "").layers, self.workload.initial, seed, 0, client.id)
                store.put(client.id, 0, {name: factor for name, factor in factors.items() if name in local})
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(self, state: FederationState, cohort: Sequence[Client], channel: Channel) -> RoundOutcome:
        number, device = state.round + 1, self.workload.model.device
        plans = {client.id: self._plan(number, client.id) for client in cohort}
        weights = aggregation_weights(cohort, plans, self.weights)
        shared = self.workload.server_params(state)
        downloads: dict[ClientId, Channel] = {}
        mean: Params = {}
        losses, sent = [], list[Params]()
        watch = watched(self.workload, plans, self.ranks)

        def updates() -> Iterator[ClientUpdate]:
            for client in cohort:
                plan = plans[client.id]
                downloads[client.id] = channel.apart()
                due = {name: shared[plan.view[name]] for name in sorted(plan.download)}
                received = downloads[client.id].to_client(client.id, self._cut(client.id, due), view=plan.view)
                others = {plan.view[name] for name in plan.view.keys() - plan.download - plan.local}
                at_server = {name: shared[name] for name in sorted(others & state.shared.keys())}
                self._follow(state, client.id, downloads[client.id], at_server)
                present = channel.at_client(client.id, at_server)
                private = state.clients.get(client.id)
                watch.begun(client.id, self._begin(plan, present, private) | received)
                yield ClientUpdate(number, client, present, private, received, channel.apart())

        for client, outcome in zip(cohort, self.workload.map_clients(self.client_update, updates()), strict=True):
            for row in downloads.pop(client.id).ledger.rows:
                channel.ledger.add(row)
            state.clients.put(client.id, number, outcome.kept)
            losses.append(outcome.loss)
            view, uploaded = plans[client.id].view, same_device(outcome.uploaded, device)
            onto = self._cut(client.id, {name: shared[view[name]] for name in uploaded})
            arrived = channel.to_server(client.id, uploaded, view=view, onto=onto)
            if self.merge:  # copies, as the next client trains the same model
                sent.append({name: tensor.clone() for name, tensor in arrived.items()})
            watch.trained(client.id, outcome.kept | arrived)
            for name, tensor in (self.ranks.filled(arrived) if self.ranks else arrived).items():
                target = view[name]
                if target not in mean:
                    mean[target] = torch.zeros_like(tensor)
                mean[target].add_(tensor, alpha=weights[client.id][target])
        current = {name: shared[name] for name in mean}
        of_server = {name: params for name, params in state.moments.items() if not name.startswith(SENT)}
        kept = {moment: same_device(params, device) for moment, params in of_server.items()}
        updated, moments = self.optimizer.step(current, mean, kept)
        updated = channel.at_rest(updated)
        sizes = [len(client.train) for client in cohort]
        counted = [size if self.weights == "size" else 1 for size in sizes]
        shares = [count / sum(counted) for count in counted]
        if self.merge:
            merged = self.merge(Uploads(number, shared | updated, sent, shares, channel.at_rest))
            updated = updated | merged.server
            moments = moments | {f"{SENT}{kind}": params for kind, params in merged.sent.items()}
        ended = FederationState(number, {**state.shared, **updated}, moments, state.clients)
        server = self.workload.server_params(ended)
        measured = watch.measured(shares, lambda id: self._begin(plans[id], server, state.clients.get(id)))
        return ended, RoundMetrics(tuple(losses), float(np.average(losses, weights=sizes)), measured)

    def _cut(self, client: ClientId, params: Params) -> Params:
        """A payload, truncated to a client's rank."""
        return self.ranks.cut(client, params) if self.ranks else params

    def _follow(self, state: FederationState, client: ClientId, channel: Channel, at_server: Params) -> None:
        """Send what the last merges changed, so that the client repeats them and has the server's tensors."""
        if broadcast := self._broadcast(state, client):
            for kind, payload in broadcast.items():
                channel.to_client(client, payload, kind)  # already in its view
            channel.merged(client, at_server)

    def _broadcast(self, state: FederationState, client: ClientId) -> Moments:
        """Payloads by kind that update a client's frozen tensors; all changed ones if it missed the last round."""
        if not self.merge or not state.round:
            return {}
        if client in self.workload.cohort(state.round):
            return {name.removeprefix(SENT): part for name, part in state.moments.items() if name.startswith(SENT)}
        changed = state.shared.keys() - self.workload.model.trainable
        return {"residuals": {name: state.shared[name] for name in sorted(changed)}} if changed else {}

    def _plan(self, number: int, client: ClientId) -> ExchangePlan:
        """The client's plan; FederationError if its view has a name unknown to the server."""
        plan = self.plan(number, client)
        if unknown := sorted(set(plan.view.values()) - self.workload.initial.keys()):
            raise FederationError(f"exchange plan: the server has no {unknown[0]}, which client {client} views")
        return plan

    def client_update(self, update: ClientUpdate) -> UpdateOutcome:
        """Train one client."""
        number, client, received = update.round, update.client, update.received
        plan = self._plan(number, client.id)
        moments = moments_in(update.private)
        apart = self.apart(update) if self.apart else {}
        model = self.workload.client_model(plan)
        begun = self._begin(plan, update.shared, update.private) | received
        if self.ranks:
            received, begun = self.ranks.filled(received), self.ranks.filled(self._cut(client.id, begun))
        model.hold(begun)
        loss, after = 0.0, Moments()
        for part in filter(None, (plan.train & self.first, plan.train - self.first)):
            steps = {kind: dict(params) for kind, params in moments.items()}
            subset = self.prepared(client.train)
            loss = self.workload.training.run(
                model, subset, sorted(part), number, client.id, received, self.proximal, steps
            )
            for kind, params in steps.items():
                after.setdefault(kind, {}).update(params)
        kept = model.read(sorted(plan.local)) | flat_moments(after) | apart
        uploaded = model.read(sorted(plan.upload))
        uploaded = self.finish(number, received, uploaded) if self.finish else uploaded
        return UpdateOutcome(self._cut(client.id, uploaded), kept, loss)

    def _begin(self, plan: ExchangePlan, shared: Params, private: Params) -> Params:
        """A client's tensors by its names: kept ones or their initial values, and the server's for the others."""
        initial = self.workload.initial
        return {
            name: private.get(name, initial[target]) if name in plan.local else shared.get(target, initial[target])
            for name, target in plan.view.items()
        }

    def predict(self, state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        model, values = self.workload.model, self.workload.server_params(state)
        if client is not None:
            plan = self._plan(max(state.round, 1), client.id)
            model, values = self.workload.client_model(plan), self._begin(plan, values, state.clients.get(client.id))
        model.set_trained(())  # so that `hold` does not write the last client's trained tensors again
        model.hold(values)
        return self.workload.scored(model, self.prepared(subset))


def of_trainable(plan: PlanFn, trainable: frozenset[str]) -> PlanFn:
    """A method's plan, restricted to trainable server parameters: the others are frozen and not sent."""

    def part(round: int, client: ClientId) -> ExchangePlan:
        whole = plan(round, client)
        kept = {name for name, target in whole.view.items() if target in trainable}
        sets = {role: getattr(whole, role) & kept for role in ("download", "train", "upload", "local")}
        return replace(whole, **sets)

    return part


def _is_personal(plan: ExchangePlan, server: Params) -> bool:
    """Whether a client's model differs from the server's: by kept tensors, or by other or fewer parameters."""
    return bool(plan.local) or dict(plan.view) != {name: name for name in server}


def flat_moments(moments: Moments) -> Params:
    """Moments as client tensors, under names that `moments_in` reads."""
    return {f"{MOMENT}{kind}/{name}": value for kind, params in moments.items() for name, value in params.items()}


def moments_in(private: Params) -> Moments:
    """The moments among a client's kept tensors."""
    moments: Moments = {}
    for name, value in private.items():
        if name.startswith(MOMENT):
            kind, _, parameter = name.removeprefix(MOMENT).partition("/")
            moments.setdefault(kind, {})[parameter] = value
    return moments


def aggregation_weights(
    cohort: Sequence[Client], plans: Mapping[ClientId, ExchangePlan], weights: str = "size"
) -> dict[ClientId, dict[str, float]]:
    """N_i / N for each client and server tensor, with N over the cohort's uploaders of that tensor.

    weights: N_i is the client's number of training examples ("size"), or 1 ("uniform").
    """
    sizes = {client.id: len(client.train) if weights == "size" else 1 for client in cohort}
    uploaded = {client: [plans[client].view[name] for name in plans[client].upload] for client in sizes}
    totals = Counter[str]()
    for client, targets in uploaded.items():
        for target in targets:
            totals[target] += sizes[client]
    return {
        client: {target: sizes[client] / totals[target] for target in targets} for client, targets in uploaded.items()
    }


def whole_model(model: ParameterGroups, embeddings: str) -> frozenset[str]:
    """The parameters that a client trains: all except frozen embeddings."""
    require_choice("embeddings", embeddings, ("frozen", "global", "local"))
    return model.names - model.embeddings if embeddings == "frozen" else model.names
