"""A BERT-family encoder over packed tokens, and its layers.

A layer equals the transformers library's (Devlin et al. 2019, section 3; post-norm, as Vaswani et al. 2017) up to
rounding and dropout's random values.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from fedsim.models.families import first_position
from fedsim.models.packed.low_rank import LowRank, base_of, factors_of, is_computed
from fedsim.models.packed.packing import Packing
from fedsim.models.packed.parts import Attention, AttentionKept, Cast, Masks, Norm, NormKept

# Shape suffixes: B texts; S tokens per text; T tokens in all texts; R tokens with outputs, T or B; D hidden width; F
# feed-forward width.

# oneDNN adds the bias within the product; `addmm` writes it first and reads it again, which takes half as long again.
# Without AVX-512 oneDNN has no bf16 product, so `addmm` computes it.
_HAS_BF16 = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
_LINEAR = torch.ops.mkldnn._linear_pointwise if _HAS_BF16 else None


class Kept(NamedTuple):
    """The values that a layer's gradient needs from the forward pass."""

    hidden_TD: Tensor
    read_RD: Tensor  # tokens with outputs; hidden_TD if all have outputs
    attention: AttentionKept
    context_RD: Tensor
    middle: NormKept
    middle_RD: Tensor
    before_RF: Tensor  # GELU
    wide_RF: Tensor
    end: NormKept


class PackedLayer:
    """A BERT layer on packed tokens, with the parameters of the given layer."""

    def __init__(self, layer: Any) -> None:
        """layer: the transformers library's, with BERT's structure."""
        attention, out = layer.attention.self, layer.attention.output
        self._layer = layer
        self.attention = Attention(attention.num_attention_heads, attention.dropout)
        self.middle = Norm(out.LayerNorm, out.dropout)
        self.end = Norm(layer.output.LayerNorm, layer.output.dropout)
        self._linear = _linear_of(layer)
        query, key, value, *others = self._linear
        self._projection = _Products(query, key, value)
        self._query, self._others = self._projection.part(0, 1), self._projection.part(1, 3)
        self._out, self._widen, self._narrow = (_Products(linear) for linear in others)

    @property
    def fits(self) -> bool:
        """Whether the layer's linear parts are still the original modules, and are plain or have LoRA."""
        return all(map(is_computed, self._linear)) and self._linear == _linear_of(self._layer)

    @property
    def parameters(self) -> tuple[nn.Parameter, ...]:
        """Parameters in the order of their gradients."""
        modules: tuple[Any, ...] = (*map(base_of, self._linear), self.middle.module, self.end.module)
        low = (each for linear in self._linear for each in factors_of(linear))
        return (*(parameter for module in modules for parameter in (module.weight, module.bias)), *low)

    def trained(self, wanted: Sequence[bool]) -> Trained:
        """The trained parts, given which parameters need gradients."""
        linear, plain = 2 * len(self._linear), 2 * len(self._linear) + 4  # two norms
        others = any(wanted[1:linear:2]) or any(wanted[linear:plain])
        return Trained(any(wanted[:linear:2]), others, any(wanted[plain:]))

    def refresh(self, dtype: torch.dtype) -> None:
        """Update to the parameters' current values, in the arithmetic's element type."""
        for products in (self._projection, self._out, self._widen, self._narrow):
            products.refresh(dtype)

    def __call__(
        self, hidden_TD: Tensor, packing: Packing, masks: Masks | None, first: bool, checkpoints: bool = False
    ) -> Tensor:
        """Hidden states [T, D], or only those of each text's first token, [B, D].

        masks: dropout's, in training. checkpoints: whether gradients recompute the activations.
        """
        if torch.is_grad_enabled():
            output: Tensor = _Layer.apply(hidden_TD, self, packing, masks, first, checkpoints, *self.parameters)
            return output
        return self.forward(hidden_TD, packing, masks, first)[0]

    def forward(self, hidden_TD: Tensor, packing: Packing, masks: Masks | None, first: bool) -> tuple[Tensor, Kept]:
        if first:
            read_RD = hidden_TD[packing.first]
            query_RD, others_T = self._query.of(read_RD), self._others.of(hidden_TD)
        else:
            read_RD, query_RD, others_T = hidden_TD, None, self._projection.of(hidden_TD)
        context_RD, attention = self.attention.forward(query_RD, others_T, packing, masks)
        middle_RD, middle = self.middle.forward(self._out.of(context_RD), read_RD, masks)
        before_RF = self._widen.of(middle_RD)
        wide_RF = functional.gelu(before_RF)
        end_RD, end = self.end.forward(self._narrow.of(wide_RF), middle_RD, masks)
        return end_RD, Kept(hidden_TD, read_RD, attention, context_RD, middle, middle_RD, before_RF, wide_RF, end)

    def backward(
        self, grad_RD: Tensor, kept: Kept, packing: Packing, first: bool, below: bool, trained: Trained
    ) -> tuple[Tensor | None, list[Tensor | None]]:
        """Gradients of the hidden states, if anything `below` needs them, and of the `trained` parts."""
        residual_RD, narrow_RD, of_end = self.end.backward(grad_RD, kept.end, trained.others)
        of_narrow = self._narrow.gradients(narrow_RD, kept.wide_RF, trained)
        widen_RF = torch.ops.aten.gelu_backward(self._narrow.back(narrow_RD), kept.before_RF)
        of_widen = self._widen.gradients(widen_RF, kept.middle_RD, trained)
        middle_RD = self._widen.back(widen_RF, residual_RD)
        residual_RD, out_RD, of_middle = self.middle.backward(middle_RD, kept.middle, trained.others)
        of_out = self._out.gradients(out_RD, kept.context_RD, trained)
        query_RD, others_T = self.attention.backward(self._out.back(out_RD), kept.attention, packing, not first)
        hidden_TD = None
        if query_RD is None:
            of_projection = self._projection.gradients(others_T, kept.hidden_TD, trained)
            hidden_TD = self._projection.back(others_T, residual_RD) if below else None
        else:
            of_query = self._query.gradients(query_RD, kept.read_RD, trained)
            of_others = self._others.gradients(others_T, kept.hidden_TD, trained)
            of_projection = Gradients(of_query.plain + of_others.plain, of_query.low + of_others.low)
            if below:
                read_RD = self._query.back(query_RD, residual_RD)
                hidden_TD = self._others.back(others_T).index_add_(0, packing.first, read_RD)
        linear = (of_projection, of_out, of_widen, of_narrow)
        plain, low = ([each for part in parts for each in part] for parts in zip(*linear, strict=True))
        return hidden_TD, [*plain, *of_middle, *of_end, *low]


