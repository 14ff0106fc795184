"""A cell's federation: its data, clients, model and algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import safetensors.torch
import torch

from benchmarks.dry_run.shapes import derive_fit
from benchmarks.encoders.encoding import Encoded, TokenCache, vocabulary_of
from benchmarks.encoders.fetched import source_of
from benchmarks.encoders.files import check_length
from benchmarks.encoders.loading import Located, build_encoder, build_tokenizer, drawn_parts, locate
from benchmarks.errors import UserError
from benchmarks.run_config import JSON, SCALES, RunConfig, digest
from benchmarks.running.completed import KeptWeights, chain_of, initial_of
from benchmarks.running.data_split import split_data
from benchmarks.running.included import code_of
from benchmarks.running.process import hold_freed_memory, peak_memory_bytes, quiet_libraries
from benchmarks.running.run_options import GPU_SHARE_BYTES, RunOptions
from benchmarks.tasks import Task, TaskData, task
from fedsim.algorithms import Workload, build_algorithm
from fedsim.data import Client
from fedsim.engine import ClientUpdate, FederatedAlgorithm, MapClients, UpdateOutcome
from fedsim.errors import FederationError
from fedsim.features import FeatureCache
from fedsim.micro_batches import MicroBatches
from fedsim.models.adapters import with_adapter
from fedsim.models.model import Model, resolve_kernels
from fedsim.models.sequence import with_head
from fedsim.objectives import LANGUAGE_MODELS, Objective, build_objective
from fedsim.precision import Precision, resolve_precision
from fedsim.store import same_device
from fedsim.training import LocalTraining
from fedsim.wire import Channel, Params
from partitions import PartitionReport

DATA_SEED = 0  # for generated tasks, in every cell


@dataclass(frozen=True)
class Inputs:
    """The data, encoder, initial weights and included code of a cell."""

    task: Task
    data: TaskData
    backbone: Located
    initial: KeptWeights | None = None
    code: Mapping[str, str] = field(default_factory=dict)  # of a method from outside; see `code_of`

    @property
    def digests(self) -> dict[str, str]:
        """The inputs' part of the cell's identity: content digests, and the earlier cell's id.

        It omits the digest of an earlier cell's weights, which differ slightly between machines.
        """
        initial = {"initial": self.initial.cell_id} if self.initial else {}
        code = {"code": digest(self.code, 64)} if self.code else {}
        return {"data": self.data.digest, "backbone": self.backbone.digest} | initial | code

    def to_json(self, head: str, stand_in: str = "") -> dict[str, JSON]:
        """The inputs for a record. head: the model's head. stand_in: what replaces published data."""
        is_trained_before = self.initial is not None and self.initial.cell.head == head
        drawn = () if is_trained_before else drawn_parts(self.backbone, head)
        skipped = [f"{row.file}:{row.line}: {row.reason}" for row in self.data.skipped]
        lines = sum(row.lines for row in self.data.skipped)
        central = {name: len(examples) for name, examples in sorted(self.data.central.items())}
        return {
            "data": {
                "digest": self.data.digest,
                "origin": self.data.origin,
                "examples": len(self.data.pool),
                "held_out": {name: len(examples) for name, examples in sorted(self.data.held_out.items())},
                **({"central": central} if central else {}),
                "skipped": skipped,
                **({"skipped_lines": lines} if lines > len(skipped) else {}),  # a quoted row may span several
                "notes": list(self.data.notes),
                **({"stand_in": stand_in} if stand_in else {}),
            },
            "backbone": {
                "digest": self.backbone.digest,
                "origin": dict(self.backbone.origin),
                "config": dict(self.backbone.config),
                **({"drawn": list(drawn)} if drawn else {}),
            },
            **({"initial": {"digest": self.initial.sha256, "cell_id": self.initial.cell_id}} if self.initial else {}),
            **({"code": {"digest": self.digests["code"], "files": sorted(self.code)}} if self.code else {}),
        }


def load_inputs(cell: RunConfig, settings: RunOptions, initial: KeptWeights | None = None) -> Inputs:
    """Load a cell's data and find its backbone. initial: the weights that it starts from, if any."""
    of = task(cell.task)
    if cell.task_version != of.version:
        raise UserError(
            f"task {cell.task}: the cell was defined for version {cell.task_version}, this checkout has "
            f"version {of.version}. Run this checkout's definition."
        )
    backbone = locate(settings.requested(cell.backbone), False, settings.data_dir, settings.results_dir)
    return Inputs(of, task_data(cell.task, cell.source, settings), backbone, initial, code_of(cell.algorithm))


