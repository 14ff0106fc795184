"""What one client's local training costs, by shapes: the method's own rounds run on `meta` tensors.

The part of a cell that FedBFPT calls its computational and communication cost (section 3.1), and what a client holds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from benchmarks.backbones import architecture
from benchmarks.costs import ClientCosts
from benchmarks.effort import KNOWN_FLOPS
from benchmarks.flops import Counted, FlopCounter, OneText, PerText, Size, architecture_of, prepared_already
from benchmarks.planned import Features, Forgetful, Texts
from benchmarks.planning import counted_setting, wire_plan
from benchmarks.rounds import amounts_by_round, cohorts
from benchmarks.saved import library_name, saved_bytes
from benchmarks.spec import Cell
from fedsim.algorithms import build_algorithm
from fedsim.data import Client, Subset
from fedsim.engine import FederationState
from fedsim.models.model import Model
from fedsim.training import LocalTraining
from fedsim.wire import Channel

MOMENTS = 2  # that AdamW keeps of each parameter, beside a step of a few bytes
_KNOWN_ACTIVATIONS: dict[Hashable, int] = {}  # of one text: the same in every cell of such a model


def client_costs(cell: Cell) -> ClientCosts | None:
    """What a client's training costs in the mean over rounds and clients; None where a method trains by its own means.

    Every text has as many tokens as the cell cuts at. UserError where the backbone's configuration is not at hand.
    """
    count = _Count(cell)
    clients = [Client(number, Subset(Texts(), np.zeros(1, dtype=np.int64)), {}) for number in range(cell.clients)]
    with count.counter:
        start = count.algorithm.init(clients, Channel(cell.codec), Forgetful())
        rounds = amounts_by_round(count.algorithm, start, cohorts(cell, clients), count.round, lambda client: None)
    total = {name: sum(amounts[name] for amounts in rounds) for name in rounds[0]}
    trainings, texts = total.pop("trainings"), total.pop("texts")
    if not trainings:
        return None
    plan = wire_plan(cell)
    sent = plan.total
    return ClientCosts(
        width=count.model.hidden,
        length=count.size.tokens,
        asked=count.size.asked,
        batch_size=cell.training.batch_size,
        flops=total.pop("flops") / texts,
        up_bytes=sent.up_bytes / trainings,
        down_bytes=sent.down_bytes / trainings,
        setup_bytes=plan.setup_bytes / cell.clients,
        **{name: amount / trainings for name, amount in total.items()},
    )


class _Count:
    """The counts of a cell's trainings."""

    def __init__(self, cell: Cell) -> None:
        own: Any = counted_setting(cell, cell.backbone, LocalTraining(0, 0.0, 1), Features(counted=True)).objective
        self.size = Size(cell.training.max_length, own.asked_of(cell.training.max_length))
        self.counter = FlopCounter()
        training = _Watched(
            cell.seed,
            cell.training.learning_rate,
            cell.training.batch_size,
            rounds=cell.training.rounds,
            counter=self.counter,
            on_batches=self._counted,
            known=KNOWN_FLOPS,
            watch=self._watched,
        )
        features = Features(counted=True)
        self.setting = counted_setting(cell, cell.backbone, training, features, prepared_already(own))
        self.algorithm = build_algorithm(cell.algorithm, self.setting, cell.options)
        self.model = self.setting.model
        self.family = str(architecture(cell.backbone)["model_type"])
        self.batch_size = cell.training.batch_size
        self.amounts: dict[str, int] = {}

    def round(self, state: FederationState, cohort: Sequence[Client]) -> tuple[FederationState, dict[str, int]]:
        """The sums over the clients that train in the round after a state."""
        self.amounts = dict.fromkeys((
            "trainings", "texts", "flops", "forward", "backward", "trained", "saved_bytes", "parameters_bytes",
            "gradients_bytes", "moments_bytes", "activations_bytes",
        ), 0)  # fmt: skip
        after, _ = self.algorithm.round(state, cohort, Channel())
        if self.algorithm.plan is not None:
            for client in cohort:
                plan = self.algorithm.plan(state.round + 1, client.id)
                shapes = self.setting.client_model(plan).parameters
                names = (name for name in shapes if name in plan.upload)
                self.amounts["saved_bytes"] += saved_bytes(
                    (library_name(name, self.family), shapes[name].shape) for name in names
                )
        return after, self.amounts

    def _watched(self, model: Model, trained: frozenset[str]) -> None:
        """Add what a client holds who trains these parameters, and which of its layers are at work."""
        parts = model.groups
        places = [place for place, layer in enumerate(parts.layers) if layer & trained]
        lowest = 0 if parts.embeddings & trained else min(places, default=parts.depth)
        size = {name: tensor.numel() * tensor.element_size() for name, tensor in model.parameters.items()}
        gradients = sum(size[name] for name in trained)
        config: Any = model.network.encoder.config
        key = trained, self.size, config.to_json_string(), architecture_of(model)
        if key not in _KNOWN_ACTIVATIONS:
            _KNOWN_ACTIVATIONS[key] = kept_bytes(model, trained, self.size, self.counter)
        found = {
            "trainings": 1, "forward": parts.depth, "backward": parts.depth - lowest, "trained": len(places),
            "parameters_bytes": sum(size.values()), "gradients_bytes": gradients, "moments_bytes": MOMENTS * gradients,
            "activations_bytes": self.batch_size * _KNOWN_ACTIVATIONS[key],
        }  # fmt: skip
        for name, amount in found.items():
            self.amounts[name] += amount

    def _counted(self, training: LocalTraining, subset: Subset, flops: PerText) -> None:
        texts = len(subset)
        self.amounts["texts"] += texts
        self.amounts["flops"] += flops.of(np.full(texts, self.size.tokens), texts * self.size.asked)


def kept_bytes(model: Model, trained: frozenset[str], size: Size, counter: FlopCounter) -> int:
    """Bytes that the forward pass of one text keeps for the backward pass, without the parameters themselves.

    The model is on the `meta` device, and the counter, which says how many tokens are asked for, is entered.
    """
    model.set_trained(trained)
    model.network.train()
    counter.asked = size.asked
    batch = OneText(size, model.objective).subset.examples.collate(np.zeros(1, dtype=np.int64))
    weights = {tensor.untyped_storage()._cdata for tensor in model.parameters.values()}
    kept: dict[int, torch.UntypedStorage] = {}  # each once, whatever views of it are kept

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in weights:
            kept[storage._cdata] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model.loss(batch)
    return sum(storage.nbytes() for storage in kept.values())


@dataclass(frozen=True)
class _Watched(Counted):
    """Counted training that says which parameters of which model it trains."""

    watch: Any = field(default=lambda model, trained: None)

    def run(self, model: Model, subset: Subset, names: list[str], *where: Any, **options: Any) -> float:
        self.watch(model, frozenset(names))
        return super().run(model, subset, names, *where, **options)
