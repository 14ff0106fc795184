"""Dry runs count bytes and FLOPs of a run's rounds on `meta` tensors, which have shapes but no values.

PyTorch's FlopCounterMode counts matrix products in forward and backward passes while the method's code runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.costs import ModelSizes, Traffic, WirePlan
from benchmarks.dry_run.device import Values
from benchmarks.dry_run.stand_ins import META, Features, NoStore, States, Texts, text_like
from benchmarks.encoders.backbones import backbone_name
from benchmarks.encoders.files import architecture, check_length
from benchmarks.errors import RoundRefusedError, UserError
from benchmarks.run_config import RunConfig
from benchmarks.tasks import task
from fedsim.algorithms import Workload, build_algorithm
from fedsim.data import Batch, Client, Subset
from fedsim.engine import FederationState, cohorts
from fedsim.errors import FederationError, plural
from fedsim.features import FeatureCache
from fedsim.models.adapters import with_adapter
from fedsim.models.model import Model, encoder_layers
from fedsim.models.sequence import encoder_from_config, with_head
from fedsim.objectives import Objective, Vocabulary, build_objective
from fedsim.plan import ExchangePlan
from fedsim.precision import Precision
from fedsim.store import ClientStore
from fedsim.training import LocalTraining
from fedsim.wire import Channel

Amounts = Mapping[Hashable, int]  # "flops", or (direction, kind) -> FLOPs or bytes
ONE = np.zeros(1, dtype=np.int64)  # the index of one text
SINGLE = Precision(META, "fp32")
_COUNTS: dict[Hashable, int] = {}


def counted_once(key: Hashable, count: Callable[[], int]) -> int:
    """The cost of one text, counted once per kind of model."""
    if key not in _COUNTS:
        _COUNTS[key] = count()
    return _COUNTS[key]


class FlopMeter:
    """Counts FLOPs of the code inside its context; a multiplication and an addition are two.

    Bytes and FLOPs of a batch are multiplied by `times`, the number of batches with its shape. counts_flops: if False,
    FLOPs are 0, and dry runs take a third of the time.
    """

    def __init__(self, counts_flops: bool = True) -> None:
        self.values, self._counter = Values(), FlopCounterMode(display=False) if counts_flops else None
        self.times, self.flops, self._before = 1, 0, 0

    def __enter__(self) -> None:
        self.values.__enter__()
        if self._counter:
            self._counter.__enter__()
        self._before = 0

    def __exit__(self, *error: Any) -> None:
        self.repeat(1)
        if self._counter:
            self._counter.__exit__(*error)
        self.values.__exit__(*error)

    def repeat(self, times: int) -> None:
        """Multiply the FLOPs of the following code by `times`."""
        now = self._counter.get_total_flops() if self._counter else 0
        self.flops += self.times * (now - self._before)
        self._before, self.times = now, times

    def of(self, key: Hashable, compute: Callable[[], object]) -> int:
        """FLOPs of a computation, which the meter's sum excludes; each key is computed once."""

        def count() -> int:
            times = self.times
            self.repeat(1)
            flops, before = self.flops, self._before
            compute()
            self.repeat(times)
            self.flops = flops
            return self._before - before

        return counted_once(key, count)


class _Repeated(Channel):
    """A channel that multiplies a batch's bytes by its meter's `times`."""

    def __init__(self, codec: str, meter: FlopMeter, store: ClientStore) -> None:
        super().__init__(codec)
        self.keep_in(store)
        self._meter = meter

    def _transfer(self, *sent: Any) -> tuple[Tensor, int, int]:
        received, values, size = super()._transfer(*sent)
        return received, self._meter.times * values, self._meter.times * size


