"""Training memory from shapes: the peak of a method's tensors in its rounds, which run on `meta` tensors."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from math import ceil
from typing import Any

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from benchmarks.costs import Fit, HeldBytes
from benchmarks.dry_run.cache import kept, key_of
from benchmarks.dry_run.client_costs import MOMENTS, SPLIT
from benchmarks.dry_run.device import CLIENT, KEPT, SERVER, GpuPrecision, LiveBytes
from benchmarks.dry_run.rounds import SINGLE, DryRun, DryTraining, FlopMeter, architecture_of, client_of
from benchmarks.dry_run.stand_ins import META, Features, KeptSizes, OneText, States, text_like
from benchmarks.errors import UserError
from benchmarks.run_config import RunConfig
from fedsim.algorithms import Workload
from fedsim.data import Batch, Subset
from fedsim.engine import cohorts
from fedsim.micro_batches import MicroBatches
from fedsim.models.model import Model, encoder_layers
from fedsim.objectives import Objective
from fedsim.precision import Precision
from fedsim.training import LocalTraining

SCORED = Workload.evaluation_batch_size
RESERVED = 0.1  # share of a GPU's memory for its context, its libraries and gaps between tensors
ROUNDS = 2  # in the second one the server has a mean and clients have their private state


@dataclass(frozen=True)
class _Training(DryTraining):
    """Two steps of local training: on one part of a batch, then on a batch with two parts (one if parts are batches).

    grown: the bytes that training adds at its peak, by shape; models of one shape train once. split: whether training
    is split, which takes only one step in the first round, as the second round's peak is higher.
    """

    meter: FlopMeter = field(default_factory=lambda: FlopMeter(counts_flops=False))
    live: LiveBytes = field(default_factory=LiveBytes)
    parts: int = 1
    split: bool = False
    grown: dict[Hashable, int] = field(default_factory=dict)

    def run(self, model: Model, subset: Subset, names: list[str], *where: Any, **options: Any) -> float:
        live, before = self.live, self.live.peak
        held, weights = live.live.total(), sum(tensor.nbytes for tensor in model.parameters.values())
        key = frozenset(names), isinstance(subset.examples, States), architecture_of(model)
        if key not in self.grown:
            live.peak = Counter()
            LocalTraining.run(self, model, subset, names, *where, **options)
            self.grown[key], live.peak = live.peak.total() - held, before
        live.reach(Counter({CLIENT: weights + self.grown[key], SERVER: held - weights}))
        return 0.0

    def batches(self, subset: Subset, objective: Objective, round: int, client: int) -> Iterator[Batch]:
        tokens, size = self.config.max_length, self.micro_batches.size or 1
        text = text_like(subset.examples, tokens, objective)
        self.meter.values.targets = size * objective.targets_in(tokens)
        for count in (size,) if self.split and round == 1 else (size, self.parts * size):
            yield text.collate(np.zeros(count, dtype=np.int64))


def _sides(model: Model, live: LiveBytes) -> None:
    """In split training, tell the meter which side makes a tensor."""
    layers = encoder_layers(model)

    def side(name: str) -> Callable[..., None]:
        def enter(*_: Any) -> None:
            live.side = name

        return enter

    model.network.register_forward_pre_hook(side(CLIENT))
    layers[0].register_forward_pre_hook(side(SERVER))
    layers[-1].register_forward_hook(side(CLIENT))
    layers[-1].register_full_backward_pre_hook(side(SERVER))
    layers[0].register_full_backward_hook(side(CLIENT))


def _peak(cell: RunConfig, texts: int, precision: Precision, clients: int, checkpoints: bool) -> HeldBytes:
    """The peak over two rounds and their scoring. texts: in each part of a batch. clients: how many take part."""
    live, split, store = LiveBytes(), cell.algorithm in SPLIT, KeptSizes()
    config = cell.training
    parts = MicroBatches(texts, automatic=False)
    training = _Training(
        config, cell.seed, micro_batches=parts, live=live, parts=1 + (texts < config.batch_size), split=split
    )
    with live:
        run = DryRun(replace(cell, clients=clients), training, Features(True), precision, checkpoints, store)
        model = run.workload.model
        if split:
            _sides(model, live)
        client_parameters = [name for name in model.parameters if name not in frozenset().union(*model.groups.layers)]
        state = run.algorithm.init(members := [client_of(number, 1) for number in range(clients)], run.setup, store)
        stop, present = register_optimizer_step_pre_hook(lambda *_: setattr(live, "side", KEPT)), set[int]()
        try:
            for cohort in islice(cohorts(members, config, run.cell.seed), ROUNDS):
                state, _ = run.measure(state, cohort)
                present |= {client.id for client in cohort}
        finally:
            stop.remove()
        trained = live.peak
        one, scoring = (_scored(run, live, count) for count in (1, SCORED))
    total, client = trained.total(), trained[CLIENT]
    if split:
        client += (1 + MOMENTS) * sum(model.parameters[name].nbytes for name in client_parameters)
    host = sum(store.sizes.values()) * cell.clients // len(present)
    each = (scoring - one) / (SCORED - 1)
    return HeldBytes(client, total - client, round(one - each), round(each), host)


def _scored(run: DryRun, live: LiveBytes, texts: int) -> int:
    """The peak while this many texts are scored."""
    model, objective, tokens = run.workload.model, run.workload.objective, run.cell.training.max_length
    live.peak, run.meter.values.targets = Counter(), texts * objective.targets_in(tokens)
    model.network.eval()
    batch = OneText(tokens, objective).collate(np.zeros(texts, dtype=np.int64))
    with run.meter, torch.no_grad():
        if model.network.head.answers_tokens == objective.of_tokens:  # not in attacks
            objective.answer(model.path_logits(batch).mean(0), batch)
        else:
            model.features(batch)
    return live.peak.total()


@dataclass(frozen=True)
class Memory:
    """The peak memory for tensors in one of a run's processes, derived from shapes.

    Args:
        cell: The run.
        precision: Of matrix products on a GPU, where attention stores no maps and dropout one byte per value; "cpu"
            for a CPU in single precision, where both store all values.
        checkpoints: Whether activations are checkpointed.
    """

    cell: RunConfig
    precision: str = "fp16"
    checkpoints: bool = False

    def of(self, texts: int) -> HeldBytes:
        """The peak if this many of a batch's texts go through the model at once."""
        if self.cell.algorithm not in SPLIT:
            return self._peak(texts, self.cell.clients)
        # In split training, each further client has tensors while another trains.
        first, further = self._peak(texts, 1), self._peak(1, 2).server - self._peak(1, 1).server
        return replace(first, server=first.server + (self.cell.cohort_size - 1) * further)

    def _peak(self, texts: int, clients: int) -> HeldBytes:
        # fp16 and bf16 have the same size.
        precision = SINGLE if self.precision == "cpu" else GpuPrecision(META, "bf16")
        what = f"peak-{texts}-{clients}-{precision.name}{'-checkpoints' * self.checkpoints}"
        cell = sized(self.cell)
        return kept(key_of(what, cell), lambda: _peak(cell, texts, precision, clients, self.checkpoints), HeldBytes)


