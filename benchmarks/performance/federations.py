"""Whole federations: the engine against a plain loop, growth with clients, and what a frozen encoder saves."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import torch

from benchmarks.performance.suite import Bar, Section, fresh_processes, ratio, timed_in_turn
from benchmarks.performance.workload import random_clients, trained_names, workload_of
from benchmarks.run_config import JSON
from benchmarks.running.process import peak_memory_bytes
from benchmarks.running.runner import MANY_CLIENTS
from fedsim.algorithms import Workload, build_algorithm
from fedsim.checkpoint import Checkpoint
from fedsim.data import Client
from fedsim.engine import run_federation
from fedsim.rng import torch_seeded
from fedsim.store import ClientStore
from fedsim.wire import Channel, Params

FEW, MANY, ROUNDS = 3, 300, 2  # clients, and rounds, of growth
REUSE = {"average": 10.0, "psum": 2.0}  # head -> how many times as fast cached features have to be


def engine(repeats: int) -> Section:
    """A round of FedAvg and of a plain loop in turn; both train, average and score.

    The engine alone has the channel with its codec and ledger, the client store and a checkpoint.
    """
    workload, clients = workload_of(), random_clients(3, 24 * 16, 64)
    seconds = timed_in_turn(repeats, partial(federation, workload, clients), partial(plain_round, workload, clients))
    row = dict(zip(("engine_s", "plain_loop_s"), (round(median(column), 2) for column in seconds), strict=True))
    return Section([row], [Bar("engine's speed over the plain loop's", ratio(*reversed(seconds)), 0.97)])


def growth(repeats: int) -> Section:
    """Memory, time and disk of few and many clients, each in a process of its own, run once.

    FedAvg keeps nothing with its clients. A client of FedSplitBERT keeps 22 MB of six layers, in two versions while a
    round runs: it gets two layers here, to fit the disk.
    """
    rows, bars = [], []
    for method, layers, bound in (("fedavg", 6, 1.2), ("fedsplitbert", 2, 1.3)):
        for clients in (FEW, MANY):
            with fresh_processes(1) as process:
                rows.append(process.submit(cost_of, method, clients, {"num_hidden_layers": layers}).result())
        few, many = (row["peak_mb"] for row in rows[-2:])
        bars.append(Bar(f"{method}: peak memory of {MANY} clients over {FEW}", many / few, bound, at_least=False))
    return Section(rows, bars)


def frozen(repeats: int) -> Section:
    """D-FedFreezeBERT with features computed once and in every epoch; training half of the layers and all of them."""
    rows, bars = [], []
    clients = random_clients(3, 128)
    for head, bound in REUSE.items():
        with tempfile.TemporaryDirectory() as folder:
            workload = workload_of(head=head, folder=Path(folder), local_epochs=2)
            run = partial(federation, workload, clients, "fedfreezebert")
            anew, cached = timed_in_turn(repeats, partial(run, cached=False), run)
        rows.append(
            {
                "what": f"features cached, {head}",
                "without_s": round(median(anew), 3),
                "with_s": round(median(cached), 3),
            }
        )
        bars.append(Bar(f"cached features, {head}: times as fast", ratio(anew, cached), bound))
    workload, client = workload_of(), clients[0]
    upper = workload.model.groups.head.union(*workload.model.groups.layers[workload.model.groups.depth // 2 :])
    train = partial(workload.training.run, workload.model, client.train, round=1, client=0)
    every, half = timed_in_turn(
        repeats, partial(train, names=trained_names(workload)), partial(train, names=sorted(upper))
    )
    rows.append(
        {"what": "half of the layers frozen", "without_s": round(median(every), 3), "with_s": round(median(half), 3)}
    )
    return Section(rows, bars)


def federation(workload: Workload, clients: Sequence[Client], method: str = "fedavg", **options: JSON) -> int:
    """Run all rounds of a method with scores, client store and checkpoints; returns the last checkpoint's bytes."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder), "bench")
        run_federation(
            build_algorithm(method, workload, options),
            clients,
            Channel(),
            lambda answers, subset: {"accuracy": float((answers.argmax(1) == subset.labels).mean())},
            rounds=workload.training.config.rounds,
            seed=0,
            checkpoint=checkpoint,
            store=ClientStore(checkpoint.folder, in_memory=len(clients) <= MANY_CLIENTS),
        )
        return sum(path.stat().st_size for path in checkpoint.folder.iterdir())


def plain_round(workload: Workload, clients: Sequence[Client]) -> Params:
    """A round as anyone would write it without a harness: train a copy on each client, average, score."""
    model, training, config = workload.model, workload.training, workload.training.config
    names = trained_names(workload)
    mean = {name: torch.zeros_like(workload.initial[name]) for name in names}
    for client in clients:
        model.write(workload.initial)
        model.set_trained(names)
        chosen = [model.parameters[name] for name in names]
        optimizer = torch.optim.AdamW(chosen, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True)
        model.network.train()
        with torch_seeded(training.seed, 1, client.id, "dropout"):
            for batch in training.batches(client.train, model.objective, 1, client.id):
                model.loss(batch).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        for name in names:
            mean[name].add_(model.parameters[name].detach(), alpha=1 / len(clients))
    model.write(mean)
    for client in clients:
        for subset in client.evaluation.values():
            answers = model.predict(subset, workload.evaluation_batch_size, training.width)
            _ = float((answers.argmax(1) == subset.labels).mean())
    return mean


def cost_of(method: str, clients: int, config: Mapping[str, JSON]) -> dict[str, JSON]:
    """A row: what this process spends on a federation of clients with two short texts each.

    config: changes to the encoder's configuration.
    """
    workload = workload_of(precision="fp32", config=config, rounds=ROUNDS)
    members = random_clients(clients, 2, 1, (8, 12), config.get("vocab_size", 30522))
    options = {"critical_layer": 1} if method == "fedsplitbert" else {}
    start = time.perf_counter()
    disk_bytes = federation(workload, members, method, **options)
    return {
        "method": method,
        "clients": clients,
        "round_s": round((time.perf_counter() - start) / ROUNDS, 2),
        "peak_mb": round(peak_memory_bytes() / 1e6),
        "disk_mb": round(disk_bytes / 1e6),
    }
