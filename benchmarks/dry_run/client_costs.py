"""What training costs by shapes: FLOPs, memory and the size of files, counted in dry runs on `meta` tensors.

PyTorch counts the FLOPs of matrix products, forwards and backwards, while a method's own rounds run; so a gradient
counts where there is one. Every text has as many tokens as the cell cuts texts at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.costs import ClientCosts
from benchmarks.dry_run.rounds import Amounts, Counted, DryRun, Meter, client_of, decisive
from benchmarks.dry_run.saved_size import library_name, saved_bytes
from benchmarks.dry_run.stand_ins import Features, OneText, States, Texts
from benchmarks.encoders.backbones import architecture
from benchmarks.run_config import RunConfig, canonical_json
from fedsim.algorithms import trains
from fedsim.data import Batch, Client, Subset
from fedsim.engine import FederationState
from fedsim.models.model import Model
from fedsim.objectives import Objective
from fedsim.train_config import TrainConfig
from fedsim.training import LocalTraining

MOMENTS = 2  # that AdamW keeps of each parameter, next to a step of a few bytes
ONE = np.zeros(1, dtype=np.int64)  # the index of one text
_KNOWN: dict[Hashable, int] = {}  # FLOPs and bytes of one text: the same in every cell of such a model

# ---- FLOPs -------------------------------------------------------------------------------------------------------


class FlopMeter(Meter):
    """A meter of FLOPs: each product of two numbers and its sum are two."""

    def __init__(self) -> None:
        super().__init__()
        self._counter = FlopCounterMode(display=False)
        self._flops = self._before = 0

    def __enter__(self) -> None:
        super().__enter__()
        self._counter.__enter__()
        self._before = 0

    def __exit__(self, *error: Any) -> None:
        self.repeat(1)
        self._counter.__exit__(*error)
        super().__exit__(*error)

    def repeat(self, times: int) -> None:
        now = self._counter.get_total_flops()
        self._flops += self.times * (now - self._before)
        self._before, self.times = now, times

    @property
    def flops(self) -> int:
        """FLOPs so far."""
        self.repeat(self.times)
        return self._flops

    @flops.setter
    def flops(self, flops: int) -> None:
        self.repeat(self.times)
        self._flops = flops

    def of(self, key: Hashable, compute: Callable[[], object]) -> int:
        """FLOPs of a computation on one text, which are not added to the others; those of a key are counted once."""
        if key not in _KNOWN:
            before = self.flops
            compute()
            _KNOWN[key] = self.flops - before
            self.flops = before
        return _KNOWN[key]


@dataclass(frozen=True)
class Trained(Counted):
    """Local training on one text, whose FLOPs count for all texts and epochs.

    watch: called with the model, the names of what is trained, the texts of an epoch and the FLOPs of one text.
    """

    watch: Callable[[Model, frozenset[str], int, int], None] = lambda model, names, texts, flops: None

    def run(self, model: Model, subset: Subset, names: list[str], *where: Any, **options: Any) -> float:
        assert isinstance(self.meter, FlopMeter)
        one, text = replace(self, config=replace(self.config, local_epochs=1)), Subset(subset.examples, ONE)
        key = "training", frozenset(names), isinstance(subset.examples, States), self.width, architecture_of(model)
        flops = self.meter.of(key, lambda: LocalTraining.run(one, model, text, names, *where, **options))
        self.meter.flops += self.config.local_epochs * len(subset) * flops
        self.watch(model, frozenset(names), len(subset), flops)
        return 0.0


def architecture_of(model: Model) -> Hashable:
    """All of a model that decides the FLOPs of a text of some length."""
    objective = model.objective
    tensors = {name: value for name, value in vars(objective).items() if isinstance(value, Tensor)}
    shapes = ((name, tuple(each.shape)) for name, each in (*model.parameters.items(), *tensors.items()))
    return frozenset(shapes), type(model.network.encoder), type(model.network.head), type(objective).__name__


def batch_of_one(tokens: int, objective: Objective) -> Batch:
    """A batch of one text."""
    return OneText(tokens, objective).collate(ONE)


class FlopRun(DryRun):
    """A dry run that counts FLOPs."""

    def __init__(self, cell: RunConfig, by_client: bool = True) -> None:
        self.flops, budget = FlopMeter(), cell.training
        plain = TrainConfig(budget.rounds, budget.learning_rate, budget.batch_size, budget.local_epochs)
        training = Trained(
            replace(plain, max_length=budget.max_length, padding="fixed"),
            cell.seed,
            is_counted=True,
            meter=self.flops,
            watch=self.watch,
        )
        super().__init__(cell, cell.backbone, training, Features(True, self._features), by_client)
        self.tokens = budget.max_length
        self.asked = self.setting.objective.asked_of(self.tokens)
        self._encoder = 0  # FLOPs of the features of one text, once a method has asked for them
        self._encoded: set[Hashable] = set()
        self._encoding = 0

    def watch(self, model: Model, trained: frozenset[str], texts: int, flops: int) -> None:
        """A client trains these parameters, on so many texts an epoch, at so many FLOPs a text."""

    def measure(self, state: FederationState, cohort: Sequence[Client]) -> tuple[FederationState, Amounts]:
        before = self.flops.flops
        after, sent = super().measure(state, cohort)
        return after, {**sent, "flops": self.flops.flops - before}

    def total(self, clients: Sequence[Client]) -> int:
        """FLOPs of all rounds, of all answers after each, and of features, once for each text."""
        training = sum(amounts["flops"] for amounts in self.rounds(clients))
        parts = {}  # a part on which several clients are scored is answered once, unless answers are personal
        for client in clients:
            for part in client.evaluation.values():
                parts[id(part), client.id if self.algorithm.personal else None] = client, part
        answers = sum(self._answer(client) * len(part) for client, part in parts.values())
        for _, part in parts.values():
            self._encode(part)
        return training + self.cell.training.last_round * answers + self._encoding

    def _answer(self, client: Client) -> int:
        """FLOPs of the answer for one text by a client's model."""
        plan, state = self.algorithm.plan, self.reached
        assert state is not None
        text = Subset(OneText(self.tokens, self.setting.objective), ONE)
        own = client.id if plan is None else decisive(plan(1, client.id))
        method = self.cell.algorithm, canonical_json(self.cell.options), self.cell.clients
        key = "answer", method, own, self.tokens, architecture_of(self.setting.model)
        with self.meter:
            self.meter.values.asked = self.asked
            return self.flops.of(key, lambda: self.algorithm.predict(state, client, text))

    def _features(self, model: Model, part: Subset) -> None:
        """Features of a part are asked for."""

        def encode() -> None:
            with torch.inference_mode():
                model.features(batch_of_one(self.tokens, self.setting.objective))

        self._encoder = self.flops.of(("features", self.tokens, architecture_of(model)), encode)
        if not isinstance(part.examples, OneText):
            self._encode(part)

    def _encode(self, part: Subset) -> None:
        """Count the features of a part, the first time that they are asked for."""
        key = id(part.examples), part.indices.tobytes()
        if key not in self._encoded:
            self._encoded.add(key)
            self._encoding += self._encoder * len(part)


