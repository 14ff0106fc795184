"""Benchmarks of what `plan` assumes about a GPU: peak memory against its estimate, and the share of the peak rate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.costs import GPUS
from benchmarks.dry_run.client_costs import work
from benchmarks.dry_run.memory import fit
from benchmarks.dry_run.rounds import shaped_workload
from benchmarks.dry_run.stand_ins import OneText
from benchmarks.performance.suite import Bar, Section
from benchmarks.registry import benchmark
from benchmarks.run_config import JSON, RunConfig
from benchmarks.running.completed import chain_of
from fedsim.algorithms import build_algorithm
from fedsim.data import Client, Subset
from fedsim.features import FeatureCache
from fedsim.micro_batches import MicroBatches
from fedsim.precision import DTYPES, Precision, product_seconds
from fedsim.store import ClientStore
from fedsim.training import LocalTraining
from fedsim.wire import Channel

# Rows at paper scale by table, and a GPU whose memory their parts fit.
ROWS = (
    ("fedsplitbert-table3", "fedavg", "v100-16"),  # texts with a label
    ("fedsplitbert-table3", "fedsplitbert", "v100-16"),  # lower layers exchanged, the others kept
    ("fedpeft-even", "fedit", "v100-16"),  # adapters
    ("fedbfpt-table2", "fedbfpt", "v100-16"),  # masked tokens, one layer after another
    ("fedbert-table6", "fedavg", "v100-16"),  # masked tokens
    ("fedbert-table7", "emdavg", "v100-32"),  # the same, split: activations of each part cross
    ("fedbert-table8", "emdavg", "a6000"),  # next words, split: logits for a vocabulary
)
CLIENTS = 3
BATCHES, MORE = 2, 5  # per client and round; the difference in time is that of their steps alone
SIDE = 8192  # of square matrices, whose product measures the machine's rate


def memory(repeats: int) -> Section:
    """The first rounds of rows at paper scale, with random weights, on a GPU. repeats: ignored, as bytes do not vary.

    Batches go through the model in parts that fit a GPU named by the suite, however large the present one is.
    """
    if not torch.cuda.is_available():
        return Section([], note="This machine has no GPU.")
    rows = [_row(*names) for names in ROWS]
    bars = [Bar(f"{row['row']}: estimate and peak, smaller over larger", row["agreement"], 0.8, "GPUs") for row in rows]
    return Section(rows, bars)


def _row(table: str, row: str, gpu: str) -> dict[str, JSON]:
    """One row's first rounds with parts for a GPU, in which the steps are timed."""
    definition, precision = benchmark(table), GPUS[gpu].precision
    cell = definition.cell(definition.row(row), definition.columns[0], definition.scale("paper"), 0)
    cell = chain_of(cell)[0]  # pre-training, if there is any
    cell = replace(cell, clients=min(cell.clients, CLIENTS), training=replace(cell.training, participation=1.0))
    fitted = fit(cell, GPUS[gpu].memory, precision)
    on_gpu = Precision(torch.device("cuda"), precision)
    (peak, few), (_, many) = (first_rounds(cell, fitted.part, on_gpu, batches) for batches in (BATCHES, MORE))
    step = (many - few) / (MORE - BATCHES) / cell.clients
    low, high = sorted((peak, fitted.held.training))
    matrix_s = 2 * SIDE**3 / product_seconds(DTYPES[precision], SIDE, 3, "cuda")
    needed = work(cell)
    rate = cell.training.batch_size * (needed.client + needed.server) / step if needed else 0.0
    return {
        "row": f"{table} {row}",
        "parts_for": gpu,
        "precision": precision,
        "part": fitted.part,
        "batch": cell.training.batch_size,
        "estimate_gib": round(fitted.held.training / 2**30, 2),
        "peak_gib": round(peak / 2**30, 2),
        "agreement": round(low / high, 3),
        "step_ms": round(1000 * step, 1),
        "round_ms": round(1000 * (few - BATCHES * cell.clients * step), 1),
        "tflop_s": round(rate / 1e12, 1),
        "matrix_tflop_s": round(matrix_s / 1e12, 1),
        "share": round(rate / matrix_s, 3),
    }


def first_rounds(cell: RunConfig, texts: int, precision: Precision, batches: int = BATCHES) -> tuple[int, float]:
    """A run's first two rounds with random weights and texts of equal tokens.

    Args:
        cell: The run.
        texts: In each part of a batch.
        precision: Includes the device.
        batches: Per client and round.

    Returns:
        The allocator's peak in bytes over both rounds, and the second one's seconds.
    """
    config = replace(cell.training, local_epochs=1, padding="fixed", kernels="reference")  # as on a GPU
    training = LocalTraining(config, cell.seed, micro_batches=MicroBatches(texts))
    seconds = [0.0]

    def train() -> None:
        work = shaped_workload(replace(cell, training=config), training, FeatureCache(), precision)
        text = OneText(config.max_length, work.objective)
        subset = Subset(text, np.zeros(batches * config.batch_size, dtype=np.int64))
        clients = [Client(number, subset, {}) for number in range(cell.clients)]
        algorithm, channel = build_algorithm(cell.algorithm, work, cell.options), Channel(cell.codec)
        state = algorithm.init(clients, channel, ClientStore())
        for number in (1, 2):
            start, channel.round = time.perf_counter(), number
            state, _ = algorithm.round(state, clients, channel)
            if precision.device.type == "cuda":
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)

    return _peak(train, precision.device), seconds[-1]


def _peak(run: Callable[[], None], device: torch.device) -> int:
    """The peak of the bytes that a device's allocator hands out while a function runs."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        return torch.cuda.max_memory_allocated() - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    changes = [event.nbytes() for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]
    return int(np.cumsum(changes).max())