@dataclass(frozen=True)
class DryTraining(LocalTraining):
    """Local training that changes nothing. A method that reads batches itself gets one of each size.

    is_counted: whether clients have the data's numbers of examples. on_training: called with the model, the trained
    parameters' names, the texts per epoch and the FLOPs per text; FLOPs count for all texts and epochs. None: training
    costs nothing.
    """

    is_counted: bool = False
    meter: FlopMeter = field(default_factory=FlopMeter)
    on_training: Callable[[Model, frozenset[str], int, int], None] | None = None

    def run(self, model: Model, subset: Subset, names: list[str], *where: Any, **options: Any) -> float:
        if self.on_training is None:
            return 0.0
        one, text = replace(self, config=replace(self.config, local_epochs=1)), Subset(subset.examples, ONE)
        key = "training", frozenset(names), isinstance(subset.examples, States), self.width, architecture_of(model)
        flops = self.meter.of(key, lambda: LocalTraining.run(one, model, text, names, *where, **options))
        self.meter.flops += self.config.local_epochs * len(subset) * flops
        self.on_training(model, frozenset(names), len(subset), flops)
        return 0.0

    def batches(self, subset: Subset, objective: Objective, round: int, client: int) -> Iterator[Batch]:
        if not self.is_counted or self.width is None:
            Texts().collate(subset.indices)
        tokens = self.width or 0
        text = text_like(subset.examples, tokens, objective)
        whole, rest = divmod(len(subset), self.config.batch_size)
        for count, times in ((self.config.batch_size, whole), (rest, 1)):
            if count and times:
                self.meter.values.targets = count * objective.targets_in(tokens)
                self.meter.repeat(self.config.local_epochs * times)
                yield text.collate(np.zeros(count, dtype=np.int64))
        self.meter.repeat(1)


def architecture_of(model: Model) -> Hashable:
    """The properties of a model that determine the FLOPs of a text with a given length."""
    objective = model.objective
    tensors = {name: value for name, value in vars(objective).items() if isinstance(value, Tensor)}
    shapes = ((name, tuple(each.shape)) for name, each in (*model.parameters.items(), *tensors.items()))
    return frozenset(shapes), type(model.network.encoder), type(model.network.head), type(objective).__name__


def shaped_workload(
    cell: RunConfig,
    training: LocalTraining,
    features: FeatureCache,
    precision: Precision = SINGLE,
    build: Callable[[], nn.Module] | None = None,
    checkpoints: bool = False,
) -> Workload:
    """A run's workload with numbers as words; UserError if the encoder is missing or too short for the texts.

    precision: includes the device, by default `meta`. build: makes the encoder; by default one with random weights.
    checkpoints: whether activations are checkpointed.
    """
    config = {name: value for name, value in architecture(cell.backbone).items() if not name.startswith("_")}
    check_length(cell.training.max_length, config, backbone_name(cell.backbone))
    of, vocab_size = task(cell.task), int(config.get("vocab_size", 30522))
    vocabulary = Vocabulary(vocab_size, np.arange(vocab_size), mask_id=0)
    objective = build_objective(of.objective, of.classes, vocabulary, of.objective_options)

    def load_model() -> Model:
        with precision.device:
            encoder = build() if build else encoder_from_config(config)
            model = with_head(encoder, objective.outputs, cell.seed, head=cell.head)
            with_adapter(model, cell.adapter, cell.seed)
        return Model(model, precision, objective, cell.training.kernels, checkpoints)

    return Workload(load_model, training, objective, features=features, clients=cell.clients)


def decisive(plan: ExchangePlan) -> Hashable:
    """The part of a plan that determines bytes and FLOPs, without the server layers that frozen layers copy."""
    exchanged = frozenset((name, plan.view[name]) for name in plan.download | plan.upload)
    return frozenset(plan.view), plan.train, plan.download, plan.upload, exchanged


def client_of(number: int, size: int) -> Client:
    """A client with this many training texts."""
    return Client(number, Subset(Texts(), np.zeros(size, dtype=np.int64)), {})


