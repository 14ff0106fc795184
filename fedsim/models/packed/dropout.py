"""Dropout by bit masks: a fraction of the usual cost on a CPU, where drawing the mask takes most of it.

PyTorch draws a number a value from one stream (a third of a small encoder's training time, on one core). Here one
64-bit number gives four values their chance, and a mask is applied to values' bits, as integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

STEPS = 1 << 16
_INTEGERS = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float16: torch.int16}


@dataclass(frozen=True)
class Mask:
    """Which values are kept. kept: 1 or 0, integers as wide as the values; scale: 1 / P(kept).

    A value's bits times 1 are the value, times 0 they are 0.0.
    """

    kept: Tensor
    scale: float

    def apply_(self, values: Tensor) -> Tensor:
        """Drop values in place, without the scale."""
        values.view(self.kept.dtype).mul_(self.kept.view(values.shape))
        return values

    def of(self, values: Tensor) -> Tensor:
        """The values with some dropped, without the scale."""
        return values.view(self.kept.dtype).mul(self.kept.view(values.shape)).view(values.dtype)

    def factor(self, like: Tensor) -> Tensor:
        """What values of that shape and type are multiplied by: 0 or the scale."""
        return self.kept.view(like.shape).to(like.dtype).mul_(self.scale)


class Masks:
    """The masks of one forward pass, drawn in order from a generator that PyTorch's seeds."""

    def __init__(self, dtype: torch.dtype) -> None:
        """dtype: of the values that are dropped."""
        self._integer = _INTEGERS[dtype]
        self._generator = np.random.SFC64(int(torch.randint(1 << 62, ())))

    def draw(self, size: int, probability: float) -> Mask | None:
        """A mask of so many values, each dropped with the probability to within 2**-17; None where none is."""
        kept = STEPS - round(STEPS * probability)
        if kept == STEPS:
            return None
        drawn = torch.from_numpy(self._generator.random_raw(-(-size // 4)).view(np.int16)[:size])
        return Mask(drawn.lt_(kept - STEPS // 2).to(self._integer), STEPS / kept)
