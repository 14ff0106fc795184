"""Benchmarks of training speed relative to the machine's peak, on a CPU and on a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import torch

from benchmarks.performance import suite
from benchmarks.performance.suite import BACKBONE, MRPC_LENGTHS, Bar, Section, timed_in_turn, workload_of
from benchmarks.run_config import JSON
from fedsim.adapter_config import AdapterConfig
from fedsim.precision import DTYPES, has_amx, product_seconds, resolve_precision

EXAMPLES, SCORED = 16 * 16, 512  # texts in a timed epoch and in a timed test set
SIDE = 2048  # of square matrices, whose product measures the machine's rate
BERT = "bert-base-uncased"


def training(repeats: int) -> Section:
    """On a CPU: one run on all threads and one per core, with packed kernels; one with the library's layers."""
    cores = torch.get_num_threads()
    rows = [
        {"runs": f"1, {cores} threads", **_speed(repeats)},
        {"runs": f"{cores}, 1 thread each", **_side_by_side(repeats, cores)},
        {"runs": f"1, {cores} threads", **_speed(repeats, kernels="reference")},
    ]
    bound, machines = (0.25, "CPUs with AMX") if has_amx() else (0.6, "CPUs without AMX")
    bars = [
        Bar(f"share of the matrix rate, runs {row['runs']}", row["share"], bound, machines=machines) for row in rows[:2]
    ]
    return Section(rows, bars)


def adapters(repeats: int) -> Section:
    """On one thread: an epoch of FedAvg, and of LoRA on queries and values, with packed and the library's layers.

    In fp32, and in bf16 if that is faster.
    """
    with suite.fresh_processes(1) as pool:
        precisions = dict.fromkeys(("fp32", pool.submit(_faster).result()))
        rows = [pool.submit(_adapters, repeats, precision).result() for precision in precisions]
    bars = [Bar(f"LoRA, packed over the library's layers, {row['precision']}", row["gain"], 1.3) for row in rows]
    bars.append(Bar("time of a FedAvg round over that of a FedIT round, fp32", rows[0]["over_full"], 1.25))
    return Section(rows, bars)


def _faster() -> str:
    return resolve_precision("auto", "cpu").name


def _adapters(repeats: int, precision: str) -> dict[str, JSON]:
    """Texts per second in FedAvg's training, and in FedIT's with both kernels; medians of pairwise ratios."""
    lora = AdapterConfig("lora")
    full = workload_of(precision=precision)
    low, library = (workload_of(adapter=lora, precision=precision, kernels=name) for name in ("packed", "reference"))
    (client,) = suite.random_clients(1, EXAMPLES)
    works = [(workload, suite.trained_names(workload)) for workload in (full, low, library)]
    seconds = timed_in_turn(
        repeats, *(lambda w=w, n=n: w.training.run(w.model, client.train, n, 1, 0) for w, n in works)
    )
    rates = [round(EXAMPLES / median(each), 1) for each in seconds]
    return {
        "precision": precision,
        **dict(zip(("full_s", "lora_s", "lora_library_s"), rates, strict=True)),
        "gain": suite.ratio(seconds[2], seconds[1]),
        "over_full": suite.ratio(seconds[0], seconds[1]),
    }


def gpu(repeats: int) -> Section:
    """On a GPU: BERT-base at length 128 and at MRPC's lengths; small runs in parallel against one."""
    if not torch.cuda.is_available():
        return Section([], note="This machine has no GPU.")
    rows = [
        {"runs": f"1, {BERT}, {name}", **_speed(repeats, BERT, "cuda", lengths)}
        for name, lengths in (("length 128", (128, 128)), ("MRPC's lengths", MRPC_LENGTHS))
    ]
    rows += [{"runs": f"{runs}, {BACKBONE}", **_side_by_side(repeats, runs, "cuda")} for runs in (1, 4, 8)]
    alone, *several = (row["examples_s"] for row in rows[2:])
    bars = [
        Bar("BERT-base, length 128, share of the matrix rate", rows[0]["share"], 0.4, machines="GPUs"),
        Bar("small runs in parallel against one", max(several) / alone, 3.0, machines="GPUs"),
    ]
    return Section(rows, bars)


def _side_by_side(repeats: int, runs: int, device: str = "cpu") -> dict[str, JSON]:
    """The row for several processes: sums, and the share of the summed rates."""
    with suite.fresh_processes(runs) as pool:
        rows = [future.result() for future in [pool.submit(_speed, repeats, BACKBONE, device) for _ in range(runs)]]
    total = rows[0] | {name: round(sum(row[name] for row in rows), 1) for name in rows[0] if name.endswith("_s")}
    return total | {"share": round(total["gflop_s"] / total["matrix_gflop_s"], 3)}


def _speed(
    repeats: int,
    backbone: str = BACKBONE,
    device: str = "cpu",
    lengths: tuple[int, ...] = MRPC_LENGTHS,
    kernels: str = "packed",
) -> dict[str, JSON]:
    """The row for one process: trained texts, scored texts, matrix operations and the machine's rate, per second."""
    precision = resolve_precision("auto", device).name
    workload = workload_of(backbone, device, kernels=kernels)
    model, names = workload.model, suite.trained_names(workload)
    (client,) = suite.random_clients(1, EXAMPLES, SCORED, lengths)
    rates, trained, scored = timed_in_turn(
        repeats,
        lambda: product_seconds(DTYPES[precision], SIDE, 1, device),
        lambda: workload.training.run(model, client.train, names, 1, 0),  # computing its mean loss waits for a GPU
        lambda: model.predict(client.evaluation["test"], workload.evaluation_batch_size, None),
    )
    encoder: Any = model.network.encoder
    config = encoder.config.to_dict()
    flops = training_flops(config, client.train.examples.lengths[client.train.indices], model.packed)
    gflop_s = flops / median(trained) / 1e9
    # Each rate's work is two products: a warm-up and a timed one.
    matrix_gflop_s = 2 * 2 * SIDE**3 / median(rates) / 1e9
    return {
        "precision": precision,
        "kernels": "packed" if model.packed else "reference",
        "examples_s": round(EXAMPLES / median(trained), 1),
        "scored_s": round(SCORED / median(scored), 1),
        "gflop_s": round(gflop_s, 1),
        "matrix_gflop_s": round(matrix_gflop_s, 1),
        "share": round(gflop_s / matrix_gflop_s, 3),
    }


def training_flops(config: Mapping[str, JSON], lengths: Sequence[int], first: bool) -> int:
    """Operations in matrix products to train a BERT on texts of these lengths in tokens, without embeddings and head.

    first: whether the last layer is computed only for each text's first token, which the head reads.
    """
    layers, hidden, wide = (config[name] for name in ("num_hidden_layers", "hidden_size", "intermediate_size"))
    total = 0
    for tokens in map(int, lengths):
        layer = 2 * tokens * (4 * hidden**2 + 2 * hidden * wide) + 4 * tokens**2 * hidden
        # Keys and values for all tokens; query, output and feed-forward layers for one.
        last = 4 * tokens * hidden**2 + 4 * hidden**2 + 4 * hidden * wide + 4 * tokens * hidden if first else layer
        # The backward pass has two products per product, except the gradient for the frozen embeddings' output.
        total += 3 * ((layers - 1) * layer + last) - 6 * tokens * hidden**2
    return total
