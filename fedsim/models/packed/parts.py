"""The two things a BERT layer does beside products with weights: attention, and ending each half with a norm.

Both come with their gradients, so that every value is read and written as few times as can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fedsim.models.packed.dropout import Mask, Masks
from fedsim.models.packed.packing import Packing

# Shape suffixes: T tokens of all texts; R tokens whose output is read, T or B; B texts; S tokens of the longest text;
# Q tokens of a text whose output is read, S or 1; H attention heads; E a head's width; D hidden width.

aten = torch.ops.aten


class NormKept(NamedTuple):
    """What the gradient of a norm needs."""

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
        """Gradients of `residual`, of `new`, and of LayerNorm's weight and bias where they are trained."""
        module = self.module
        weight, bias = module.weight.detach(), module.bias.detach()
        shape, wanted = module.normalized_shape, [True, trained, trained]
        residual_RD, of_weight, of_bias = aten.native_layer_norm_backward(
            grad_RD, kept.sum_RD, shape, kept.mean, kept.rstd, weight, bias, wanted
        )
        new_RD = residual_RD if kept.mask is None else kept.mask.of(residual_RD).mul_(kept.mask.scale)
        return residual_RD, new_RD, (of_weight, of_bias)


class AttentionKept(NamedTuple):
    """What the gradient of attention needs."""

    query_BHQE: Tensor  # B and H are one dimension here
    key_BHSE: Tensor
    value_BHSE: Tensor
    weights_BHQS: Tensor
    read_BHQS: Tensor  # the weights that dropout left
    mask: Mask | None


@dataclass(frozen=True)
class Attention:
    """Scaled dot-product attention of each text on itself (Vaswani et al. 2017, equation 1).

    Tokens are padded here and nowhere else: products of single texts are small, and batches are of similar lengths.
    """

    heads: int
    dropout: nn.Dropout

    def forward(
        self, query_RD: Tensor | None, others_T: Tensor, packing: Packing, masks: Masks | None
    ) -> tuple[Tensor, AttentionKept]:
        """Contexts [R, D].

        others_T: keys and values of all tokens, [T, 2 D], and query_RD those of each text's first; or queries, keys and
        values of all tokens, [T, 3 D], and no query_RD.
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
        # Sums in fp32; a softmax in half precision takes twice as long where a text's length is no multiple of 32.
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
        """Gradients of `query_RD` and `others_T`, laid out as they were. whole: there was no query_RD."""
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
        found = key.new_empty((3 if whole else 2, *key.shape))
        torch.bmm(read.transpose(1, 2), grad, out=found[-1])
        torch.bmm(of_scores.transpose(1, 2), query, out=found[-2])
        if whole:
            torch.bmm(of_scores, key, out=found[0])
        of_query = None if whole else self._by_token(torch.bmm(of_scores, key)[None], texts)
        return of_query, packing.gathered(self._by_token(found, texts))

    def _by_head(self, rows: Tensor, parts: int, texts: int) -> Tensor:
        """[parts, B * H, Q, E] of rows [B * Q, parts * D]."""
        split = rows.view(texts, -1, parts, self.heads, rows.shape[1] // (parts * self.heads))
        return split.permute(2, 0, 3, 1, 4).contiguous().flatten(1, 2)

    def _by_token(self, found: Tensor, texts: int) -> Tensor:
        """[B * Q, parts * D] of rows [parts, B * H, Q, E]."""
        split = found.view(len(found), texts, self.heads, *found.shape[2:])
        return split.permute(1, 3, 0, 2, 4).reshape(texts * found.shape[2], -1)
