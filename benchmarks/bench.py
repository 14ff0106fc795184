"""`bench`: what the engine costs beside a bare training loop with the same batches and precision."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.federation import build_clients, build_federation, load_inputs
from benchmarks.runner import quiet_libraries
from benchmarks.scoring import scores
from benchmarks.settings import Settings
from benchmarks.spec import Cell
from benchmarks.tasks import Task
from fedsim.checkpoint import Checkpoint
from fedsim.data import Client, Subset, training_batches
from fedsim.engine import run_federation
from fedsim.models.model import Model
from fedsim.rng import numpy_generator, torch_seeded
from fedsim.store import ClientStore
from fedsim.wire import Channel

REPEATS = 5
BATCHES = 24  # of each client and round: enough to time, few enough for a laptop
EVALUATED = 64  # test examples a client


def bench(cell: Cell, settings: Settings) -> int:
    """Time rounds of the engine and of a bare loop in turn; print the median of the pairwise ratios.

    Both train the same batches of the same clients with the same optimiser and precision, and both score every
    client's test examples. The engine adds what makes it a federation: exchange, codec, ledger, averaging, private
    tensors, checkpoint.
    """
    import torch

    quiet_libraries()
    torch.set_num_threads(settings.threads)
    inputs = load_inputs(cell, settings)
    clients, _ = build_clients(cell, inputs, settings)
    clients = [_shortened(client, BATCHES * cell.training.batch_size) for client in clients]
    federation = build_federation(cell, inputs, settings)
    model, device = federation.setting.model, federation.precision
    examples = sum(len(client.train) for client in clients)
    print(f"{cell.label} on {cell.backbone}, {device.device}, {device.name}: {len(clients)} clients, ", end="")
    print(f"{examples} examples a round, {settings.threads} threads; {REPEATS} pairs of rounds")

    def engine(number: int) -> float:
        with tempfile.TemporaryDirectory(dir=settings.results_dir) as folder:
            checkpoint = Checkpoint(Path(folder) / "checkpoint", cell.spec_id)
            marks: list[float] = []
            run_federation(
                federation.algorithm,
                clients,
                Channel(cell.codec),
                lambda answers, subset: scores(inputs.task.metrics, federation.setting.objective, answers, subset),
                rounds=1,
                seed=number,
                checkpoint=checkpoint,
                store=ClientStore(checkpoint.folder),
                on_start=lambda _: marks.append(time.perf_counter()),
                on_round=lambda _: marks.append(time.perf_counter()),
            )
            return marks[1] - marks[0]

    engine(0)  # warm-up
    start = model.snapshot(model.parameters)
    bare_loop(cell, model, clients, inputs.task)
    ratios, bare_seconds = [], []
    for number in range(1, REPEATS + 1):
        engine_time = engine(number)
        model.write(start)
        begun = time.perf_counter()
        bare_loop(cell, model, clients, inputs.task)
        bare_seconds.append(time.perf_counter() - begun)
        ratios.append(engine_time / bare_seconds[-1])
        print(f"  engine {engine_time:7.2f} s   bare loop {bare_seconds[-1]:7.2f} s   ratio {ratios[-1]:.3f}")
    print(f"engine overhead: {100 * (median(ratios) - 1):+.1f} % (median of {REPEATS} ratios)")
    print(f"bare loop: {examples / median(bare_seconds):.0f} examples/s, scoring included")
    return 0


def bare_loop(cell: Cell, model: Model, clients: Sequence[Client], task: Task) -> None:
    """What anyone would write without a harness: an optimiser, a loop over batches, then the scores."""
    import torch

    names = [name for name in model.parameters if name not in model.groups.embeddings]
    width = cell.training.max_length if cell.training.padding == "fixed" else None
    for client in clients:
        model.set_trained(names)
        optimizer = torch.optim.AdamW(
            [model.parameters[name] for name in names], lr=cell.training.learning_rate, fused=True
        )
        model.network.train()
        with torch_seeded(0, 1, client.id, "dropout"):
            order = numpy_generator(0, 1, client.id, "shuffle-0")
            for batch in training_batches(client.train, cell.training.batch_size, width, order):
                model.loss(batch).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
    for client in clients:
        for subset in client.evaluation.values():
            scores(task.metrics, model.objective, model.predict(subset, 64, width), subset)


def _shortened(client: Client, examples: int) -> Client:
    tests = {name: Subset(subset.examples, subset.indices[:EVALUATED]) for name, subset in client.evaluation.items()}
    return replace(client, train=Subset(client.train.examples, client.train.indices[:examples]), evaluation=tests)