def cell_flops(cell: RunConfig, clients: Sequence[Client]) -> int:
    """FLOPs of a cell's training and of its answers after each round, every text as long as the cell cuts texts.

    clients: of which only the numbers of texts are read. A method that trains nothing counts 0.
    """
    if not trains(cell.algorithm):
        return 0
    parts: dict[int, Subset] = {}  # clients may be scored on one common part

    def sized(part: Subset) -> Subset:
        return parts.setdefault(id(part), Subset(Texts(), np.zeros(len(part), dtype=np.int64)))

    return FlopRun(cell).total([
        Client(each.id, sized(each.train), {name: sized(part) for name, part in each.evaluation.items()})
        for each in clients
    ])  # fmt: skip


# ---- a client's training -----------------------------------------------------------------------------------------


class _ClientRun(FlopRun):
    """A dry run that sums what a client's training costs, over rounds and the clients that train in them."""

    def __init__(self, cell: RunConfig) -> None:
        super().__init__(cell, by_client=False)
        self.family = str(architecture(cell.backbone)["model_type"])
        self.amounts: Counter[Hashable] = Counter()

    def measure(self, state: FederationState, cohort: Sequence[Client]) -> tuple[FederationState, Amounts]:
        self.amounts = Counter()
        after, sent = super().measure(state, cohort)
        plans = [self.algorithm.plan(state.round + 1, client.id) for client in cohort] if self.algorithm.plan else []
        for plan in plans:
            shapes = self.setting.client_model(plan).parameters
            uploaded = ((name, value.shape) for name, value in shapes.items() if name in plan.upload)
            self.amounts["saved_bytes"] += saved_bytes((library_name(name, self.family), own) for name, own in uploaded)
        return after, {**sent, **self.amounts}

    def watch(self, model: Model, trained: frozenset[str], texts: int, flops: int) -> None:
        parts = model.groups
        places = [place for place, layer in enumerate(parts.layers) if layer & trained]
        lowest = 0 if parts.embeddings & trained else min(places, default=parts.depth)
        size = {name: tensor.numel() * tensor.element_size() for name, tensor in model.parameters.items()}
        gradients = sum(size[name] for name in trained)
        config: Any = model.network.encoder.config
        key = "kept", trained, self.tokens, config.to_json_string(), architecture_of(model)
        if key not in _KNOWN:
            self.meter.values.asked = self.asked
            _KNOWN[key] = kept_bytes(model, trained, batch_of_one(self.tokens, model.objective))
        self.amounts.update({
            "trainings": 1, "texts": texts, "text_flops": texts * flops, "forward": parts.depth,
            "backward": parts.depth - lowest, "trained": len(places), "parameters_bytes": sum(size.values()),
            "gradients_bytes": gradients, "moments_bytes": MOMENTS * gradients,
            "activations_bytes": self.cell.training.batch_size * _KNOWN[key],
        })  # fmt: skip


