"""Benchmarks of whole federations: the engine against a plain loop and Flower."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification

from benchmarks.errors import UserError
from benchmarks.performance import suite
from benchmarks.performance.suite import Bar, Section, random_clients, ratio, timed_in_turn, workload_of
from fedsim.algorithms import Workload, build_algorithm
from fedsim.checkpoint import Checkpoint
from fedsim.data import Client
from fedsim.engine import run_federation
from fedsim.precision import bf16_gain
from fedsim.rng import torch_seeded
from fedsim.wire import Channel, Params

BATCHES, PLAIN_BATCHES = 8, 4  # per client and round; the plain loop gets fewer, as it is slow
MISSING = "Flower is not installed (`make bench FLOWER=1` installs it): its row and bar are left out."
FAST_BF16 = "CPUs with fast bf16"
NO_BARS = f"These bars apply only to {FAST_BF16}; on this one, section training has bars."
SCRIPT = Path(__file__).parent / "flower_job.py"
# Our parameters' names -> those of the library's BertForSequenceClassification.
LIBRARY_NAMES = {"encoder.": "bert.", "head.pooler.": "bert.pooler.dense.", "head.classifier.": "classifier."}
FLOWER_ENVIRONMENT = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on every system: its node is 127.0.0.1, and it listens only there
    "HF_HUB_OFFLINE": "1",  # it loads only the job's folder
}


def engine(repeats: int) -> Section:
    """Time rounds of FedAvg and of a plain loop in turn; both train, average and score.

    Only the engine has a channel with codec and ledger, a client store and checkpoints.
    """
    workload, clients = workload_of(), random_clients(3, 16 * 16, 64)
    seconds = timed_in_turn(repeats, partial(federation, workload, clients), partial(plain_round, workload, clients))
    row = dict(zip(("engine_s", "plain_loop_s"), (round(median(column), 2) for column in seconds), strict=True))
    return Section([row], [Bar("engine's speed over the plain loop's", ratio(*reversed(seconds)), 0.97)])


def peers(repeats: int) -> Section:
    """Texts trained per second on a CPU, without scoring; the engine's rounds include a checkpoint.

    The bars apply to CPUs with bf16 faster than fp32.
    """
    workload, literal = workload_of(), workload_of(precision="fp32", kernels="reference", padding="fixed")
    clients, few = (random_clients(3, 16 * batches) for batches in (BATCHES, PLAIN_BATCHES))
    engine, plain = timed_in_turn(repeats, partial(federation, workload, clients), partial(plain_round, literal, few))
    speeds = {"engine": [48 * BATCHES / each for each in engine]}
    speeds["a plain loop, padded to 128, fp32"] = [48 * PLAIN_BATCHES / each for each in plain]
    python = flower_python()
    if python is not None:
        speeds["Flower"] = [48 * BATCHES / each for each in run_flower(python, workload, clients, repeats)]
    rows = [{"way": way, "examples_s": round(median(of), 1)} for way, of in speeds.items()]
    bounds = zip(list(speeds)[1:], (6.0, 3.0), strict=False)
    bars = [
        Bar(f"engine over {way}", ratio(speeds["engine"], speeds[way]), bound, machines=FAST_BF16)
        for way, bound in bounds
    ]
    fast = bf16_gain() > 1
    notes = [*([] if python else [MISSING]), *([] if fast else [NO_BARS])]
    return Section(rows, bars if fast else [], " ".join(notes))


def federation(workload: Workload, clients: Sequence[Client]) -> None:
    """Run all rounds of FedAvg with scores, client store and checkpoints."""
    with tempfile.TemporaryDirectory() as folder:
        run_federation(
            build_algorithm("fedavg", workload, {}),
            clients,
            Channel(),
            lambda answers, subset: {"accuracy": float((answers.argmax(1) == subset.labels).mean())},
            rounds=workload.training.config.rounds,
            seed=0,
            checkpoint=Checkpoint(Path(folder), "bench"),
        )


def plain_round(workload: Workload, clients: Sequence[Client]) -> Params:
    """A round without a harness: train a copy on each client, average, score."""
    model, training, config = workload.model, workload.training, workload.training.config
    names = suite.trained_names(workload)
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


def flower_python() -> Path | None:
    """The Python of Flower's environment, a folder in this one; None if it is not installed."""
    folder = Path(sys.prefix) / "flower" / "bin"
    return folder / "python" if (folder / "flwr").exists() else None


def run_flower(python: Path, workload: Workload, clients: Sequence[Client], rounds: int) -> list[float]:
    """Seconds of each Flower round, from sending to merging, after one warm-up round.

    Raises UserError with Flower's output if it fails.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    with tempfile.TemporaryDirectory(prefix="fl") as name:  # short: Ray's sockets are in it
        job = write_job(Path(name), workload, clients, rounds + 1)
        done = subprocess.run(
            [python, "-P", SCRIPT, job],  # -P: this folder's modules are not libraries
            env={**environment, **FLOWER_ENVIRONMENT, "FLWR_HOME": f"{name}/flwr"},
            cwd=name,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        result = job.parent / "result.json"
        if done.returncode or not result.exists():
            raise UserError(f"Flower's job failed (status {done.returncode}):\n{done.stdout[-3000:]}")
        seconds: list[float] = json.loads(result.read_text(encoding="utf-8"))
        return seconds[1:]


def write_job(folder: Path, workload: Workload, clients: Sequence[Client], rounds: int) -> Path:
    """Write the inputs of flower_job.py: job.json, the clients' batches, and the initial model."""
    config: Any = copy.deepcopy(workload.model.network.encoder.config)
    config.num_labels = workload.objective.outputs
    classifier = AutoModelForSequenceClassification.from_config(config)
    classifier.load_state_dict({library_name(name): value for name, value in workload.initial.items()})
    classifier.save_pretrained(folder / "encoder")
    training = workload.training
    for client in clients:
        batches = enumerate(training.batches(client.train, workload.objective, 1, client.id))
        arrays: dict[str, Any] = {
            f"{number}/{name}": value for number, batch in batches for name, value in batch.items()
        }
        np.savez(folder / f"client-{client.id}.npz", **arrays)
    job: dict[str, float] = {"rounds": rounds, "clients": len(clients), "cpus": torch.get_num_threads()}
    job |= {"learning_rate": training.config.learning_rate}
    path = folder / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    return path


def library_name(name: str) -> str:
    """A parameter's name in the library's classifier."""
    prefix = next(prefix for prefix in LIBRARY_NAMES if name.startswith(prefix))
    return LIBRARY_NAMES[prefix] + name.removeprefix(prefix)