class Trained(NamedTuple):
    """A layer's trained parts: its linear parts' weights, their biases and norms, and LoRA's factors."""

    weights: bool
    others: bool
    low: bool


class Gradients(NamedTuple):
    """Gradients of joint linear layers: each one's weight and bias, and the factors A and B of those with LoRA."""

    plain: list[Tensor | None]
    low: list[Tensor | None]


def _linear_of(layer: Any) -> tuple[nn.Linear, ...]:
    attention = layer.attention.self
    projections = attention.query, attention.key, attention.value
    return *projections, layer.attention.output.dense, layer.intermediate.dense, layer.output.dense


class _Products:
    """Linear layers with the same input, computed as one product."""

    def __init__(self, *linear: Any) -> None:
        self._rows = [module.out_features for module in linear]
        self._weights = Cast(*(base_of(module).weight for module in linear))
        self._biases = Cast(*(base_of(module).bias for module in linear))
        self._span = slice(None)
        ends = list(accumulate(self._rows))
        self._low = [
            LowRank(module, slice(end - rows, end))
            for module, rows, end in zip(linear, self._rows, ends, strict=True)
            if factors_of(module)
        ]

    def part(self, first: int, end: int) -> _Products:
        """A range of the layers, with the same weights."""
        made = copy.copy(self)
        made._rows = self._rows[first:end]
        made._span = slice(start := sum(self._rows[:first]), stop := sum(self._rows[:end]))
        made._low = [low.moved(start) for low in self._low if start <= low.span.start < stop]
        return made

    def refresh(self, dtype: torch.dtype) -> None:
        self._weights.refresh(dtype)
        self._biases.refresh(dtype)
        for low in self._low:
            low.refresh(dtype)

    def of(self, values: Tensor) -> Tensor:
        made = self._plain(values)
        for low in self._low:
            low.add_(made, values)
        return made

    def _plain(self, values: Tensor) -> Tensor:
        weight, bias = (cast.value(values.dtype)[self._span] for cast in (self._weights, self._biases))
        if values.dtype != torch.bfloat16 or _LINEAR is None:
            return torch.addmm(bias, values, weight.t())
        made: Tensor = _LINEAR(values, weight, bias, "none", [], None)
        return made

    def back(self, grad: Tensor, residual: Tensor | None = None) -> Tensor:
        """The input's gradient, added to a residual's."""
        weight = self._weights.value(grad.dtype)[self._span]
        made = torch.mm(grad, weight) if residual is None else torch.addmm(residual, grad, weight)
        for low in self._low:
            low.add_back_(made, grad)
        return made

    def gradients(self, grad: Tensor, values: Tensor, trained: Trained) -> Gradients:
        """The parameters' gradients, in fp32."""
        low = [each for part in self._low for each in (part.gradients(grad, values) if trained.low else (None, None))]
        weights = self._of_weights(grad, values) if trained.weights else [None] * len(self._rows)
        biases = grad.sum(0).float().split(self._rows) if trained.others else [None] * len(self._rows)
        return Gradients([each for pair in zip(weights, biases, strict=True) for each in pair], low)

    def _of_weights(self, grad: Tensor, values: Tensor) -> Sequence[Tensor]:
        # Both factors have tokens as rows. oneDNN transposes the left one slowly, so the narrower one is transposed
        # first.
        if grad.shape[1] <= values.shape[1]:
            product = torch.mm(grad.t().contiguous(), values)
        else:
            product = torch.mm(values.t().contiguous(), grad).t()
        return product.to(torch.float32, memory_format=torch.contiguous_format).split(self._rows)


