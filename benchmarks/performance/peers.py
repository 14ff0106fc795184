"""The same FedAvg job in the engine, in a plain loop as the papers' code has it, and in Flower."""

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
from benchmarks.performance.federations import federation, plain_round
from benchmarks.performance.suite import Bar, Section, ratio, timed_in_turn
from benchmarks.performance.workload import random_clients, workload_of
from fedsim.algorithms import Workload
from fedsim.data import Client
from fedsim.precision import bf16_gain

BATCHES, PLAIN_BATCHES = 8, 4  # of each client in a round; of the plain loop, whose batches are slow
MISSING = "Flower is not installed (`make bench FLOWER=1`): its row and bar are left out."
SCRIPT = Path(__file__).parent / "flower_job.py"
# Our parameters' names -> those of the library's BertForSequenceClassification.
LIBRARY_NAMES = {"encoder.": "bert.", "head.pooler.": "bert.pooler.dense.", "head.classifier.": "classifier."}
FLOWER_ENVIRONMENT = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # everywhere: its node is 127.0.0.1, and it listens only there
    "HF_HUB_OFFLINE": "1",  # it loads nothing but the job's folder
}


def peers(repeats: int) -> Section:
    """Texts trained a second on a CPU, without scoring; the engine's rounds include a checkpoint.

    The bars hold for CPUs on which bf16 is faster: the others have no such room over fp32.
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
    bars = [Bar(f"engine over {way}", ratio(speeds["engine"], speeds[way]), bound) for way, bound in bounds]
    return Section(rows, bars if bf16_gain() > 1 else [], "" if python else MISSING)


def flower_python() -> Path | None:
    """Python of Flower's environment, a folder of this one's; None if it is not installed."""
    folder = Path(sys.prefix) / "flower" / "bin"
    return folder / "python" if (folder / "flwr").exists() else None


def run_flower(python: Path, workload: Workload, clients: Sequence[Client], rounds: int) -> list[float]:
    """Seconds of each of Flower's rounds, from sending to merging, after one to warm up.

    Raises UserError with Flower's output if it fails.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    with tempfile.TemporaryDirectory(prefix="fl") as name:  # short: Ray's sockets are in it
        job = write_job(Path(name), workload, clients, rounds + 1)
        done = subprocess.run(
            [python, "-P", SCRIPT, job],  # -P: this folder's modules are no libraries
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
    """Write what flower_job.py reads: job.json, the clients' batches, and the model with which all start."""
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
