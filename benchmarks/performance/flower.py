"""The same FedAvg job in Flower, which runs in an environment of its own: its pins exclude this project's."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.encoders.backbones import build_tokenizer, locate
from benchmarks.errors import UserError
from benchmarks.performance.fedavg_job import Job, Ready, mrpc_cell
from benchmarks.run_config import JSON
from fedsim.data import Client, Examples, Subset

SCRIPT = Path(__file__).parent / "flower_job.py"
# Ours under the names of the library's BertForSequenceClassification.
LIBRARY_NAMES = {
    "encoder.": "bert.",
    "head.pooler.": "bert.pooler.dense.",
    "head.classifier.": "classifier.",
}
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on every system: its node is 127.0.0.1, and it listens there alone
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",  # all that it loads lies in the job's folder
    "TOKENIZERS_PARALLELISM": "false",
}


def flower_python() -> Path | None:
    """Python of Flower's environment, a folder of this one's; None where it is not installed."""
    folder = Path(sys.prefix) / "flower" / "bin"
    return folder / "python" if (folder / "python").exists() and (folder / "flwr").exists() else None


@dataclass(frozen=True)
class FlowerResult:
    """Of each round: wall seconds from sending to merging, and seconds in each client's own loop over its batches."""

    seconds: Sequence[float]
    loop_seconds: Sequence[Sequence[float]]


def run_flower(python: Path, job: Job, ready: Ready, rounds: int, cpus_per_client: int) -> FlowerResult:
    """Run the job in Flower's simulation engine on two CPUs; UserError with what it said where it fails."""
    with tempfile.TemporaryDirectory(prefix="fl") as name:  # short: Ray's sockets lie in it
        folder = Path(name)
        words: dict[str, JSON] = {
            "rounds": rounds,
            "cpus": 2,
            "cpus_per_client": cpus_per_client,
            "ray": {"_temp_dir": str(folder / "ray")},
        }
        path = write_job(folder, job, ready, words)
        done = subprocess.run(
            [python, "-P", SCRIPT, path],  # -P: this folder's modules are no libraries
            env={**_environment(), **QUIET, "FLWR_HOME": str(folder / "flwr")},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode or not (folder / "result.json").exists():
            raise UserError(f"Flower's job failed (status {done.returncode}):\n{done.stdout[-3000:]}")
        return FlowerResult(**json.loads((folder / "result.json").read_text(encoding="utf-8")))


def write_job(folder: Path, job: Job, ready: Ready, words: dict[str, JSON]) -> Path:
    """Write what flower_job.py reads: job.json, the clients' tokens, and the model as all begin with it."""
    config = ready.setting.training.config
    save_classifier(ready, job, folder / "encoder")
    np.savez(folder / "clients.npz", **client_arrays(ready.clients))  # type: ignore[arg-type]
    value = {
        "encoder": str(folder / "encoder"),
        "data": str(folder / "clients.npz"),
        "result": str(folder / "result.json"),
        "clients": len(ready.clients),
        "batch_size": config.batch_size,
        "learning_rate": config.learning_rate,
        "seed": job.seed,
        **words,
    }
    path = folder / "job.json"
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
    return path


def client_arrays(clients: Sequence[Client]) -> dict[str, np.ndarray]:
    """Every client's examples, end to end: "<client>/<train or test>/<tokens, types, offsets or labels>"."""
    found: dict[str, np.ndarray] = {}
    for number, client in enumerate(clients):
        for name, subset in {"train": client.train, **client.evaluation}.items():
            found |= {f"{number}/{name}/{part}": values for part, values in _arrays(subset).items()}
    return found


def _arrays(subset: Subset) -> dict[str, np.ndarray]:
    examples = subset.examples
    assert isinstance(examples, Examples)  # token ids: features are no one else's
    spans = [np.arange(examples.offsets[index], examples.offsets[index + 1]) for index in subset.indices]
    chosen = np.concatenate(spans)
    return {
        "tokens": np.asarray(examples.tokens)[chosen],
        "types": np.asarray(examples.types)[chosen],
        "offsets": np.concatenate([[0], np.cumsum(examples.lengths[subset.indices])]),
        "labels": subset.labels,
    }


def save_classifier(ready: Ready, job: Job, folder: Path) -> None:
    """Save a job's model, encoder and head as they begin, as the library's own classifier with its tokenizer."""
    from transformers import AutoModelForSequenceClassification

    model = ready.setting.model
    source: Any = model.network.encoder.config
    config = copy.deepcopy(source)
    config.num_labels = model.objective.outputs
    classifier = AutoModelForSequenceClassification.from_config(config)
    classifier.load_state_dict({library_name(name): value for name, value in ready.setting.initial.items()})
    classifier.save_pretrained(folder)
    backbone = mrpc_cell(job.seed).backbone if job.real else "tiny"  # of random texts it pads alone, with 0
    build_tokenizer(locate(backbone)).save_pretrained(folder)


def library_name(name: str) -> str:
    """A parameter's name in the library's classifier."""
    ours = next(prefix for prefix in LIBRARY_NAMES if name.startswith(prefix))
    return LIBRARY_NAMES[ours] + name.removeprefix(ours)


def _environment() -> dict[str, str]:
    """This process's own, without what chooses threads or modules for it alone."""
    alone = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    return {name: value for name, value in os.environ.items() if name not in alone}
