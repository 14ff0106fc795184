"""Splits a task's data into each client's training and evaluation examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.encoders.encoding import Encoded
from benchmarks.errors import UserError
from benchmarks.results import INDEPENDENT
from benchmarks.run_config import VALIDATION, RunConfig
from benchmarks.tasks import Task, TaskData, TextExamples
from fedsim.data import Client
from fedsim.rng import SERVER, numpy_generator
from partitions import (
    Overlap,
    PartitionReport,
    from_description,
    measure_overlap,
    split_by_group,
    split_train_test,
)

POOL = "pool"
TEST = "test"
VALIDATION_SHARE = 0.2  # most of a client's training subset that replaces its test subset
Parts = Sequence[np.ndarray]  # the indices of each client's texts


def split_data(
    cell: RunConfig, of: Task, loaded: TaskData, examples: Mapping[str, Encoded]
) -> tuple[list[Client], PartitionReport]:
    """Partition a task's pool over clients; each client holds out a part of its examples for scoring.

    Held-out sets are partitioned like the pool. A central set, or the same cell.central_share of it, scores every
    client; if the test set is central, clients hold out nothing (test_share 0). With cell.holdout "validation", at most
    a fifth of its training subset scores a client, or the central validation set, but never a test set. To choose a
    round, clients also hold out cell.validation_share. With cell.independent, test
    examples of all clients, dealt out class-balanced, score a client, too: label distributions that are drawn
    independently of its training data are balanced on average. With cell.grouped, examples with the same first text are
    either all trained on or all held out, over all clients.

    Args:
        cell: The run.
        of: The task.
        loaded: The task's data.
        examples: The same sets in encoded form: "pool", held-out sets, and "central <name>".

    Returns:
        The clients, and a report on the partition, with the share of each evaluation whose first text is in training,
        and each client's number of truncated texts.

    Raises:
        UserError, PartitionError: The data do not allow the cell's split; the message names the option.
    """
    _check(cell, loaded)
    stratify, labels, sets = of.labels is not None, loaded.pool.labels, _sets(loaded)
    texts = first_texts(loaded) if cell.grouped or _is_paired(loaded.pool) else {}

    def generator(client: int, purpose: str) -> np.random.Generator:
        return numpy_generator(cell.seed if cell.data_seed is None else cell.data_seed, 0, client, purpose)

    def keep_back(parts: Parts, share: float, purpose: str, option: str) -> tuple[Parts, Parts]:
        """The training texts and the held-out texts."""
        if cell.grouped:
            return split_by_group(parts, texts[POOL], labels, share, generator(SERVER, purpose), stratify, option)
        sides = [
            split_train_test(labels[part], share, generator(client, purpose), stratify, option, client, splits, *remedy)
            for client, part in enumerate(parts)
        ]
        both = list(zip(parts, sides, strict=True))
        return [part[rest] for part, (rest, _) in both], [part[kept] for part, (_, kept) in both]

    partitioner = from_description(cell.partition)
    remedy = ["--set partition.min_size={}"] if hasattr(partitioner, "min_size") else []  # for clients that are small
    validation_share = _validation_share(cell)
    splits = [*filter(None, (cell.test_share, validation_share))]
    partition = partitioner(labels, cell.clients, generator(SERVER, "partition"))
    train: Parts = partition.indices
    scored: dict[str, tuple[str, Parts]] = {}  # evaluation -> its set, and each client's texts in it
    if cell.test_share:
        train, kept = keep_back(train, cell.test_share, "split", "test_share")
        scored[TEST] = POOL, kept
    central = {name: name for name in sorted(loaded.central)}  # evaluation -> set
    if cell.holdout == "validation":
        central = {TEST: VALIDATION} if VALIDATION in central else {}
        if not central:
            option = "test_share" if cell.test_share else "the validation share"
            train, kept = keep_back(train, validation_share, "validation", option)
            scored[TEST] = POOL, kept
    elif validation_share:
        train, kept = keep_back(train, validation_share, "validation", "validation_share")
        scored[VALIDATION] = POOL, kept
    for name in sorted(loaded.held_out) if cell.holdout == "test" else ():
        parts = partitioner(sets[name].labels, cell.clients, generator(SERVER, f"partition-{name}")).indices
        scored[name] = name, parts
    if cell.independent and cell.holdout == TEST and cell.test_share:
        kept = scored[TEST][1]
        dealt = _dealt_evenly(np.concatenate(kept), labels, len(kept), generator(SERVER, INDEPENDENT))
        scored[INDEPENDENT] = POOL, dealt
    evaluations = {name: examples[source].subsets(parts) for name, (source, parts) in scored.items()}
    common = {name: (source, _central_part(len(sets[source]), cell.central_share)) for name, source in central.items()}
    whole = {name: examples[f"central {source}"].subset(part) for name, (source, part) in common.items()}
    clients = [
        Client(number, part, {name: parts[number] for name, parts in evaluations.items()} | whole)
        for number, part in enumerate(examples[POOL].subsets(train))
    ]
    indices = {name: (source, np.concatenate(parts)) for name, (source, parts) in scored.items()} | common
    shares = {"train": (POOL, train), **scored}
    shares |= {name: (f"central {source}", [part]) for name, (source, part) in common.items()}
    report = replace(
        partition.report,
        overlap=_overlap(loaded, texts, np.concatenate(train), indices),
        cut={name: counts for name, share in shares.items() if any(counts := _cut_texts(examples, *share))},
    )
    return clients, report


def _validation_share(cell: RunConfig) -> float:
    """The share of a client's training subset that is held out, for tuning or to choose a round."""
    if cell.holdout == "validation":
        return min(cell.test_share, VALIDATION_SHARE) or VALIDATION_SHARE
    return cell.validation_share


