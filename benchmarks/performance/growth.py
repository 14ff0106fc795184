"""Growth: memory, time and disk of a federation by its number of clients; each measured in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter

import torch

from benchmarks.encoders.backbones import architecture
from benchmarks.performance.processes import fresh_processes
from benchmarks.performance.section import Bar, Bench, Section
from benchmarks.performance.workload import BACKBONE, clients_of, setting_of, texts
from benchmarks.run_config import JSON
from benchmarks.running.process import hold_freed_memory, peak_memory_bytes, quiet_libraries
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import MANY_CLIENTS
from benchmarks.running.scoring import scores
from fedsim.algorithms import build_algorithm
from fedsim.checkpoint import Checkpoint
from fedsim.engine import Run, run_federation
from fedsim.store import ClientStore
from fedsim.wire import Channel

CLIENTS = (3, 1000)
TRAINED, TESTED = 2, 1  # texts of a client, few and short, so that the engine's own cost shows
LENGTHS = (8, 12)
ROUNDS = 2
# A client of FedSplitBERT keeps 22 MB of six layers, in two versions while a round runs: two layers fit the disk.
METHODS: Mapping[str, tuple[int, Mapping[str, JSON], float]] = {  # method -> layers, options, most memory of many / few
    "fedavg": (6, {}, 1.2),
    "fedsplitbert": (2, {"critical_layer": 1}, 1.3),
}


@dataclass(frozen=True)
class Population:
    """A method on a number of clients. config: changes to the encoder's configuration."""

    clients: int
    algorithm: str
    options: Mapping[str, JSON] = field(default_factory=dict)
    backbone: str = BACKBONE
    config: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class Cost:
    """The cost of a federation: seconds of each round, peak memory, and bytes of the checkpoint after the last one."""

    seconds: tuple[float, ...]
    peak_bytes: int
    disk_bytes: int


def measure(
    bench: Bench, clients: Sequence[int] = CLIENTS, backbone: str = BACKBONE, config: Mapping[str, JSON] | None = None
) -> Section:
    """Cost of few and of many clients, for a method that keeps nothing with its clients and one that does."""
    few, many = clients
    rows: list[dict[str, JSON]] = []
    bars = []
    for algorithm, (layers, options, bound) in METHODS.items():
        peaks = {}
        for count in clients:
            changed = {**(config or {}), "num_hidden_layers": layers}
            with fresh_processes(1) as process:
                population = Population(count, algorithm, options, backbone, changed)
                cost = process.submit(cost_of, population, bench.settings).result()
            peaks[count] = cost.peak_bytes
            rows.append(_row(algorithm, f"{backbone}, {layers} layers", count, cost))
            bench.say(f"  {algorithm}, {count} clients: {rows[-1]['seconds']:.2f} s, {cost.peak_bytes / 1e6:.0f} MB")
        what = f"{algorithm}: peak memory of {many} clients over {few}"
        bars.append(Bar(what, peaks[many] / peaks[few], bound, at_least=False))
    notes = (
        f"Peak memory is that of a fresh process, its libraries included; {ROUNDS} rounds of two short texts a client, "
        "with checkpoint, store and scores. Seconds are those of the median round.",
    )
    return Section("growth", "Growth with clients", rows, bars, notes)


def cost_of(population: Population, settings: RunOptions) -> Cost:
    """Run a federation in this process, with checkpoint, store and scores as a run has them."""
    quiet_libraries()
    torch.set_num_threads(settings.threads)
    setting = setting_of(population.backbone, "fp32", device=settings.device, config=population.config, rounds=ROUNDS)
    vocabulary = int(population.config.get("vocab_size", architecture(population.backbone)["vocab_size"]))
    examples = texts(population.clients * (TRAINED + TESTED), LENGTHS, vocabulary)
    hold_freed_memory()
    marks: list[float] = []

    def mark(run: Run) -> None:
        marks.append(perf_counter())

    settings.results_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="growth-", dir=settings.results_dir) as folder:
        run_federation(
            build_algorithm(population.algorithm, setting, population.options),
            clients_of(examples, population.clients, TESTED),
            Channel(),
            lambda answers, subset: scores(("accuracy",), setting.objective, answers, subset),
            rounds=ROUNDS,
            seed=0,
            checkpoint=Checkpoint(Path(folder), "growth"),
            store=ClientStore(Path(folder), in_memory=population.clients <= MANY_CLIENTS),
            on_start=mark,
            on_round=mark,
        )
        disk_bytes = sum(path.stat().st_size for path in Path(folder).iterdir())
    return Cost(tuple(after - before for before, after in pairwise(marks)), peak_memory_bytes(), disk_bytes)


def _row(algorithm: str, encoder: str, clients: int, cost: Cost) -> dict[str, JSON]:
    seconds = median(cost.seconds)
    return {
        "method": algorithm,
        "encoder": encoder,
        "clients": clients,
        "seconds": seconds,
        "seconds_a_client": seconds / clients,
        "peak_memory_bytes": cost.peak_bytes,
        "disk_bytes": cost.disk_bytes,
    }
