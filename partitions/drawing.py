"""Drawing examples without replacement. Suffixes of names: K clients (or other takers), L labels."""

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
