"""How many operations training needs, and how many the machine can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import torch

from fedsim.precision import product_seconds

SIDE = 2048  # of the square matrices whose product is the machine's rate


def matrix_rate(dtype: torch.dtype, repeats: int = 5, device: str = "cpu") -> float:
    """Floating-point operations a second of a product of large square matrices: the median of some."""
    return 2 * SIDE**3 / median(product_seconds(dtype, SIDE, 1, device) for _ in range(repeats))


@dataclass(frozen=True)
class Encoder:
    """Sizes that decide how many operations a text takes: layers, hidden width, width of the wide layer."""

    layers: int
    hidden: int
    wide: int

    def forward_flops(self, lengths: Sequence[int], unread: bool = False) -> int:
        """Of the products of real tokens: no padding, embeddings, head, norms.

        lengths: tokens of each text. unread: of the last layer also what nobody reads where a head reads [CLS] alone.
        """
        D, F = self.hidden, self.wide
        total = 0
        for tokens in lengths:
            whole = 2 * tokens * (4 * D * D + 2 * D * F) + 4 * tokens * tokens * D
            # keys and values of all tokens; query, output and wide layers of one
            first = 2 * tokens * 2 * D * D + 2 * (2 * D * D + 2 * D * F) + 4 * tokens * D
            total += (self.layers - 1) * whole + (whole if unread else first)
        return total

    def training_flops(self, lengths: Sequence[int], unread: bool = False) -> int:
        """Forward, and the two backward products of each: less the gradient of frozen embeddings."""
        queries = sum(2 * tokens * 3 * self.hidden**2 for tokens in lengths)
        return 3 * self.forward_flops(lengths, unread) - queries
