"""Round fractional numbers of examples, and sample examples without replacement.

Name suffixes: K clients (or other takers), L labels.
"""

import numpy as np


def deal(pool: np.ndarray, counts_K: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Shuffle `pool` and give the first counts_K[0] to taker 0, the next to taker 1, …; the rest is unused."""
    return np.split(rng.permutation(pool), np.cumsum(counts_K))[:-1]


def deal_by_label(
    labels: np.ndarray, label_ids: np.ndarray, counts_KL: np.ndarray, rng: np.random.Generator
) -> list[np.ndarray]:
    """Positions per taker: counts_KL[k, l] random positions with label label_ids[l]."""
    dealt = [
        deal(np.flatnonzero(labels == label), counts_K, rng)
        for label, counts_K in zip(label_ids, counts_KL.T, strict=True)
    ]
    return [np.concatenate(pieces) for pieces in zip(*dealt, strict=True)]


def largest_remainder(quotas: np.ndarray, total: int) -> np.ndarray:
    """Round `quotas` to integers with sum `total`, each less than one away from its quota.

    Every quota is rounded down, then the largest remainders get one more; ties go to the first. quotas: non-negative,
    with a sum within 0.5 of `total`. Source: Hamilton's method.
    """
    # Rounded, because noise in the last bits could lose an example (0.29 * 100 < 29) or decide a tie (2.4, 14.4).
    quotas = np.round(quotas, 9)
    counts: np.ndarray = np.floor(quotas).astype(np.int64)
    by_remainder = np.argsort(np.round(counts - quotas, 9), kind="stable")
    counts[by_remainder[: total - int(counts.sum())]] += 1
    return counts
