"""Part 1: training as a share of what the machine can do, scoring apart, and where the time goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch

from benchmarks.encoders.backbones import architecture
from benchmarks.performance.processes import fresh_processes
from benchmarks.performance.products import Encoder, matrix_rate
from benchmarks.performance.section import Bar, Bench, Section, seconds
from benchmarks.performance.workload import BACKBONE, clients_of, setting_of, texts
from benchmarks.run_config import JSON
from benchmarks.running.process import hold_freed_memory, quiet_libraries
from fedsim.algorithms import Workload
from fedsim.data import Client
from fedsim.precision import DTYPES, has_amx, resolve_precision

EXAMPLES = 24 * 16  # of an epoch that is timed: two dozen batches
SCORED = 1024
WARM_UPS = 2  # epochs, until the process has the memory that it needs
KERNELS = ("packed", "reference")


def measure(bench: Bench) -> Section:
    """What a run would use, and the library's layers; one cell on all threads, and a cell on each core side by side."""
    cores = torch.get_num_threads()
    rows: list[dict[str, JSON]] = []
    auto = resolve_precision("auto").name
    for kernels in KERNELS:
        rows.append(_row(f"1 cell, {cores} threads", auto, kernels, [_speed(auto, kernels, bench.repeats)]))
        bench.say(_said(rows[-1]))
        if cores > 1:
            speeds = _side_by_side(auto, kernels, bench.repeats, cores)
            rows.append(_row(f"{cores} cells, 1 thread each", auto, kernels, speeds))
            bench.say(_said(rows[-1]))
    wanted = 0.25 if has_amx() else 0.6
    chosen = [row for row in rows if row["kernels"] == "packed"]
    bars = [
        Bar(f"training's share of the {auto} matrix rate, {row['cells']}", row["share"], wanted, unit="of it")
        for row in chosen
    ]
    notes = (
        "share: operations of products of real tokens that are really done, over those of a product of two square "
        "matrices of side 2048 in the same element type, in the same run. The share as if the last layer were computed "
        "for tokens that nobody reads stands beside it, as others count it.",
        f"Random texts of MRPC's lengths, {BACKBONE}'s sizes, batches of 16, embeddings frozen, dropout and AdamW "
        "included.",
    )
    return Section("training", "Training against the machine", rows, bars, notes)


@dataclass(frozen=True)
class Speed:
    """Of one process: medians of what it did in a second, and the rates of products between its epochs."""

    examples: float
    scored: float
    flops: float
    nominal_flops: float
    rate: float


def _speed(precision: str, kernels: str, repeats: int) -> Speed:
    setting = setting_of(precision=precision, kernels=kernels)
    (client,) = clients_of(texts(EXAMPLES + SCORED), 1, tested=SCORED)
    epoch, score = _work(setting, client)
    rates, trained = [], []
    for _ in range(WARM_UPS):
        epoch()
    for _ in range(repeats):
        rates.append(matrix_rate(DTYPES[precision], 3))
        trained.append(seconds(epoch))
    score()  # behind all training: a process that turns to other work for a while may lose its pages meanwhile
    scored = [seconds(score) for _ in range(repeats)]
    config = architecture(BACKBONE)
    encoder = Encoder(config["num_hidden_layers"], config["hidden_size"], config["intermediate_size"])
    lengths = client.train.examples.lengths[client.train.indices].tolist()
    took = median(trained)
    return Speed(
        len(client.train) / took,
        SCORED / median(scored),
        encoder.training_flops(lengths) / took,
        encoder.training_flops(lengths, unread=True) / took,
        median(rates),
    )


def _work(setting: Workload, client: Client) -> tuple[Callable[[], object], Callable[[], object]]:
    model = setting.model
    names = sorted(model.groups.names - model.groups.embeddings)
    return (
        lambda: setting.training.run(model, client.train, names, 1, 0),
        lambda: model.predict(client.evaluation["test"], setting.evaluation_batch_size, None),
    )


def _side_by_side(precision: str, kernels: str, repeats: int, processes: int) -> list[Speed]:
    with fresh_processes(processes) as pool:
        return list(pool.map(_alone, *zip(*[(precision, kernels, repeats)] * processes, strict=True)))


def _alone(precision: str, kernels: str, repeats: int) -> Speed:
    """What one of several processes does, with one thread."""
    quiet_libraries()
    hold_freed_memory()
    torch.set_num_threads(1)
    return _speed(precision, kernels, repeats)


def _row(cells: str, precision: str, kernels: str, speeds: list[Speed]) -> dict[str, JSON]:
    rate = sum(speed.rate for speed in speeds)
    return {
        "cells": cells,
        "precision": precision,
        "kernels": kernels,
        "examples_s": round(sum(speed.examples for speed in speeds), 1),
        "scored_s": round(sum(speed.scored for speed in speeds), 1),
        "gflop_s": round(sum(speed.flops for speed in speeds) / 1e9, 1),
        "matrix_gflop_s": round(rate / 1e9, 1),
        "share": round(sum(speed.flops for speed in speeds) / rate, 3),
        "share_with_unread": round(sum(speed.nominal_flops for speed in speeds) / rate, 3),
    }


def _said(row: dict[str, JSON]) -> str:
    return (
        f"  {row['cells']}, {row['precision']}, {row['kernels']}: {row['examples_s']:.0f} examples/s, "
        f"{row['gflop_s']:.0f} of {row['matrix_gflop_s']:.0f} GFLOP/s = {100 * row['share']:.0f} %; "
        f"scoring {row['scored_s']:.0f} texts/s"
    )
