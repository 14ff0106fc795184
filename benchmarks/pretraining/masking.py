"""Which tokens a batch hides, and what stands in their place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedsim.data import Batch

MASK_SHARE, RANDOM_SHARE = 0.8, 0.1  # of the hidden tokens; the rest stay as they are


@dataclass(frozen=True)
class Vocabulary:
    """What masking needs to know of a tokenizer."""

    mask_id: int
    special_ids: frozenset[int]
    size: int

    @property
    def ordinary_ids(self) -> np.ndarray:
        """Every token but the special ones, [V']."""
        return np.setdiff1d(np.arange(self.size), list(self.special_ids))


def hide(batch: Batch, share: float, vocabulary: Vocabulary, rng: np.random.Generator) -> tuple[Batch, Tensor, Tensor]:
    """The batch with a share of its ordinary tokens hidden (at least one), their positions [M] and themselves [M].

    Positions count through the flattened input_ids. Source: Devlin et al. 2019, section 3.1 and appendix A.1.
    """
    ids = batch["input_ids"].numpy().copy()
    flat = ids.reshape(-1)
    candidates = np.flatnonzero(~np.isin(flat, list(vocabulary.special_ids)))
    positions = np.sort(rng.choice(candidates, size=max(1, round(share * len(candidates))), replace=False))
    targets = flat[positions]
    fate = rng.random(len(positions))
    drawn = rng.choice(vocabulary.ordinary_ids, size=len(positions))
    flat[positions] = np.where(
        fate < MASK_SHARE, vocabulary.mask_id, np.where(fate < MASK_SHARE + RANDOM_SHARE, drawn, targets)
    )
    return {**batch, "input_ids": torch.from_numpy(ids)}, torch.from_numpy(positions), torch.from_numpy(targets)
