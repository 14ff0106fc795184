"""The command `rehearse`: one step per method and model at paper scale, on random texts on a CPU."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from benchmarks.dry_run.rounds import shaped_workload
from benchmarks.encoders.files import architecture
from benchmarks.encoders.loading import Located, build_encoder, locate
from benchmarks.errors import UserError
from benchmarks.registry import benchmark, tables_named
from benchmarks.run_config import SCALES, RunConfig, canonical_json
from benchmarks.running.completed import chain_of
from benchmarks.tasks import task
from fedsim.algorithms import build_algorithm, trains
from fedsim.data import Client, Examples, Subset
from fedsim.errors import plural
from fedsim.features import FeatureCache
from fedsim.objectives import Objective, Regression, TokenClassification, TokenRecovery
from fedsim.precision import Precision
from fedsim.store import ClientStore
from fedsim.strict import to_plain
from fedsim.training import LocalTraining
from fedsim.wire import Channel

PAPER = SCALES[-1]
TEXTS = 2  # per batch
SPECIAL = 5  # the first ids of a vocabulary are special tokens


def random_texts(tokens: int, vocab_size: int, objective: Objective, classes: int) -> Examples:
    """Texts of random words, each with a random label, or with a target per token if the task has those."""
    rng, size = np.random.default_rng(0), TEXTS * tokens
    ids = rng.integers(SPECIAL, vocab_size, size).astype(np.int32)
    labels = rng.integers(0, classes, TEXTS).astype(np.float32 if isinstance(objective, Regression) else np.int64)
    targets = {TokenRecovery: ids.astype(np.int64), TokenClassification: rng.integers(0, classes, size)}
    offsets = np.arange(TEXTS + 1) * tokens
    return Examples(ids, np.zeros(size, dtype=np.int32), offsets, labels, 0, targets.get(type(objective)))


def rehearse_command(args: argparse.Namespace) -> int:
    """Take one optimisation step per distinct method and model, and record nothing."""
    print(f"One step on {TEXTS} texts of random words, at the papers' shapes; nothing is recorded.")
    failed = list[str]()
    for place, cell in distinct(args.id):
        started, located = time.perf_counter(), _located(cell)
        try:
            outcome = f"loss {step(cell, located):.3g}"
        except Exception as error:  # noqa: BLE001 - other rehearsals still run
            outcome = f"failed: {type(error).__name__}: {error}"
            failed.append(place)
        weights = "checkpoint" if located and located.folder else "random weights"
        shapes = f"{cell.algorithm}, {cell.backbone} ({weights}), {cell.head}, {cell.training.max_length} tokens"
        print(f"{time.perf_counter() - started:5.1f} s  {shapes}: {outcome} ({place})", flush=True)
    if failed:
        raise UserError(f"{plural(len(failed), 'rehearsal')} failed, for {'; '.join(failed)}")
    return 0


def distinct(ids: list[str]) -> Iterator[tuple[str, RunConfig]]:
    """A run per distinct method and model at paper scale, and the first table that has it.

    Options that are numbers, such as a critical layer, do not distinguish methods.
    """
    seen = set[str]()
    for name in tables_named(ids):
        table = benchmark(name)
        if PAPER not in table.scales_by_id:
            continue
        for row, _, cell in table.cells(table.scale(PAPER), [0]):
            for stage in chain_of(cell):
                choices = {name: value for name, value in stage.options.items() if isinstance(value, str | bool)}
                model = stage.backbone, stage.head, task(stage.task).objective, stage.training.max_length
                adapter = to_plain(stage.adapter) if stage.adapter else {}
                key = canonical_json([stage.algorithm, choices, *model, adapter])
                if key not in seen and trains(stage.algorithm):
                    seen.add(key)
                    yield f"{name}, {row.name}", stage


def _located(cell: RunConfig) -> Located | None:
    """The encoder's files, if this machine has them."""
    try:
        return locate(cell.backbone, local_only=True)
    except UserError:
        return None


def step(cell: RunConfig, located: Located | None) -> float:
    """Take one step of a run's first round with its first client, and score its texts; returns the loss."""
    plain = replace(cell.training, batch_size=TEXTS, local_epochs=1, padding="fixed", precision="fp32")
    config = replace(plain, kernels="reference")  # as on a GPU
    build = (lambda: build_encoder(located)) if located and located.folder else None
    precision = Precision(torch.device("cpu"), "fp32")
    training = LocalTraining(config, cell.seed)
    work = shaped_workload(replace(cell, training=config), training, FeatureCache(), precision, build)
    vocab_size, classes = int(architecture(cell.backbone).get("vocab_size", 30522)), task(cell.task).classes
    texts = Subset(random_texts(config.max_length, vocab_size, work.objective, classes), np.arange(TEXTS))
    clients = [Client(number, texts, {"test": texts}) for number in range(cell.clients)]
    algorithm, channel = build_algorithm(cell.algorithm, work, cell.options), Channel(cell.codec)
    state = algorithm.init(clients, channel, ClientStore())
    channel.round = 1
    state, metrics = algorithm.round(state, clients[:1], channel)
    answers = algorithm.predict(state, clients[0], texts)
    if not np.isfinite(answers).all():
        raise UserError(f"{cell.label}: expected finite outputs, found NaN or infinity")
    return float("nan") if metrics.train_loss is None else metrics.train_loss