def client_costs(cell: RunConfig) -> ClientCosts | None:
    """The mean cost of a client's training over rounds and clients; None where a method trains by its own means.

    UserError without the configuration of the cell's encoder.
    """
    run, total = _ClientRun(cell), Counter[Hashable]()
    for amounts in run.rounds([client_of(number, 1) for number in range(cell.clients)]):
        total.update(amounts)
    trainings = total["trainings"]
    if not trainings:
        return None
    up, down = (sum(total[key] for key in total if isinstance(key, tuple) and key[0] == way) for way in ("up", "down"))
    means = (
        "forward", "backward", "trained", "saved_bytes", "parameters_bytes", "gradients_bytes", "moments_bytes",
        "activations_bytes",
    )  # fmt: skip
    return ClientCosts(
        width=run.setting.model.hidden,
        length=run.tokens,
        asked=run.asked,
        batch_size=cell.training.batch_size,
        flops=total["text_flops"] / total["texts"],
        up_bytes=up / trainings,
        down_bytes=down / trainings,
        setup_bytes=run.before.ledger.setup_bytes / cell.clients,
        **{name: total[name] / trainings for name in means},
    )


def kept_bytes(model: Model, trained: frozenset[str], batch: Batch) -> int:
    """Bytes that the forward pass of a batch keeps for the backward pass, without the parameters themselves.

    The model is on the `meta` device, and a meter, which says how many tokens are asked for, is entered.
    """
    model.set_trained(trained)
    model.network.train()
    weights = {tensor.untyped_storage()._cdata for tensor in model.parameters.values()}
    kept: dict[int, torch.UntypedStorage] = {}  # each once, whatever views of it are kept

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in weights:
            kept[storage._cdata] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model.loss(batch)
    return sum(storage.nbytes() for storage in kept.values())
