"""Benchmarks of speed and memory: shared workloads and timing, and results as text and JSON.

Sections train on random texts with MRPC's lengths and an encoder of the lite scale's size. Time depends on neither the
texts' content nor the weights, so no data or checkpoints are needed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import import_module
from multiprocessing import get_context
from statistics import median

import numpy as np
import torch

from benchmarks.encoders.files import architecture
from benchmarks.errors import UserError
from benchmarks.executors.processes import end_with_parent
from benchmarks.run_config import JSON
from benchmarks.running.process import describe_environment, hold_freed_memory, quiet_libraries
from benchmarks.running.run_options import RunOptions
from fedsim.adapter_config import AdapterConfig
from fedsim.algorithms import Workload
from fedsim.data import Client, Examples, Subset
from fedsim.models.adapters import with_adapter
from fedsim.models.model import Model
from fedsim.models.sequence import encoder_from_config, with_head
from fedsim.objectives import Classification
from fedsim.precision import resolve_precision
from fedsim.train_config import TrainConfig
from fedsim.training import LocalTraining

# Section -> its module in this package, which has a function with the section's name.
PARTS: Mapping[str, str] = {
    "training": "training",
    "adapters": "training",
    "engine": "federations",
    "peers": "federations",
    "gpu": "training",
    "memory": "memory",
    "wire": "wire",
}
BACKBONE = "all-MiniLM-L6-v2"
# Tokens per MRPC pair in the bert-base-uncased vocabulary: minimum, deciles, maximum; the mean is 53.2.
MRPC_LENGTHS = (19, 36, 41, 45, 50, 53, 57, 61, 64, 70, 103)


@dataclass(frozen=True)
class Bar:
    """A ratio and its lower bound. machines: where the bar applies."""

    what: str
    value: float
    bound: float
    machines: str = "any CPU"

    @property
    def met(self) -> bool:
        return self.value >= self.bound

    def __str__(self) -> str:
        verdict = "met" if self.met else "NOT met"
        return f"{self.what}: {self.value:.4g} (bar ≥ {self.bound:g} on {self.machines}: {verdict})"


@dataclass(frozen=True)
class Section:
    """A section's measurements: table rows with equal keys, and the bars. note: why something is missing."""

    rows: Sequence[dict[str, JSON]]
    bars: Sequence[Bar] = ()
    note: str = ""


def run_suite(parts: Sequence[str], settings: RunOptions, repeats: int) -> int:
    """Measure the sections with the given names, or all; returns 1 if a bar is missed, else 0.

    UserError for an unknown section. settings: the threads are for a single run. repeats: of each timing.
    """
    if unknown := sorted(set(parts) - set(PARTS)):
        raise UserError(f"bench: expected parts of {', '.join(PARTS)}, found {', '.join(unknown)}")
    quiet_libraries()
    hold_freed_memory()  # as in a run's process
    torch.set_num_threads(settings.threads)
    environment = describe_environment(resolve_precision("auto", settings.device), settings.threads)
    folder = settings.results_dir / "performance"
    folder.mkdir(parents=True, exist_ok=True)
    missed = 0
    for name in parts or PARTS:
        print(f"{name}: {environment['device']}, {settings.threads} threads, medians of {repeats}", flush=True)
        section: Section = getattr(import_module(f"benchmarks.performance.{PARTS[name]}"), name)(repeats)
        for row in section.rows:
            print("  " + ", ".join(f"{key} {value}" for key, value in row.items()))
        for line in (*section.bars, *filter(None, [section.note])):
            print(f"  {line}")
        missed += sum(not bar.met for bar in section.bars)
        finished = datetime.now(UTC).isoformat(timespec="seconds")
        result = {"environment": environment, "repeats": repeats, "finished": finished, **asdict(section)}
        (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"Results: {folder}")
    return int(missed > 0)


def timed_in_turn(repeats: int, *works: Callable[[], object]) -> list[list[float]]:
    """Lists of seconds, one per work: all in turn, once to warm up and then `repeats` times.

    Taking turns spreads a machine's slowdowns over all of them; compare them in pairs.
    """

    def seconds(work: Callable[[], object]) -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    rounds = [[seconds(work) for work in works] for _ in range(repeats + 1)]
    return [list(column) for column in zip(*rounds[1:], strict=True)]


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """The median of the pairwise ratios."""
    return round(median(a / b for a, b in zip(one, other, strict=True)), 4)


def fresh_processes(count: int) -> ProcessPoolExecutor:
    """A pool of new single-thread processes, which end with this one: peak memory is per process."""
    return ProcessPoolExecutor(count, get_context("spawn"), initializer=_start_process)


def _start_process() -> None:
    end_with_parent()
    quiet_libraries()
    hold_freed_memory()
    torch.set_num_threads(1)


def random_clients(
    clients: int, trained: int, tested: int = 0, lengths: tuple[int, ...] = MRPC_LENGTHS, vocabulary: int = 30522
) -> list[Client]:
    """Clients with random texts in two classes.

    trained, tested: numbers of texts per client. lengths: quantiles of the texts' lengths, in tokens.
    """
    rng = np.random.default_rng(0)
    count = clients * (trained + tested)
    drawn = np.interp(rng.random(count), np.linspace(0, 1, len(lengths)), lengths).round().astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(drawn)])
    tokens = rng.integers(1, vocabulary, offsets[-1], dtype=np.int32)
    examples = Examples(tokens, np.zeros_like(tokens), offsets, rng.integers(0, 2, count), padding_id=0)
    return [
        Client(number, Subset(examples, part[tested:]), {"test": Subset(examples, part[:tested])} if tested else {})
        for number, part in enumerate(np.array_split(np.arange(count), clients))
    ]


def workload_of(
    backbone: str = BACKBONE,
    device: str = "cpu",
    adapter: AdapterConfig | None = None,
    **training: JSON,
) -> Workload:
    """A workload: a backbone with fresh weights, trained in batches of 16, copied before training.

    adapter: on the encoder. training: changes to the TrainConfig.
    """
    local = TrainConfig(**{"rounds": 1, "learning_rate": 5e-5, "batch_size": 16, **training})
    objective = Classification(2)
    encoder = encoder_from_config(architecture(backbone))
    network = with_adapter(with_head(encoder, objective.outputs, seed=0), adapter, seed=0)
    model = Model(network, resolve_precision(local.precision, device), objective, local.kernels)
    workload = Workload(lambda: model, LocalTraining(local), objective)
    _ = workload.initial
    return workload


def trained_names(workload: Workload) -> list[str]:
    """The parameters that FedAvg trains and exchanges: all but the embeddings, or only an adapter and the head."""
    groups = workload.model.groups
    return sorted((groups.names - groups.embeddings) & workload.model.trainable)