def _dealt_evenly(test: np.ndarray, labels: np.ndarray, clients: int, rng: np.random.Generator) -> Parts:
    """Random parts of the test examples, one per client, disjoint, each with as many of one label as of any other."""
    by_label = [rng.permutation(test[labels[test] == label]) for label in np.unique(labels)]
    each = min(map(len, by_label)) // clients
    if not each:
        raise UserError(
            f"independent: expected at least {clients} test examples of every label, one per client, found "
            f"{min(map(len, by_label))} of the rarest one; use fewer clients or more examples"
        )
    return [np.sort(np.concatenate([of[each * k : each * (k + 1)] for of in by_label])) for k in range(clients)]


def _cut_texts(examples: Mapping[str, Encoded], source: str, parts: Parts) -> tuple[int, ...]:
    """The number of texts in each part with more tokens than the model reads."""
    cut = examples[source].cut
    return () if cut is None else tuple(int(cut[part].sum()) for part in parts)


def _central_part(size: int, share: float) -> np.ndarray:
    """Indices of a central set's scored examples, int64 ascending; at least one, and the same for every cell."""
    if share == 1:
        return np.arange(size)
    drawn = numpy_generator(0, 0, SERVER, "central part").permutation(size)
    return np.sort(drawn[: max(1, round(share * size))])


def _overlap(
    loaded: TaskData, texts: Mapping[str, np.ndarray], trained: np.ndarray, scored: Mapping[str, tuple[str, np.ndarray]]
) -> dict[str, Overlap]:
    """Evaluation of pairs -> the share with the first text in training, if it is not 0.

    texts: from `first_texts`. scored: evaluation -> its set, and the indices of its examples.
    """
    if not _is_paired(loaded.pool):
        return {}
    sets = _sets(loaded)
    training = texts[POOL][trained], loaded.pool.labels[trained]
    overlaps = {
        name: measure_overlap(*training, texts[source][indices], sets[source].labels[indices])
        for name, (source, indices) in scored.items()
    }
    return {name: overlap for name, overlap in overlaps.items() if overlap.shared}


def _check(cell: RunConfig, loaded: TaskData) -> None:
    """UserError if the held-out shares do not fit the task's central sets."""
    if cell.validation_share and VALIDATION in loaded.central:
        raise UserError(
            f"validation_share: expected 0, as the task {cell.task} has a central validation set, "
            f"found {cell.validation_share}"
        )
    if (cell.test_share == 0) != (TEST in loaded.central):
        expected = "0, as the test set is central" if TEST in loaded.central else "a share in (0, 1)"
        raise UserError(f"test_share: expected {expected} for the task {cell.task}, found {cell.test_share}")


def _is_paired(examples: TextExamples) -> bool:
    """Whether examples are text pairs, so that several may share their first text."""
    return examples.tags is None and len(examples.texts) > 0 and len(examples.texts[0]) > 1


def first_texts(loaded: TaskData) -> dict[str, np.ndarray]:
    """Set -> a number per example, equal if the first text (without pairs, the whole text) is equal; int64 [n]."""
    paired = _is_paired(loaded.pool)
    numbers: dict[tuple[str, ...], int] = {}
    return {
        name: np.array(
            [numbers.setdefault(texts[:1] if paired else texts, len(numbers)) for texts in examples.texts],
            dtype=np.int64,
        )
        for name, examples in _sets(loaded).items()
    }


def _sets(loaded: TaskData) -> dict[str, TextExamples]:
    """All examples of a task, by set name."""
    return {POOL: loaded.pool, **loaded.held_out, **loaded.central}
