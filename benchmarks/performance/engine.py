"""The engine against a bare loop of the same batches and kernels."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import torch

from benchmarks.performance.section import Bar, Bench, Section, in_turn, ratio
from benchmarks.performance.workload import clients_of, setting_of, texts
from fedsim.algorithms import Workload, build_algorithm
from fedsim.checkpoint import Checkpoint
from fedsim.data import Client, training_batches
from fedsim.engine import run_federation
from fedsim.rng import numpy_generator, torch_seeded
from fedsim.store import ClientStore
from fedsim.wire import Channel

CLIENTS, BATCHES, TESTED = 3, 24, 64


def measure(bench: Bench) -> Section:
    """Rounds of FedAvg and of a bare loop in turn: both train and score the same, the engine adds the federation.

    That is: exchange, codec, ledger, averaging, private tensors, checkpoint.
    """
    setting = setting_of()
    examples = CLIENTS * (BATCHES * setting.training.config.batch_size + TESTED)
    clients = clients_of(texts(examples), CLIENTS, tested=TESTED)
    start = setting.initial

    def bare() -> None:
        setting.model.write(start)
        bare_loop(setting, clients)

    engine_seconds, bare_seconds = in_turn(bench.repeats, lambda: one_round(setting, clients), bare)
    share = ratio(bare_seconds, engine_seconds)
    row = {
        "clients": CLIENTS,
        "examples": sum(len(client.train) for client in clients),
        "engine_s": round(median(engine_seconds), 2),
        "bare_loop_s": round(median(bare_seconds), 2),
        "engine_of_bare": round(share, 3),
    }
    bench.say(f"  engine {row['engine_s']} s, bare loop {row['bare_loop_s']} s a round")
    notes = ("Speed of the engine over that of the bare loop, the median of pairs; scoring and a checkpoint included.",)
    return Section("engine", "The engine against a bare loop", [row], [Bar("engine of bare loop", share, 0.97)], notes)


def one_round(setting: Workload, clients: Sequence[Client]) -> None:
    """A round of FedAvg, with a checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "checkpoint", "bench")
        run_federation(
            build_algorithm("fedavg", setting, {}),
            clients,
            Channel("fp32"),
            lambda answers, subset: {"accuracy": float((answers.argmax(1) == subset.labels).mean())},
            rounds=1,
            seed=0,
            checkpoint=checkpoint,
            store=ClientStore(checkpoint.folder),
        )


def bare_loop(setting: Workload, clients: Sequence[Client]) -> None:
    """What anyone would write without a harness: an optimiser, a loop over batches, then the scores."""
    model, training, config = setting.model, setting.training, setting.training.config
    names = sorted(model.groups.names - model.groups.embeddings)
    for client in clients:
        model.set_trained(names)
        chosen = [model.parameters[name] for name in names]
        optimizer = torch.optim.AdamW(chosen, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True)
        model.network.train()
        with torch_seeded(0, 1, client.id, "dropout"):
            order = numpy_generator(0, 1, client.id, "shuffle-0")
            for batch in training_batches(client.train, config.batch_size, training.width, order):
                model.loss(batch).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
    for client in clients:
        for subset in client.evaluation.values():
            answers = model.predict(subset, setting.evaluation_batch_size, training.width)
            _ = float((answers.argmax(1) == subset.labels).mean())
