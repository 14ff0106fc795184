"""Training and test splits by example or by group, such as all examples with one first text, and their overlap.

Name suffixes: G groups, S strata.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from partitions.checks import PartitionError, require_classes, require_labels, require_share
from partitions.drawing import deal, deal_by_label, largest_remainder


def split_train_test(
    labels: np.ndarray,
    test_share: float,
    rng: np.random.Generator,
    stratify: bool,
    option: str = "test_share",
    client: int | None = None,
    every: Sequence[float] = (),
    remedy: str = "a partition with a min_size of {}, such as dirichlet",
) -> tuple[np.ndarray, np.ndarray]:
    """Sample round(test_share * n) of n examples for testing; the others are for training.

    stratify: each label's test count is within one example of test_share times its count (classes only). option,
    client, every, remedy: for messages: the share's name, the examples' owner, the shares of all splits if this is one
    of several, and how each client gets at least {} examples.
    Returns positions in `labels` (train, test), int64, each ascending.
    Raises PartitionError if a part would be empty. Source: FedSplitBERT §IV-B (80/20 on each client).
    """
    labels = require_classes(labels, "stratify", "leave it out") if stratify else require_labels(labels)
    test_share = require_share(test_share, option, whole=False)
    n_test = round(test_share * labels.size)
    n_train = labels.size - n_test
    if n_test < 1 or n_train < 1:
        place = f"{option} {test_share:g}" if client is None else f"client {client}, {option} {test_share:g}"
        least, remedy = _least_size(test_share), remedy.format(_least_size(*every or [test_share]))
        raise PartitionError(
            f"{place}: expected at least {least} examples, to train on one and hold out another, found {labels.size}; "
            f"use fewer clients, {remedy}, or another {option}"
        )
    if stratify:
        label_ids, sizes = np.unique(labels, return_counts=True)
        tested = largest_remainder(test_share * sizes, n_test)
        train, test = deal_by_label(labels, label_ids, np.stack([sizes - tested, tested]), rng)
    else:
        train, test = deal(np.arange(labels.size), np.array([n_train, n_test]), rng)
    return np.sort(train), np.sort(test)


def _least_size(*shares: float) -> int:
    """The smallest number of examples that leaves one on each side of every split, one split after the other."""
    least = 1
    for share in reversed(shares):
        sizes = count(int(max(0.5 / share, (least - 0.5) / (1 - share))))
        least = next(size for size in sizes if 1 <= round(share * size) <= size - least)
    return least


def split_by_group(
    parts: Sequence[np.ndarray],
    groups: np.ndarray,
    labels: np.ndarray,
    test_share: float,
    rng: np.random.Generator,
    stratify: bool,
    option: str = "test_share",
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Split all clients' examples by group, so that no group is in both training and test, even across clients.

    Groups are visited twice in one random order. A group changes sides if that brings the test counts nearer to
    test_share of all, in least squares. With single-example groups the counts are exact to half an example, else as
    near as whole groups allow. A group may still be split between clients, as label distributions may require.

    Args:
        parts: Each client's positions in the dataset, disjoint.
        groups: The whole dataset's groups, int64 [n].
        labels: The whole dataset's labels, [n].
        test_share: The share of the test examples, in (0, 1).
        rng: For the order of the groups.
        stratify: Whether test counts are per client and label, or per client.
        option: The share's name in messages.

    Returns:
        Each client's training and test positions, each ascending.

    Raises:
        PartitionError: A client would have an empty side.
    """
    test_share = require_share(test_share, option, whole=False)
    held = np.concatenate(parts)
    client_of = np.repeat(np.arange(len(parts)), [part.size for part in parts])
    strata = client_of
    if stratify:
        label_ids, codes = np.unique(labels[held], return_inverse=True)
        strata = client_of * label_ids.size + codes
    group_ids, group_of = np.unique(groups[held], return_inverse=True)
    counts_GS = np.zeros((group_ids.size, int(strata.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(counts_GS, (group_of, strata), 1)
    missing_S = test_share * counts_GS.sum(axis=0)
    aside_G = np.zeros(group_ids.size, dtype=bool)
    for group in np.tile(rng.permutation(group_ids.size), 2):
        moved_S = -counts_GS[group] if aside_G[group] else counts_GS[group]
        change = float((moved_S * (moved_S - 2 * missing_S)).sum())  # |missing - moved|² - |missing|²
        if round(change, 9) < 0:  # rounded, because noise in the last bits could decide a tie
            aside_G[group] = not aside_G[group]
            missing_S -= moved_S
    is_test = aside_G[group_of]
    train, test = ([np.sort(held[(client_of == k) & side]) for k in range(len(parts))] for side in (~is_test, is_test))
    for client, (rest, aside) in enumerate(zip(train, test, strict=True)):
        if not rest.size or not aside.size:
            raise PartitionError(
                f"client {client}, {option} {test_share:g}: expected whole groups of examples on both sides, found "
                f"{rest.size} for training and {aside.size} held out; use fewer clients, another {option}, or "
                "no groups"
            )
    return train, test


@dataclass(frozen=True)
class Overlap:
    """How many evaluation examples belong to a group that also occurs in training.

    Args:
        examples: All evaluation examples.
        shared: Those whose group occurs in training.
        opposite: The shared ones for which most of the group's training examples have another label; None for scores.
    """

    examples: int
    shared: int
    opposite: int | None = None


def measure_overlap(
    train_groups: np.ndarray, train_labels: np.ndarray, groups: np.ndarray, labels: np.ndarray
) -> Overlap:
    """The overlap of evaluation examples with training examples. Groups: int64 ids from 0; all [n]."""
    size = int(max(train_groups.max(initial=-1), groups.max(initial=-1))) + 1
    trained = np.bincount(train_groups, minlength=size)[groups]
    shared = int((trained > 0).sum())
    if labels.dtype.kind == "f":
        return Overlap(int(groups.size), shared)
    label_ids, codes = np.unique(np.concatenate([train_labels, labels]), return_inverse=True)
    train_codes, evaluation_codes = np.split(codes, [train_labels.size])
    alike = np.bincount(train_groups * label_ids.size + train_codes, minlength=size * label_ids.size)
    agreeing = alike[groups * label_ids.size + evaluation_codes]
    return Overlap(int(groups.size), shared, int((2 * agreeing < trained).sum()))
