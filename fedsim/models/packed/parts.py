"""Parts of a packed BERT layer: cast weights, dropout, attention, and the norm after each half.

Attention and norm implement their gradients, so that values are read and written as rarely as possible. Dropout is
cheaper than PyTorch's, which samples one number per value from one stream (a third of a small encoder's training time
on one core). Here one 64-bit number decides four values, and masks multiply the values' bits as integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fedsim.models.packed.packing import Packing

# Shape suffixes: T tokens in all texts; R tokens with outputs, T or B; B texts; S tokens in the longest text; Q tokens
# per text with outputs, S or 1; H attention heads; E head width; D hidden width.

aten = torch.ops.aten
STEPS = 1 << 16
_INTEGERS = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float16: torch.int16}


@dataclass(frozen=True)
class Mask:
    """A dropout mask. kept: 1 or 0, integers as wide as the values; scale: 1 / P(kept).

    Multiplying a value's bits by 1 keeps the value, multiplying by 0 gives 0.0.
    """

    kept: Tensor
    scale: float

    def apply_(self, values: Tensor) -> Tensor:
        """Drop values in place, without the scale."""
        values.view(self.kept.dtype).mul_(self.kept.view(values.shape))
        return values

    def of(self, values: Tensor) -> Tensor:
        """A copy of the values after dropout, without the scale."""
        return values.view(self.kept.dtype).mul(self.kept.view(values.shape)).view(values.dtype)

    def factor(self, like: Tensor) -> Tensor:
        """The mask as factors for such values: 0 or the scale."""
        return self.kept.view(like.shape).to(like.dtype).mul_(self.scale)


class Masks:
    """The masks for one forward pass, sampled in order from a generator that PyTorch's seeds."""

    def __init__(self, dtype: torch.dtype) -> None:
        """dtype: the values' type."""
        self._integer = _INTEGERS[dtype]
        self._generator = np.random.SFC64(int(torch.randint(1 << 62, ())))

    def draw(self, size: int, probability: float) -> Mask | None:
        """A mask for `size` values, each dropped with the probability to within 2**-17; None if it drops no value."""
        kept = STEPS - round(STEPS * probability)
        if kept == STEPS:
            return None
        drawn = torch.from_numpy(self._generator.random_raw(-(-size // 4)).view(np.int16)[:size])
        return Mask(drawn.lt_(kept - STEPS // 2).to(self._integer), STEPS / kept)


class Cast:
    """Parameters, stacked by rows, in another element type: cast once per step instead of on every call."""

    def __init__(self, *parameters: nn.Parameter) -> None:
        self._parameters = parameters
        self._value: Tensor | None = None
        self._versions: list[tuple[int, int]] = []

    def value(self, dtype: torch.dtype) -> Tensor:
        """The parameters in this element type, as of the last `refresh`."""
        if self._value is None or self._value.dtype != dtype:
            self.refresh(dtype)
        assert self._value is not None
        return self._value

    def refresh(self, dtype: torch.dtype) -> None:
        """Update to the parameters' current values.

        A change in place raises a tensor's version, and other memory has another address. A fused optimiser step does
        not raise the version, so parameters that require gradients are always cast.
        """
        if len(self._parameters) == 1 and self._parameters[0].dtype == dtype:
            self._value = self._parameters[0].detach()  # nothing to cast
            return
        versions = [(parameter._version, parameter.data_ptr()) for parameter in self._parameters]
        fits = self._value is not None and self._value.dtype == dtype
        if fits and versions == self._versions and not any(parameter.requires_grad for parameter in self._parameters):
            return
        rows = [len(parameter) for parameter in self._parameters]
        with torch.inference_mode(False), torch.no_grad():  # training may later use what scoring has cast
            if self._value is None or not fits:
                self._value = torch.empty((sum(rows), *self._parameters[0].shape[1:]), dtype=dtype)
            for part, parameter in zip(self._value.split(rows), self._parameters, strict=True):
                part.copy_(parameter.detach())
        self._versions = versions


class NormKept(NamedTuple):
    """The values that a norm's gradient needs."""

    sum_RD: Tensor
    mean: Tensor
    rstd: Tensor
    mask: Mask | None


@dataclass(frozen=True)
class Norm:
    """Dropout, residual, LayerNorm."""

    module: nn.LayerNorm
    dropout: nn.Dropout

    def forward(self, new_RD: Tensor, residual_RD: Tensor, masks: Masks | None) -> tuple[Tensor, NormKept]:
        """LayerNorm(dropout(new) + residual); `new` is overwritten."""
        mask = masks.draw(new_RD.numel(), self.dropout.p) if masks else None
        if mask is None:
            sum_RD = new_RD.add_(residual_RD)
        else:
            sum_RD = torch.add(residual_RD, mask.apply_(new_RD), alpha=mask.scale)
        module = self.module
        weight, bias = module.weight.detach(), module.bias.detach()
        normed_RD, mean, rstd = torch.native_layer_norm(sum_RD, module.normalized_shape, weight, bias, module.eps)
        return normed_RD, NormKept(sum_RD, mean, rstd, mask)

    def backward(
        self, grad_RD: Tensor, kept: NormKept, trained: bool
    ) -> tuple[Tensor, Tensor, tuple[Tensor | None, Tensor | None]]:
        """Gradients of `residual`, of `new`, and of LayerNorm's weight and bias if they are trained."""
        module = self.module
        weight, bias = module.weight.detach(), module.bias.detach()
        shape, wanted = module.normalized_shape, [True, trained, trained]
        residual_RD, of_weight, of_bias = aten.native_layer_norm_backward(
            grad_RD, kept.sum_RD, shape, kept.mean, kept.rstd, weight, bias, wanted
        )
        new_RD = residual_RD if kept.mask is None else kept.mask.of(residual_RD).mul_(kept.mask.scale)
        return residual_RD, new_RD, (of_weight, of_bias)


class AttentionKept(NamedTuple):
    """The values that attention's gradient needs."""

    query_BHQE: Tensor  # B and H are one dimension
    key_BHSE: Tensor
    value_BHSE: Tensor
    weights_BHQS: Tensor
    read_BHQS: Tensor  # weights after dropout
    mask: Mask | None


@dataclass(frozen=True)
class Attention:
    """Scaled dot-product attention within each text (Vaswani et al. 2017, equation 1).

    Only here tokens are padded: products per text would be small, and a batch's texts have similar lengths.
    """

    heads: int
    dropout: nn.Dropout

    def forward(
        self, query_RD: Tensor | None, others_T: Tensor, packing: Packing, masks: Masks | None
    ) -> tuple[Tensor, AttentionKept]:
        """Contexts [R, D].

        others_T: keys and values for all tokens, [T, 2 D], with query_RD for each text's first token; or queries, keys
        and values for all tokens, [T, 3 D], without query_RD.
        """
        texts = len(packing.lengths)
        padded = packing.padded(others_T)
        if query_RD is None:
            query, key, value = self._by_head(padded, 3, texts)
        else:
            query, (key, value) = self._by_head(query_RD, 1, texts)[0], self._by_head(padded, 2, texts)
        scale = query.shape[-1] ** -0.5
        bias = packing.bias(query)
        if bias is None:
            scores = torch.bmm(query, key.transpose(1, 2)).mul_(scale)
        else:
            scores = torch.baddbmm(bias, query, key.transpose(1, 2), alpha=scale)
        # Sums in fp32; a softmax in half precision takes twice as long unless the length is a multiple of 32.
        weights = torch.softmax(scores, -1, dtype=torch.float32).to(scores.dtype)
        mask = masks.draw(weights.numel(), self.dropout.p) if masks else None
        read = weights if mask is None else mask.of(weights)
        context = torch.bmm(read, value)
        if mask is not None:
            context.mul_(mask.scale)
        rows = self._by_token(context[None], texts)
        return rows if query_RD is not None else packing.gathered(rows), AttentionKept(
            query, key, value, weights, read, mask
        )

    def backward(
        self, grad_RD: Tensor, kept: AttentionKept, packing: Packing, whole: bool
    ) -> tuple[Tensor | None, Tensor]:
        """Gradients of `query_RD` and `others_T`, in the same layout. whole: there was no query_RD."""
        query, key, value, weights, read, mask = kept
        texts = len(packing.lengths)
        grad = self._by_head(packing.spread(grad_RD) if whole else grad_RD, 1, texts)[0]
        if mask is not None:
            grad.mul_(mask.scale)
        of_weights = torch.bmm(grad, value.transpose(1, 2))
        if mask is not None:
            mask.apply_(of_weights)
        of_scores = aten._softmax_backward_data(of_weights, weights, -1, weights.dtype)
        of_scores.mul_(query.shape[-1] ** -0.5)
        grads = key.new_empty((3 if whole else 2, *key.shape))
        torch.bmm(read.transpose(1, 2), grad, out=grads[-1])
        torch.bmm(of_scores.transpose(1, 2), query, out=grads[-2])
        if whole:
            torch.bmm(of_scores, key, out=grads[0])
        of_query = None if whole else self._by_token(torch.bmm(of_scores, key)[None], texts)
        return of_query, packing.gathered(self._by_token(grads, texts))

    def _by_head(self, rows: Tensor, parts: int, texts: int) -> Tensor:
        """[parts, B * H, Q, E] from rows [B * Q, parts * D]."""
        split = rows.view(texts, -1, parts, self.heads, rows.shape[1] // (parts * self.heads))
        return split.permute(2, 0, 3, 1, 4).contiguous().flatten(1, 2)

    def _by_token(self, heads_BHQE: Tensor, texts: int) -> Tensor:
        """[B * Q, parts * D] from [parts, B * H, Q, E]."""
        split = heads_BHQE.view(len(heads_BHQE), texts, self.heads, *heads_BHQE.shape[2:])
        return split.permute(1, 3, 0, 2, 4).reshape(texts * heads_BHQE.shape[2], -1)
