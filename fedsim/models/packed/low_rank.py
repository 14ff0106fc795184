"""LoRA's low-rank term in a linear layer, for packed layers."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from fedsim.models.packed.parts import Cast


def base_of(linear: Any) -> Any:
    """The linear layer itself, or the layer that LoRA wraps."""
    return getattr(linear, "base_layer", linear)


def is_computed(linear: Any) -> bool:
    """Whether packed layers support a linear layer: a plain one, or one with only LoRA."""
    base = base_of(linear)
    return type(base) is nn.Linear and (linear is base or hasattr(linear, "lora_A"))


def factors_of(linear: Any) -> tuple[nn.Parameter, ...]:
    """LoRA's A and B in a linear layer, as stored by peft; empty without LoRA."""
    if not hasattr(linear, "lora_A"):
        return ()
    return tuple(factor.weight for factors in (linear.lora_A, linear.lora_B) for factor in factors.values())


class LowRank:
    """The low-rank term s B A (Hu et al. 2022) of one linear layer among several with joint outputs."""

    def __init__(self, linear: Any, span: slice) -> None:
        """linear: a layer with peft's LoRA. span: its columns in the joint outputs."""
        self.parameters = factors_of(linear)
        self.span, self._scale = span, next(iter(linear.scaling.values()))
        self._a, self._b = (Cast(factor) for factor in self.parameters)

    def moved(self, start: int) -> LowRank:
        """A copy for joint outputs that begin at column `start`."""
        made = copy.copy(self)
        made.span = slice(self.span.start - start, self.span.stop - start)
        return made

    def refresh(self, dtype: torch.dtype) -> None:
        self._a.refresh(dtype)
        self._b.refresh(dtype)

    def add_(self, outputs: Tensor, values: Tensor) -> None:
        """Add the term to outputs."""
        a, b = self._a.value(values.dtype), self._b.value(values.dtype)
        outputs[:, self.span].addmm_(torch.mm(values, a.t()), b.t(), alpha=self._scale)

    def add_back_(self, gradient: Tensor, grad: Tensor) -> None:
        """Add the term's part to the input's gradient."""
        a, b = self._a.value(grad.dtype), self._b.value(grad.dtype)
        gradient.addmm_(torch.mm(grad[:, self.span], b), a, alpha=self._scale)

    def gradients(self, grad: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of A and B, in fp32."""
        a, b, columns = self._a.value(grad.dtype), self._b.value(grad.dtype), grad[:, self.span]
        of_a = torch.mm(torch.mm(columns, b).t(), values)
        of_b = torch.mm(torch.mm(values, a.t()).t(), columns).t()
        return tuple(each.mul(self._scale).float().contiguous() for each in (of_a, of_b))  # type: ignore[return-value]