def stand_in_of(cell: RunConfig, settings: RunOptions) -> str:
    """The data that replace published data in a paper-scale run or its earlier runs; "" if none do."""
    stages = chain_of(cell) if cell.scale == SCALES[-1] else ()
    return "; ".join(dict.fromkeys(filter(None, (stand_in_at(stage, settings) for stage in stages))))


def stand_in_at(cell: RunConfig, settings: RunOptions) -> str:
    """The data that replace published data in a run, without its earlier runs; "" if none do."""
    return task(cell.task).stand_in(task_data(cell.task, cell.source, settings))


def cell_id_of(cell: RunConfig, settings: RunOptions) -> str:
    """A cell's identity with this machine's data and encoders, including earlier runs."""
    before = initial_of(cell)
    earlier = {"initial": cell_id_of(before, settings)} if before else {}
    return cell.cell_id(load_inputs(cell, settings).digests | earlier)


@lru_cache(maxsize=3)  # tables run by column, and cells have at most two earlier ones
def task_data(task_id: str, source: str, settings: RunOptions) -> TaskData:
    """A task's examples; UserError if they are missing or malformed."""
    if source == "generated":
        generate = task(task_id).generate
        if generate is None:
            raise UserError(
                f"task {task_id}: expected a task that generates examples for the demo scale, found none; use lite"
            )
        return generate(DATA_SEED)
    extracts = settings.results_dir / "corpora"
    return task(task_id).load(source_of(task_id, settings.data_dir, settings.lenient, extracts))


@lru_cache(maxsize=2)
def _encoded(task_id: str, source: str, settings: RunOptions, backbone: str, max_length: int) -> Mapping[str, Encoded]:
    loaded = task_data(task_id, source, settings)
    tokenizer = build_tokenizer(locate(backbone, False, settings.data_dir, settings.results_dir))
    central = {f"central {name}": examples for name, examples in loaded.central.items()}
    named = {"pool": loaded.pool, **loaded.held_out, **central}
    cache = TokenCache(settings.results_dir / "tokens")
    return {name: cache.encode(examples, tokenizer, max_length, task(task_id)) for name, examples in named.items()}


def objective_of(of: Task, vocab_size: int, tokenizer: Callable[[], Any]) -> Objective:
    """A task's objective. vocab_size: rows of the word embeddings. tokenizer: only called for language models."""
    name = of.objective
    vocabulary = vocabulary_of(tokenizer(), vocab_size) if name in LANGUAGE_MODELS else None
    return build_objective(name, of.classes, vocabulary, of.objective_options)


def build_clients(cell: RunConfig, inputs: Inputs, settings: RunOptions) -> tuple[list[Client], PartitionReport]:
    """The cell's clients, with texts in the backbone's tokens; see `split_data`."""
    encoded = _encoded(cell.task, cell.source, settings, settings.requested(cell.backbone), cell.training.max_length)
    return split_data(cell, inputs.task, inputs.data, encoded)


