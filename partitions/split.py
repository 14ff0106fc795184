"""A client's own training and test part."""

import numpy as np

from partitions.checks import PartitionError, require_classes, require_labels, require_test_share
from partitions.drawing import deal, deal_by_label, largest_remainder


def split_train_test(
    labels: np.ndarray, test_share: float, rng: np.random.Generator, stratify: bool, option: str = "test_share"
) -> tuple[np.ndarray, np.ndarray]:
    """Draw round(test_share * n) of n examples for testing; the others are for training.

    stratify: each label's test count is within one example of test_share times its count (classes only).
    option: what messages call the share.
    Returns positions in `labels` (train, test), int64, each ascending.
    Raises PartitionError where a part would be empty. Source: FedSplitBERT §IV-B (80/20 on each client).
    """
    labels = require_classes(labels, "a stratified split") if stratify else require_labels(labels)
    test_share = require_test_share(test_share, option)
    n_test = round(test_share * labels.size)
    n_train = labels.size - n_test
    if n_test < 1 or n_train < 1:
        raise PartitionError(
            f"{labels.size} examples at {option} {test_share:g} give {n_train} for training and {n_test} "
            f"for testing, both must be at least 1: give this client more examples or change {option}"
        )
    if stratify:
        label_ids, sizes = np.unique(labels, return_counts=True)
        tested = largest_remainder(test_share * sizes, n_test)
        train, test = deal_by_label(labels, label_ids, np.stack([sizes - tested, tested]), rng)
    else:
        train, test = deal(np.arange(labels.size), np.array([n_train, n_test]), rng)
    return np.sort(train), np.sort(test)
