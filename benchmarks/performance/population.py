"""Memory, time and disk of a federation, by its number of clients; each measured in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TypeVar

import torch

from benchmarks.backbones import architecture
from benchmarks.performance.processes import fresh_processes
from benchmarks.performance.workload import BACKBONE, clients_of, setting_of, texts
from benchmarks.runner import MANY_CLIENTS, hold_freed_memory, peak_memory_bytes, quiet_libraries
from benchmarks.scoring import scores
from benchmarks.settings import Settings
from benchmarks.spec import JSON
from fedsim.algorithms import Setting, build_algorithm
from fedsim.checkpoint import Checkpoint
from fedsim.data import Client
from fedsim.engine import Run, run_federation
from fedsim.store import ClientStore
from fedsim.wire import Channel

TRAINED, TESTED = 2, 1  # texts a client, and the tokens of each: so few that what shows is the engine
LENGTHS = (8, 12)
ROUNDS = 2

Result = TypeVar("Result")


@dataclass(frozen=True)
class Population:
    """A method, on so many clients. config: changes to the encoder's configuration."""

    clients: int
    algorithm: str
    options: Mapping[str, JSON] = field(default_factory=dict)
    backbone: str = BACKBONE
    config: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class Cost:
    """What a federation took. seconds: of each round; disk_bytes: of the checkpoint after the last one."""

    seconds: tuple[float, ...]
    peak_bytes: int
    disk_bytes: int


def in_process(work: Callable[..., Result], *arguments: object) -> Result:
    """The result of a fresh process: a peak of memory is a process's."""
    with fresh_processes(1) as process:
        return process.submit(work, *arguments).result()


def cost_of(population: Population, settings: Settings) -> Cost:
    """Run a federation in this process, with checkpoint, store and scores as a cell has them."""
    quiet_libraries()
    torch.set_num_threads(settings.threads)
    setting = setting_of(population.backbone, "fp32", device=settings.device, config=population.config, rounds=ROUNDS)
    vocabulary = int(population.config.get("vocab_size", architecture(population.backbone)["vocab_size"]))
    examples = texts(population.clients * (TRAINED + TESTED), LENGTHS, vocabulary)
    hold_freed_memory()
    settings.results_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="growth-", dir=settings.results_dir) as folder:
        seconds = rounds_of(setting, population, clients_of(examples, population.clients, TESTED), Path(folder))
        disk_bytes = sum(path.stat().st_size for path in Path(folder).iterdir())
    return Cost(tuple(seconds), peak_memory_bytes(), disk_bytes)


def rounds_of(
    setting: Setting, population: Population, clients: Sequence[Client], folder: Path, rounds: int = ROUNDS
) -> list[float]:
    """Seconds of each round of a federation that keeps its state in the folder."""
    marks: list[float] = []

    def mark(run: Run) -> None:
        marks.append(perf_counter())

    run_federation(
        build_algorithm(population.algorithm, setting, population.options),
        clients,
        Channel(),
        lambda answers, subset: scores(("accuracy",), setting.objective, answers, subset),
        rounds=rounds,
        seed=0,
        checkpoint=Checkpoint(folder, "growth"),
        store=ClientStore(folder, in_memory=population.clients <= MANY_CLIENTS),
        on_start=mark,
        on_round=mark,
    )
    return [after - before for before, after in pairwise(marks)]


def typical(cost: Cost) -> float:
    """Seconds a round: the median."""
    return median(cost.seconds)