def initial_weights(initial: KeptWeights, model: Model) -> Params:
    """The earlier run's encoder weights, and its head's if the shapes match.

    UserError if the file is damaged, or the encoders differ.
    """
    try:
        kept = safetensors.torch.load(initial.content())
    except (safetensors.SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise UserError(f"{initial.path}: expected weights, found none ({error}). Remove the file.") from None
    fitting = {
        name: tensor
        for name, tensor in kept.items()
        if name in model.parameters and tensor.shape == model.parameters[name].shape
    }
    groups = model.groups
    missing = groups.names - groups.head - model.network.added - fitting.keys()
    if missing:
        raise UserError(
            f"{initial.cell.label}: expected weights for the encoder that starts from it, found none for "
            f"{len(missing)} of its parameters, such as {min(missing)}; both stages need the same backbone"
        )
    has_head = groups.head <= fitting.keys()
    return {name: tensor for name, tensor in fitting.items() if has_head or name not in groups.head}


@dataclass(frozen=True)
class Federation:
    """A cell's algorithm and workload, with its machine's precision and kernels."""

    algorithm: FederatedAlgorithm
    workload: Workload
    precision: Precision
    kernels: str


def micro_batches_of(cell: RunConfig, settings: RunOptions, precision: Precision) -> tuple[MicroBatches, MicroBatches]:
    """Micro-batches for training and scoring: whole batches on a CPU, and on a GPU parts that fit by their shapes.

    `--micro-batch` overrides those for training.
    """
    asked, scored = MicroBatches(settings.micro_batch, settings.micro_batch is None), MicroBatches(trains=False)
    if precision.device.type != "cuda":
        return asked, scored
    memory = torch.cuda.get_device_properties(precision.device).total_memory
    if settings.workers > 1 and settings.executor != "slurm":  # its jobs share no GPU
        memory //= max(1, memory // GPU_SHARE_BYTES)  # as `default_workers` divides it
    try:
        fitted = derive_fit(cell, memory, precision.name, settings.checkpoint_activations)
    except (UserError, FederationError):  # a user's encoder has no known shapes, or nothing fits: try anyway
        return asked, scored
    if fitted is None:
        return asked, scored
    return replace(asked, size=asked.size or fitted.part), replace(scored, size=fitted.scored)


def build_federation(
    cell: RunConfig,
    inputs: Inputs,
    settings: RunOptions,
    on_batch: Callable[[int], None] = lambda _: None,
    map_clients: MapClients = map,
) -> Federation:
    """Build the cell's algorithm and model.

    on_batch: called with each batch's number of examples. map_clients: computes the updates of a round's clients.
    """
    check_length(cell.training.max_length, inputs.backbone.config, inputs.backbone.id)
    if not cell.training.local_epochs:
        raise UserError("training.local_epochs: expected a number above 0, found 0")
    precision = resolve_precision(cell.training.precision, settings.device)
    vocab_size = int(inputs.backbone.config["vocab_size"])
    objective = objective_of(inputs.task, vocab_size, lambda: build_tokenizer(inputs.backbone))

    def load_model() -> Model:
        encoder = build_encoder(inputs.backbone)
        folder = inputs.backbone.folder if inputs.backbone.heads else None
        network = with_head(encoder, objective.outputs, cell.seed, folder, cell.head)
        with_adapter(network, cell.adapter, cell.seed)
        model = Model(network, precision, objective, cell.training.kernels, settings.checkpoint_activations)
        if inputs.initial is not None:
            model.write(initial_weights(inputs.initial, model))
        return model

    micro_batches, scoring = micro_batches_of(cell, settings, precision)
    workload = Workload(
        load_model,
        LocalTraining(cell.training, cell.seed, on_batch, micro_batches),
        objective,
        scoring=scoring,
        features=FeatureCache(settings.results_dir / "features", inputs.backbone.digest),
        clients=cell.clients,
        map_clients=map_clients,
    )
    if not objective.sparse_gradients:
        hold_freed_memory()
    kernels = resolve_kernels(cell.training.kernels, precision.device, inputs.backbone.config, cell.adapter)
    algorithm = build_algorithm(cell.algorithm, workload, cell.options)
    return Federation(algorithm, workload, precision, kernels)


class TaskOutcome(NamedTuple):
    """The outcome of one client's part of a round in a process.

    peak_bytes: the process's peak memory. micro_batch: texts per forward pass; None for whole batches.
    """

    update: UpdateOutcome
    examples: int
    peak_bytes: int
    micro_batch: int | None


def client_trainer(
    cell: RunConfig, cell_id: str, settings: RunOptions, initial: KeptWeights | None
) -> Callable[..., TaskOutcome]:
    """A function that trains one client of a run in this process.

    Its arguments are the round, the client's id, and three sets of tensors: the server's shared ones, the client's
    private ones, and those that the client receives.
    """
    examples: list[int] = []  # of the current client, step by step
    quiet_libraries()
    torch.set_num_threads(settings.threads)
    inputs = load_inputs(cell, settings, initial)
    if cell.cell_id(inputs.digests) != cell_id:
        raise UserError(f"{cell.label}: its data, encoder or method changed after the run's start. Start it again.")
    clients = {client.id: client for client in build_clients(cell, inputs, settings)[0]}
    federation = build_federation(cell, inputs, settings, examples.append)
    compute, device = federation.algorithm.client_update, federation.precision.device
    assert compute is not None

    def train(round: int, client: int, *tensors: Params) -> TaskOutcome:
        examples.clear()
        channel = Channel(cell.codec, seed=cell.seed)
        channel.round = round
        shared, private, received = (same_device(group, device) for group in tensors)
        outcome = compute(ClientUpdate(round, clients[client], shared, private, received, channel))
        size = federation.workload.training.micro_batches.size
        return TaskOutcome(outcome, sum(examples), peak_memory_bytes(), size)

    return train
