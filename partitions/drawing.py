"""Whole numbers of examples from fractional ones, and drawing examples without replacement.

Suffixes of names: K clients (or other takers), L labels.
"""

import numpy as np


def deal(pool: np.ndarray, counts_K: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Shuffle `pool` and hand the first counts_K[0] to taker 0, the next to taker 1, …; the rest stays."""
    return np.split(rng.permutation(pool), np.cumsum(counts_K))[:-1]


def deal_by_label(
    labels: np.ndarray, label_ids: np.ndarray, counts_KL: np.ndarray, rng: np.random.Generator
) -> list[np.ndarray]:
    """Positions for each taker: counts_KL[k, l] random ones whose label is label_ids[l]."""
    dealt = [
        deal(np.flatnonzero(labels == label), counts_K, rng)
        for label, counts_K in zip(label_ids, counts_KL.T, strict=True)
    ]
    return [np.concatenate(pieces) for pieces in zip(*dealt, strict=True)]


def largest_remainder(quotas: np.ndarray, total: int) -> np.ndarray:
    """Round `quotas` to integers that sum to `total`, each less than one away from its quota.

    Every quota is rounded down, then the largest remainders get one more; among equals the first.
    quotas: non-negative, summing to within half an example of `total`. Source: Hamilton's method.
    """
    # Rounded, or noise in the last bits would lose an example (0.29 * 100 < 29) or decide a tie (2.4, 14.4).
    quotas = np.round(quotas, 9)
    counts: np.ndarray = np.floor(quotas).astype(np.int64)
    by_remainder = np.argsort(np.round(counts - quotas, 9), kind="stable")
    counts[by_remainder[: total - int(counts.sum())]] += 1
    return counts


def share_of(total: int, share: float) -> int:
    """The whole number that is nearest to `share` of `total`; of two as near, the even one."""
    return round(total * share)


def equal_sizes(total: int, n_parts: int) -> np.ndarray:
    """Sizes of `n_parts` parts of `total`, differing by at most one, larger ones first."""
    return total // n_parts + (np.arange(n_parts) < total % n_parts).astype(np.int64)
