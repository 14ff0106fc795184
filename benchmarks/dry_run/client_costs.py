"""Training costs from shapes: FLOPs, memory and file sizes, by dry runs on full-length texts."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import IO, Any, cast

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.costs import ClientCosts, Work
from benchmarks.dry_run.rounds import ONE, Amounts, DryRun, DryTraining, architecture_of, client_of, counted_once
from benchmarks.dry_run.stand_ins import Features, OneText
from benchmarks.encoders.files import architecture
from benchmarks.run_config import RunConfig
from fedsim.algorithms import trains
from fedsim.data import Batch, Client, Subset
from fedsim.engine import FederationState, round_examples
from fedsim.models.families import FAMILIES
from fedsim.models.model import Model, encoder_layers
from fedsim.objectives import Objective
from fedsim.train_config import TrainConfig

SPLIT = ("fedbert_parallel", "fedbert_sequential")  # methods whose clients have only embeddings and head
AT_SERVER = ("central", "fedfreezebert_central")  # methods that train at the server, on all clients' texts
MOMENTS = 2  # of AdamW, per parameter
# Fields of ClientCosts that are means over all local trainings.
MEANS = (
    "forward", "backward", "trained", "saved_bytes", "parameters_bytes", "gradients_bytes", "moments_bytes",
    "activations_bytes",
)  # fmt: skip


def batch_of_one(tokens: int, objective: Objective) -> Batch:
    """A batch of one text."""
    return OneText(tokens, objective).collate(ONE)


class FlopRun(DryRun):
    """A dry run that counts FLOPs of local training, and of features if a method reads them."""

    def __init__(self, cell: RunConfig) -> None:
        budget = cell.training
        plain = TrainConfig(budget.rounds, budget.learning_rate, budget.batch_size, budget.local_epochs)
        config = replace(plain, max_length=budget.max_length, padding="fixed")
        training = DryTraining(config, cell.seed, is_counted=True, on_training=self.watch)
        super().__init__(cell, training, Features(True, self._features))
        self.tokens = budget.max_length
        self.masked = self.workload.objective.targets_in(self.tokens)
        self.feature_flops = 0  # per text, once a method has read features

    def watch(self, model: Model, trained: frozenset[str], texts: int, flops: int) -> None:
        """Called when a client trains parameters. texts: per epoch. flops: per text."""

    def _features(self, model: Model, part: Subset) -> None:
        def encode() -> None:
            with torch.inference_mode():
                model.features(batch_of_one(self.tokens, self.workload.objective))

        self.feature_flops = self.meter.of(("features", self.tokens, architecture_of(model)), encode)


def cell_flops(cell: RunConfig, examples: Sequence[int], scored: int) -> int:
    """FLOPs of a run's training, and of texts' features if a method reads them, for full-length texts; not of scoring.

    0 for a method that trains nothing. examples: each client's number of training examples. scored: the number of all
    evaluation texts.
    """
    if not trains(cell.algorithm):
        return 0
    clients = [client_of(number, size) for number, size in enumerate(examples)]
    if cell.algorithm in SPLIT:
        return _split_run_flops(cell, clients)
    run = FlopRun(cell)
    rounds = run.rounds(clients)
    return sum(amounts["flops"] for amounts in rounds) + run.feature_flops * (sum(examples) + scored)


def _split_run_flops(cell: RunConfig, clients: Sequence[Client]) -> int:
    """FLOPs of split training, where every text costs the same."""
    once = replace(cell.training, local_epochs=1, participation=1.0, stop=1)
    (one,) = FlopRun(replace(cell, clients=1, training=once)).rounds([client_of(0, 1)])
    return one["flops"] * sum(round_examples(FlopRun(cell).algorithm, clients, cell.training, cell.seed))


class _ClientRun(FlopRun):
    """A dry run that sums the costs of local training over rounds and their clients."""

    def __init__(self, cell: RunConfig) -> None:
        super().__init__(cell)
        self.family = str(architecture(cell.backbone)["model_type"])
        self.amounts: Counter[Hashable] = Counter()

    def measure(self, state: FederationState, cohort: Sequence[Client]) -> tuple[FederationState, Amounts]:
        self.amounts = Counter()
        after, measured = super().measure(state, cohort)
        each = max(1, self.amounts["trainings"] // len(cohort))  # how often a client trains in a round
        self.amounts["turns"], self.amounts["texts"] = (self.amounts[key] // each for key in ("trainings", "texts"))
        plans = [self.algorithm.plan(state.round + 1, client.id) for client in cohort] if self.algorithm.plan else []
        for plan in plans:
            shapes = self.workload.client_model(plan).parameters
            uploaded = ((name, value.shape) for name, value in shapes.items() if name in plan.upload)
            tensors = tuple((library_name(name, self.family), shape) for name, shape in uploaded)
            self.amounts["saved_bytes"] += saved_bytes(tensors)
        return after, {**measured, **self.amounts}

    def watch(self, model: Model, trained: frozenset[str], texts: int, flops: int) -> None:
        parts = model.groups
        places = [place for place, layer in enumerate(parts.layers) if layer & trained]
        lowest = 0 if parts.embeddings & trained else min(places, default=parts.depth)
        size = {name: tensor.nbytes for name, tensor in model.parameters.items()}
        gradients = sum(size[name] for name in trained)
        config: Any = model.network.encoder.config
        key = "kept", trained, self.tokens, config.to_json_string(), architecture_of(model)
        self.meter.values.targets = self.masked
        kept = counted_once(key, lambda: kept_bytes(model, trained, batch_of_one(self.tokens, model.objective)))
        self.amounts.update({
            "trainings": 1, "texts": texts, "text_flops": texts * flops, "forward": parts.depth,
            "backward": parts.depth - lowest, "trained": len(places), "parameters_bytes": sum(size.values()),
            "gradients_bytes": gradients, "moments_bytes": MOMENTS * gradients,
            "activations_bytes": self.cell.training.batch_size * kept,
        })  # fmt: skip


def client_costs(cell: RunConfig) -> ClientCosts | None:
    """The mean cost of a client's training over rounds and clients; None for a method with another training loop.

    UserError without the encoder's configuration.
    """
    run, total = _ClientRun(cell), Counter[Hashable]()
    for amounts in run.rounds([client_of(number, 1) for number in range(cell.clients)]):
        total.update(amounts)
    trainings = total["trainings"]
    if not trainings:
        return None
    up, down = (sum(total[key] for key in total if isinstance(key, tuple) and key[0] == way) for way in ("up", "down"))
    return ClientCosts(
        width=run.workload.model.hidden,
        length=run.tokens,
        asked=run.masked,
        batch_size=cell.training.batch_size,
        flops=total["text_flops"] / total["texts"],
        up_bytes=up / total["turns"],
        down_bytes=down / total["turns"],
        setup_bytes=run.setup.ledger.setup_bytes / cell.clients,
        **{name: total[name] / trainings for name in MEANS},
    )


def work(cell: RunConfig) -> Work | None:
    """Operations for training on a text, at the client and at the server; None if shapes do not determine them."""
    if cell.algorithm in SPLIT:
        at_client, whole = _split_flops(FlopRun(cell))
        return Work(at_client, whole - at_client)
    costs = client_costs(cell)
    if costs is None:
        return None
    sides = (0.0, costs.flops) if cell.algorithm in AT_SERVER else (costs.flops, 0.0)
    run = FlopRun(cell)
    run.rounds([client_of(number, 1) for number in range(cell.clients)])
    return Work(*sides, features=float(run.feature_flops))


def _split_flops(run: FlopRun) -> tuple[float, float]:
    """Operations for split training on a text: the client's, and both sides'."""
    model = run.workload.model
    model.set_trained(model.parameters)
    model.network.train()
    run.meter.values.targets = run.masked
    with run.meter.values, FlopCounterMode(display=False) as counter:
        model.loss(batch_of_one(run.tokens, run.workload.objective)).backward()
    names = {id(module): name for name, module in model.network.encoder.named_modules()}
    root, counts = type(model.network.encoder).__name__, counter.get_flop_counts()
    layers = sum(sum(counts[f"{root}.{names[id(layer)]}"].values()) for layer in encoder_layers(model))
    return float(counter.get_total_flops() - layers), float(counter.get_total_flops())


def kept_bytes(model: Model, trained: frozenset[str], batch: Batch) -> int:
    """Bytes that the forward pass of a batch stores for the backward pass, without parameters.

    The model is on the `meta` device; the surrounding meter has the number of masked tokens.
    """
    model.set_trained(trained)
    model.network.train()
    weights = {tensor.untyped_storage()._cdata for tensor in model.parameters.values()}
    kept: dict[int, torch.UntypedStorage] = {}  # each counts once, however many views share it

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in weights:
            kept[storage._cdata] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model.loss(batch)
    return sum(storage.nbytes() for storage in kept.values())


# ---- file sizes, which some papers publish as communication costs ------------------------------------------------


class _Counted(io.RawIOBase):
    """A file that only counts the bytes written to it."""

    count = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.count += size
        return size


@lru_cache
def saved_bytes(tensors: tuple[tuple[str, torch.Size], ...]) -> int:
    """The size of the file that `torch.save` writes for a dict of fp32 tensors, given as names and shapes in order."""
    file = _Counted()
    torch.save({name: torch.zeros(shape) for name, shape in tensors}, cast("IO[bytes]", file))
    return file.count


def library_name(name: str, family: str) -> str:
    """The transformers library's name for a parameter of an encoder or its masked-LM head; ours for other heads.

    family: The model type, such as "bert".
    """
    part, _, rest = name.partition(".")
    if part == "encoder":
        return f"{FAMILIES[family].prefix}.{rest}"
    return FAMILIES[family].stored_heads.get("masked-lm", {}).get(rest, (name,))[0]
