"""One FedAvg job, by our engine and by a loop of one's own: the same clients and the same start."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from benchmarks.performance.workload import BACKBONE, clients_of, setting_of, texts
from benchmarks.registry import benchmark
from benchmarks.run_config import JSON, RunConfig
from benchmarks.running.federation import build_clients, build_federation, load_inputs
from benchmarks.running.run_options import RunOptions
from fedsim.algorithms import Workload, build_algorithm
from fedsim.checkpoint import Checkpoint
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, run_federation
from fedsim.models.model import Model
from fedsim.rng import torch_seeded
from fedsim.store import ClientStore
from fedsim.train_config import Kernels
from fedsim.training import LocalTraining
from fedsim.wire import Channel, Params

CLIENTS = 3
BATCH_SIZE = 16
FIXED_WIDTH = 128  # tokens to which the papers pad


@dataclass(frozen=True)
class Job:
    """MRPC of Table III at the literal scale where there are data, else random texts of its lengths.

    batches: that each client trains on in a round, at most; None: all that it has. encoder: a backbone in place of the
    literal scale's, and width: tokens to which the literal way pads, both of random texts.
    """

    settings: RunOptions
    seed: int = 0
    batches: int | None = None
    encoder: str = BACKBONE
    width: int = FIXED_WIDTH

    @property
    def real(self) -> bool:
        """Whether it trains on real data, so that accuracy means something."""
        return self.settings.data_dir is not None


@dataclass(frozen=True)
class Ready:
    """A job in this process, set up."""

    clients: Sequence[Client]
    setting: Workload
    algorithm: FederatedAlgorithm

    @property
    def examples(self) -> int:
        """Examples that a round trains on."""
        return sum(len(client.train) for client in self.clients)

    @property
    def trained(self) -> list[str]:
        """What FedAvg trains and exchanges: everything but the embeddings, which are frozen."""
        model = self.setting.model
        return sorted(model.groups.names - model.groups.embeddings)


def prepare(job: Job, literal: bool = False, kernels: Kernels = "packed") -> Ready:
    """Set a job up. literal: as the papers' code is, the library's layers on texts of a fixed width, in fp32."""
    torch.set_num_threads(job.settings.threads)
    if job.real:
        cell = mrpc_cell(job.seed, literal, kernels)
        inputs = load_inputs(cell, job.settings)
        clients, _ = build_clients(cell, inputs, job.settings)
        federation = build_federation(cell, inputs, job.settings)
        setting, algorithm = federation.setting, federation.algorithm
    else:
        count = CLIENTS * BATCH_SIZE * (job.batches or 1)
        clients = clients_of(texts(count, seed=job.seed), CLIENTS)
        values: dict[str, JSON] = {"kernels": kernels}
        if literal:
            values = {"kernels": "reference", "precision": "fp32", "padding": "fixed", "max_length": job.width}
        setting = setting_of(job.encoder, device="cpu", batch_size=BATCH_SIZE, seed=job.seed, **values)
        algorithm = build_algorithm("fedavg", setting, {})
    if job.batches is not None:
        clients = [_shortened(client, job.batches * BATCH_SIZE) for client in clients]
    _ = setting.initial  # copied before anything is trained: it is what every way begins from
    return Ready(clients, setting, algorithm)


def mrpc_cell(seed: int, literal: bool = False, kernels: Kernels = "packed") -> RunConfig:
    """FedAvg on MRPC as Table III has it at the literal scale."""
    table = benchmark("fedsplitbert-table3")
    row = next(row for row in table.rows if row.id == "fedavg")
    column = next(column for column in table.columns if column.task == "mrpc")
    cell = table.cell(row, column, table.scale("literal"), seed)
    if not literal:
        return replace(cell, training=replace(cell.training, kernels=kernels))
    changed = replace(cell.training, kernels="reference", precision="fp32", padding="fixed", max_length=FIXED_WIDTH)
    return replace(cell, training=changed)


def _shortened(client: Client, examples: int) -> Client:
    return replace(client, train=Subset(client.train.examples, client.train.indices[:examples]))


# ---- by our engine ---------------------------------------------------------------------------------------------


def engine_seconds(ready: Ready, folder: Path, seed: int) -> float:
    """Wall time of a round of the engine: training, exchange, averaging and the checkpoint, without scoring."""
    marks: list[float] = []
    with tempfile.TemporaryDirectory(dir=folder) as within:
        checkpoint = Checkpoint(Path(within) / "checkpoint", "bench")
        run_federation(
            ready.algorithm,
            [replace(client, evaluation={}) for client in ready.clients],
            Channel("fp32"),
            lambda answers, subset: {},
            rounds=1,
            seed=seed,
            checkpoint=checkpoint,
            store=ClientStore(checkpoint.folder),
            on_start=lambda _: marks.append(time.perf_counter()),
            on_round=lambda _: marks.append(time.perf_counter()),
        )
    return marks[1] - marks[0]


# ---- by a loop of one's own ------------------------------------------------------------------------------------


def plain_round(ready: Ready, shared: Params, number: int) -> Params:
    """FedAvg's round as anyone would write it: each client trains a copy, and the copies are averaged."""
    model, training, examples = ready.setting.model, ready.setting.training, ready.examples
    mean = {name: torch.zeros_like(value) for name, value in shared.items()}
    for client in ready.clients:
        model.write(shared)
        plain_training(model, training, client, list(shared), number)
        for name, value in model.read(shared).items():
            mean[name].add_(value, alpha=len(client.train) / examples)
    return mean


def plain_training(model: Model, training: LocalTraining, client: Client, names: Sequence[str], number: int) -> None:
    """One client's epoch over its batches."""
    model.set_trained(names)
    optimizer = torch.optim.AdamW(
        [model.parameters[name] for name in names], lr=training.config.learning_rate, fused=True
    )
    model.network.train()
    with torch_seeded(training.seed, number, client.id, "dropout"):
        for batch in training.batches(client.train, model.objective, number, client.id):
            model.loss(batch).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def plain_start(ready: Ready) -> Params:
    """Copies of what the loop trains, as it begins."""
    return {name: ready.setting.initial[name].clone() for name in ready.trained}