def sized(cell: RunConfig) -> RunConfig:
    """The run with defaults for settings that change no tensor's size, so that more runs share a peak."""
    training = replace(cell.training, local_epochs=1, padding="fixed", precision="fp32", schedule="constant")
    return replace(cell, seed=0, training=replace(training, warmup=0.0, decay=1.0, beta2=0.999, epsilon=1e-8))


def fit(cell: RunConfig, memory: int, precision: str = "fp16", checkpoints: bool = False) -> Fit:
    """The largest part of a run's batches that fits a GPU, if batches are cut into about equal parts.

    UserError if not even one text fits, or the encoder's configuration is missing. memory: the GPU's, in bytes; the
    share `RESERVED` is left free. precision, checkpoints: as in `Memory`.
    """
    room, batch, needed = (1 - RESERVED) * memory, cell.training.batch_size, Memory(cell, precision, checkpoints)
    whole = needed.of(batch)
    if whole.training <= room:
        return Fit(batch, _scored_at_once(whole, room), whole, whole)
    least = needed.of(1)
    if max(least.training, least.scoring_of(1)) > room:
        largest = max(least.training, least.scoring_of(1)) / (1 - RESERVED) / 2**30
        raise UserError(
            f"{cell.label}: expected a GPU with {largest:.1f} GiB for one text at a time, found "
            f"{memory / 2**30:.1f} GiB. Use {'' if checkpoints else '--checkpoint-activations, '}a larger GPU, or "
            "shorter texts (training.max_length)."
        )
    sizes = [ceil(batch / parts) for parts in range(1, batch + 1)]  # memory falls with them
    part = sizes[bisect_left(sizes, True, key=lambda texts: needed.of(texts).training <= room)]
    held = needed.of(part)
    return Fit(part, _scored_at_once(held, room), held, whole)


def _scored_at_once(held: HeldBytes, room: float) -> int:
    """The largest part of a scored batch that fits."""
    return max((count for count in range(1, SCORED + 1) if held.scoring_of(count) <= room), default=1)
