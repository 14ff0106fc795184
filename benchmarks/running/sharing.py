"""Who holds which examples: a task's data shared out among clients, and what each of them keeps back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.encoders.encoding import Encoded
from benchmarks.errors import UserError
from benchmarks.run_config import VALIDATION, RunConfig
from benchmarks.tasks import Examples, Task, TaskData
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
VALIDATION_SHARE = 0.2  # of a client's training subset, at most, to be scored on instead of its test
Parts = Sequence[np.ndarray]  # each client's texts, by their indices


def share_out(
    cell: RunConfig, of: Task, loaded: TaskData, examples: Mapping[str, Encoded]
) -> tuple[list[Client], PartitionReport]:
    """The clients of a task: the pool shared out and split on each client; held-out sets shared out in the same way.

    examples: the same ones in the form in which clients hold them: "pool", held-out sets, and "central <name>".
    Central sets are no client's own: every client is scored on the whole of them, or on one part, cell.central_share.
    Where one of them is the test set, clients keep nothing back (test_share 0). With cell.holdout "validation" a client
    is scored on a fifth of its training subset at most, and never sees a test set. Else a share of that subset,
    cell.validation_share, is scored beside the test set, to choose a round by. Where the validation set is central, it
    stands for both shares.
    Where cell.grouped, what is kept back is drawn for all clients at once, in whole groups of examples with the same
    first text, so that none of these texts is both trained on and kept back, by whomever. The report says how much of
    each evaluation has its first text in training.
    UserError or PartitionError, which name the option, where the cell asks for what the data cannot give.
    """
    _check(cell, loaded)
    stratify = of.labels is not None
    texts = first_texts(loaded) if cell.grouped or of_pairs(loaded.pool) else {}
    labels = loaded.pool.labels

    def generator(client: int, purpose: str) -> np.random.Generator:
        return numpy_generator(cell.seed if cell.data_seed is None else cell.data_seed, 0, client, purpose)

    def held_back(parts: Parts, share: float, purpose: str, option: str) -> tuple[Parts, Parts]:
        """The texts that are left, and those that clients are scored on."""
        if cell.grouped:
            return split_by_group(parts, texts[POOL], labels, share, generator(SERVER, purpose), stratify, option)
        sides = [
            split_train_test(labels[part], share, generator(client, purpose), stratify, option)
            for client, part in enumerate(parts)
        ]
        both = list(zip(parts, sides, strict=True))
        return [part[rest] for part, (rest, _) in both], [part[held] for part, (_, held) in both]

    partitioner = from_description(cell.partition)
    partition = partitioner(labels, cell.clients, generator(SERVER, "partition"))
    train: Parts = partition.indices
    own: dict[str, Parts] = {}
    if cell.test_share:
        train, own[TEST] = held_back(train, cell.test_share, "split", "test_share")
    central = {name: name for name in sorted(loaded.central)}  # evaluation -> set
    if cell.holdout == "validation":
        central = {TEST: VALIDATION} if VALIDATION in central else {}
        if not central:
            option = "test_share" if cell.test_share else "the validation share"
            share = min(cell.test_share, VALIDATION_SHARE) or VALIDATION_SHARE
            train, own[TEST] = held_back(train, share, "validation", option)
    elif cell.validation_share:
        train, own[VALIDATION] = held_back(train, cell.validation_share, "validation", "validation_share")
    sets = loaded.held_out if cell.holdout == "test" else {}
    held_out = {
        name: partitioner(sets[name].labels, cell.clients, generator(SERVER, f"partition-{name}")).indices
        for name in sorted(sets)
    }
    scored_of = {source: _part_of(len(loaded.central[source]), cell.central_share) for source in central.values()}
    whole = {name: examples[f"central {source}"].subset(scored_of[source]) for name, source in central.items()}
    trained = examples[POOL].subsets(train)
    evaluations = {name: examples[POOL].subsets(parts) for name, parts in own.items()}
    evaluations |= {name: examples[name].subsets(parts) for name, parts in held_out.items()}
    clients = [
        Client(number, part, {name: parts[number] for name, parts in evaluations.items()} | whole)
        for number, part in enumerate(trained)
    ]
    scored = {name: (POOL, np.concatenate(parts)) for name, parts in own.items()}
    scored |= {name: (name, np.concatenate(parts)) for name, parts in held_out.items()}
    scored |= {name: (source, scored_of[source]) for name, source in central.items()}
    return clients, replace(partition.report, overlap=_overlap(loaded, texts, np.concatenate(train), scored))


def _part_of(size: int, share: float) -> np.ndarray:
    """Which of a central set's examples are scored, int64 ascending: the same for every cell, at least one."""
    if share == 1:
        return np.arange(size)
    drawn = numpy_generator(0, 0, SERVER, "central part").permutation(size)
    return np.sort(drawn[: max(1, round(share * size))])


def _overlap(
    loaded: TaskData, texts: Mapping[str, np.ndarray], trained: np.ndarray, scored: Mapping[str, tuple[str, np.ndarray]]
) -> dict[str, Overlap]:
    """Evaluation -> how much of it has its first text in training, where there is some; of pairs alone.

    texts: as `first_texts` numbers them. scored: evaluation -> set of the data, and which of its examples.
    """
    if not of_pairs(loaded.pool):
        return {}
    sets = _sets(loaded)
    known = texts[POOL][trained], loaded.pool.labels[trained]
    found = {
        name: measure_overlap(*known, texts[source][indices], sets[source].labels[indices])
        for name, (source, indices) in scored.items()
    }
    return {name: overlap for name, overlap in found.items() if overlap.shared}


def _check(cell: RunConfig, loaded: TaskData) -> None:
    """UserError where the shares that clients keep back do not suit the task's central sets."""
    if cell.validation_share and VALIDATION in loaded.central:
        raise UserError(
            f"validation_share: expected 0, as the validation set is central for the task {cell.task}, "
            f"found {cell.validation_share}"
        )
    if (cell.test_share == 0) != (TEST in loaded.central):
        expected = "0, as the test set is central" if TEST in loaded.central else "a share in (0, 1)"
        raise UserError(f"test_share: expected {expected} for the task {cell.task}, found {cell.test_share}")


def of_pairs(examples: Examples) -> bool:
    """Whether examples are two texts each, the first of which may stand in several of them."""
    return examples.tags is None and len(examples.texts) > 0 and len(examples.texts[0]) > 1


def first_texts(loaded: TaskData) -> dict[str, np.ndarray]:
    """Set of a task's data -> a number for each example's first text, int64 [n]: one for one text, in every set.

    Where examples are no pairs it is the whole text.
    """
    paired = of_pairs(loaded.pool)
    numbers: dict[tuple[str, ...], int] = {}
    return {
        name: np.array(
            [numbers.setdefault(texts[:1] if paired else texts, len(numbers)) for texts in examples.texts],
            dtype=np.int64,
        )
        for name, examples in _sets(loaded).items()
    }


def _sets(loaded: TaskData) -> dict[str, Examples]:
    """All examples of a task, by their set's name."""
    return {POOL: loaded.pool, **loaded.held_out, **loaded.central}