class _Layer(torch.autograd.Function):
    """A packed layer in PyTorch's graph."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden_TD: Tensor,
        layer: PackedLayer,
        packing: Packing,
        masks: Masks | None,
        first: bool,
        checkpoints: bool,
        *parameters: Tensor,  # noqa: ARG004 - what gets gradients
    ) -> Tensor:
        again = copy.deepcopy(masks) if checkpoints else None  # repeats the values of `masks`
        end_RD, kept = layer.forward(hidden_TD, packing, masks, first)
        # Nothing in it is changed in place, and backward runs once.
        ctx.kept, ctx.call = None if checkpoints else kept, (layer, packing, first)
        ctx.again = (hidden_TD.detach(), packing, again, first) if checkpoints else None
        return end_RD

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        layer, packing, first = ctx.call
        kept, ctx.kept = ctx.kept or layer.forward(*ctx.again)[1], None
        below, wanted = ctx.needs_input_grad[0], ctx.needs_input_grad[6:]
        trained = layer.trained(wanted)
        hidden, gradients = layer.backward(grads[0].contiguous(), kept, packing, first, below, trained)
        return hidden, None, None, None, None, None, *gradients


class PackedEncoder:
    """The hidden states of a given encoder, computed without padding."""

    def __init__(self, encoder: Any, checkpoints: bool = False) -> None:
        """checkpoints: whether layers recompute activations in training to save memory."""
        self._encoder, self._checkpoints = encoder, checkpoints
        self._layers = [PackedLayer(layer) for layer in encoder.encoder.layer]
        self._first_position = first_position(encoder.config.to_dict())  # 0, or the padding id + 1

    @property
    def fits(self) -> bool:
        """Whether the layers still have their original modules."""
        return all(layer.fits for layer in self._layers)

    def refresh(self, dtype: torch.dtype) -> None:
        """Update to the parameters' current values, in the arithmetic's element type; `states` does not."""
        for layer in self._layers:
            layer.refresh(dtype)

    def states(self, batch: Mapping[str, Tensor], dtype: torch.dtype, wanted: int, first: bool) -> tuple[Tensor, ...]:
        """The last `wanted` hidden states [B, S, D], the last one first.

        dtype: the arithmetic's. first: the last one has only each text's first token, [B, 1, D].
        """
        packing = Packing(batch["attention_mask"])
        encoder = self._encoder
        masks = Masks(dtype) if encoder.training else None
        hidden_TD = self._embedded(batch, packing, masks).to(dtype)
        states = []
        for number, (layer, module) in enumerate(zip(self._layers, encoder.encoder.layer, strict=True), start=1):
            for hook in module._forward_pre_hooks.values():  # tensors that cross the wire here
                hidden_TD = packing.tokens(hook(module, (packing.states(hidden_TD),))[0])
            is_last = number == len(self._layers)
            hidden_TD = layer(hidden_TD, packing, masks, first and is_last, self._checkpoints)
            states.append(hidden_TD)
        last = states.pop()[:, None] if first else packing.states(states.pop())
        return last, *(packing.states(states.pop()) for _ in range(wanted - 1))

    def _positions(self, ids_BS: Tensor, packing: Packing) -> Tensor:
        """Each token's position [T]; if positions follow the padding, padding ids inside texts are not counted."""
        if not self._first_position:
            return packing.positions
        padding = self._first_position - 1
        counted_BS = ids_BS != padding
        return packing.packed(counted_BS.cumsum(1) * counted_BS) + padding

    def _embedded(self, batch: Mapping[str, Tensor], packing: Packing, masks: Masks | None) -> Tensor:
        """The tokens' embeddings [T, D], after norm and dropout (Devlin et al. 2019, figure 2)."""
        embeddings: Any = self._encoder.embeddings
        tokens_TD = embeddings.word_embeddings(packing.packed(batch["input_ids"]))
        positions_TD = embeddings.position_embeddings(self._positions(batch["input_ids"], packing))
        types_BS = batch.get("token_type_ids")
        types_T = torch.zeros_like(packing.places) if types_BS is None else packing.packed(types_BS)
        hidden_TD: Tensor = embeddings.LayerNorm(tokens_TD + embeddings.token_type_embeddings(types_T) + positions_TD)
        mask = masks.draw(hidden_TD.numel(), embeddings.dropout.p) if masks is not None else None
        return hidden_TD if mask is None else hidden_TD * mask.factor(hidden_TD)
