"""P-SUM and H-SUM (Karimi et al. 2020): four BERT layers on the last four hidden states."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from fedsim.models.head import Head, States

# Shape suffixes: B batch, S tokens, D hidden width, H attention heads, E a head's width.


class _FourPaths(Head):
    """Four BERT layers on the last four hidden states, each with a classifier of its own over [CLS]."""

    states = 4
    tokens = True

    def __init__(self, config: Any, outputs: int) -> None:
        from transformers.models.bert.modeling_bert import BertLayer

        super().__init__()
        self.layers = nn.ModuleList(BertLayer(_layer_config(config)) for _ in range(self.states))
        self.classifiers = nn.ModuleList(nn.Linear(config.hidden_size, outputs) for _ in range(self.states))

    def _classify(self, first_tokens: Sequence[Tensor]) -> Tensor:
        return torch.stack([classify(token) for classify, token in zip(self.classifiers, first_tokens, strict=True)])


class ParallelSum(_FourPaths):
    """P-SUM (Karimi et al. 2020): path i is a layer on the i-th last hidden state."""

    def forward(self, states: States, mask_BS: Tensor, asked_BS: Tensor | None = None) -> Tensor:
        return self._classify(
            [first_token(layer, state, mask_BS) for layer, state in zip(self.layers, states, strict=True)]
        )


class HierarchicalSum(_FourPaths):
    """H-SUM (Karimi et al. 2020): path i is a layer on the i-th last hidden state plus what path i - 1 put out."""

    def forward(self, states: States, mask_BS: Tensor, asked_BS: Tensor | None = None) -> Tensor:
        attended_B11S = mask_BS[:, None, None, :].bool()
        first_tokens = []
        read = states[0].float()
        for layer, deeper in zip(self.layers, states[1:], strict=False):
            output = layer(read, attended_B11S)
            first_tokens.append(output[:, 0])
            read = output + deeper
        return self._classify([*first_tokens, first_token(self.layers[-1], read, mask_BS)])


def first_token(layer: Any, hidden_BSD: Tensor, mask_BS: Tensor) -> Tensor:
    """A BertLayer's output [B, D] at [CLS]: nothing else is read of a path's last layer, so nothing else is computed.

    One query a text lets its products be taken in another order: q (W_k x + b_k) = (q W_k) x + q b_k, and the values
    are weighted before W_v is applied. No matrix meets every token, and the layer costs a fraction.
    """
    attention = layer.attention.self
    device = hidden_BSD.device.type
    autocasts = torch.amp.is_autocast_available(device)  # not on the `meta` device
    dtype = torch.get_autocast_dtype(device) if autocasts and torch.is_autocast_enabled(device) else torch.float32
    hidden_BSD = hidden_BSD.to(dtype)

    def by_head(values: Tensor, dim: int) -> Tensor:
        return values.unflatten(dim, (attention.num_attention_heads, -1))

    # What meets one token a text stays fp32: casting the weights would cost more than it saves.
    with torch.autocast(device, enabled=False) if autocasts else nullcontext():
        first_BD = hidden_BSD[:, 0].float()
        query_BHE = by_head(attention.query(first_BD), -1) * attention.scaling
        asked_BHD = torch.einsum("bhe,hed->bhd", query_BHE, by_head(attention.key.weight, 0))
        constant_BH1 = (query_BHE * by_head(attention.key.bias, 0)).sum(-1, keepdim=True)
        scores_BHS = (asked_BHD.to(dtype) @ hidden_BSD.transpose(1, 2)).float() + constant_BH1
        weights_BHS = scores_BHS.masked_fill(mask_BS[:, None] == 0, -torch.inf).softmax(-1)
        weights_BHS = attention.dropout(weights_BHS)
        read_BHD = (weights_BHS.to(dtype) @ hidden_BSD).float()
        context_BHE = torch.einsum("bhd,hed->bhe", read_BHD, by_head(attention.value.weight, 0))
        context_BHE = context_BHE + weights_BHS.sum(-1, keepdim=True) * by_head(attention.value.bias, 0)
        output_BD: Tensor = layer.feed_forward_chunk(layer.attention.output(context_BHE.flatten(1), first_BD))
    return output_BD


def _layer_config(config: Any) -> Any:
    """A BertConfig of the encoder's sizes; DistilBERT has names of its own for some of them."""
    from transformers import BertConfig

    make: Any = BertConfig  # attn_implementation is an argument of every configuration, and declared by none

    def size(name: str, other: str) -> Any:
        return getattr(config, name) if hasattr(config, name) else getattr(config, other)

    return make(
        hidden_size=config.hidden_size,
        num_attention_heads=config.num_attention_heads,
        intermediate_size=size("intermediate_size", "hidden_dim"),
        hidden_act=size("hidden_act", "activation"),
        hidden_dropout_prob=size("hidden_dropout_prob", "dropout"),
        attention_probs_dropout_prob=size("attention_probs_dropout_prob", "attention_dropout"),
        layer_norm_eps=getattr(config, "layer_norm_eps", 1e-12),
        attn_implementation="sdpa",
    )