class DryRun:
    """A run's rounds without values."""

    def __init__(
        self,
        cell: RunConfig,
        training: DryTraining,
        features: FeatureCache,
        precision: Precision = SINGLE,
        checkpoints: bool = False,
        store: ClientStore | None = None,
    ) -> None:
        self.cell, self.meter, self.store = cell, training.meter, store or NoStore()
        self.workload = shaped_workload(cell, training, features, precision, checkpoints=checkpoints)
        self.algorithm = build_algorithm(cell.algorithm, self.workload, cell.options)
        self.setup = Channel(cell.codec)

    def rounds(self, clients: Sequence[Client]) -> list[Amounts]:
        """The amounts per round.

        A method with plans is measured client by client, once per distinct plan and size; another method runs each
        round that differs from all earlier ones. RoundRefusedError if the method has fewer rounds.
        """
        algorithm, amounts, rounds = self.algorithm, dict[Hashable, Amounts](), list[Amounts]()
        plan = algorithm.plan
        state = algorithm.init(clients, self.setup, self.store)
        for number, cohort in enumerate(cohorts(clients, self.cell.training, self.cell.seed)):
            total: Counter[Hashable] = Counter()
            if plan is not None:
                for client in cohort:
                    key: Hashable = len(client.train), decisive(plan(number + 1, client.id))
                    if key not in amounts:
                        amounts[key] = self.measure(replace(state, round=number), [client])[1]
                    total.update(amounts[key])
            else:
                alike = algorithm.alike(number + 1) if algorithm.alike else number
                key = alike, *(len(client.train) for client in algorithm.learners(number + 1, cohort))
                if key in amounts:
                    state = replace(state, round=number + 1)
                else:
                    try:
                        state, amounts[key] = self.measure(state, cohort)
                    except FederationError as error:
                        if number:
                            raise RoundRefusedError(str(error)) from None
                        raise
                total.update(amounts[key])
            rounds.append(total)
        return rounds

    def measure(self, state: FederationState, cohort: Sequence[Client]) -> tuple[FederationState, Amounts]:
        """Run the round after a state and count its FLOPs, and its bytes by direction and kind."""
        channel, flops = _Repeated(self.cell.codec, self.meter, self.store), self.meter.flops
        channel.round = state.round + 1
        with self.meter:
            after, _ = self.algorithm.round(state, cohort, channel)
        amounts: Counter[Hashable] = Counter({"flops": self.meter.flops - flops})
        for row in channel.ledger.rows:
            amounts[row.direction, row.kind] += row.bytes
        return after, amounts


def wire_plan(cell: RunConfig, examples: Sequence[int] | None = None) -> WirePlan:
    """Derive the bytes of a run's rounds from its encoder's configuration, without weights and data.

    Args:
        cell: The run; its backbone may be a folder.
        examples: Each client's number of training examples, for a method that sends something per example.

    Raises:
        UserError: Bytes depend on the number of examples, which is not given, or on the texts' lengths; or the method
            has fewer rounds.
    """
    sizes = examples or [1] * cell.clients
    if len(sizes) != cell.clients:
        raise UserError(f"examples: expected a number for each of {plural(cell.clients, 'client')}, found {len(sizes)}")
    budget = cell.training
    of_one_length = budget.padding == "fixed" or task(cell.task).long_texts == "packed"
    padded = replace(budget, padding="fixed" if of_one_length else "longest")
    is_counted = examples is not None
    training = DryTraining(padded, cell.seed, is_counted=is_counted, meter=FlopMeter(counts_flops=False))
    run = DryRun(cell, training, Features(is_counted))
    for layer in encoder_layers(run.workload.model) if is_counted else ():
        layer.forward = lambda states, *_, **__: states  # payloads have the same shape before and after a layer
    clients = [client_of(number, size) for number, size in enumerate(sizes)]
    rounds: list[Any] = [
        {key: size for key, size in amounts.items() if key != "flops"} for amounts in run.rounds(clients)
    ]
    return WirePlan(tuple(map(Traffic, rounds)), run.setup.ledger.setup_bytes, _sizes(run.workload.model))


def _sizes(model: Model) -> ModelSizes:
    parts, head = model.groups, model.network.head

    def size(names: Iterable[str]) -> int:
        return sum(model.parameters[name].nbytes for name in names)

    return ModelSizes(
        embeddings_bytes=size(parts.embeddings),
        layer_bytes=size(parts.layers[0]),
        head_bytes=size(parts.head),
        model_bytes=size(parts.names),
        width=model.hidden,
        layers_read=head.states,
        all_tokens=head.tokens,
    )
