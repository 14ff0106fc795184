"""Adapters that the peft library lacks or breaks, as wrappers around an encoder's modules.

Each keeps the wrapped module as `base_layer`, like peft, so that its parameters keep their names.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

# Shape suffixes: B texts, H heads, S tokens, P prefix positions, E head width, D hidden width.


class Bottleneck(nn.Module):
    """An adapter after a linear layer: down to r, GELU, up, residual (Houlsby et al. 2019); it initially adds 0."""

    def __init__(self, base_layer: nn.Module, width: int, r: int) -> None:
        super().__init__()
        self.base_layer = base_layer
        self.adapter_down, self.adapter_up = nn.Linear(width, r), nn.Linear(r, width)
        nn.init.normal_(self.adapter_down.weight, std=0.02)
        for zero in (self.adapter_down.bias, self.adapter_up.weight, self.adapter_up.bias):
            nn.init.zeros_(zero)

    def forward(self, states: Tensor) -> Tensor:
        states = self.base_layer(states)
        added: Tensor = self.adapter_up(functional.gelu(self.adapter_down(states)))
        return states + added


class Core(nn.Module):
    """W + s B R A with only R [r, r] trained, from 0 (Fed-SB's form, Singhal et al. 2025).

    B and A are the top singular vectors of W, as in LoRA-XS; Fed-SB takes those of an initial gradient, which would
    need all clients' texts together.
    """

    def __init__(self, base_layer: Any, r: int, scale: float) -> None:
        super().__init__()
        self.base_layer, self.scale = base_layer, scale
        weight = base_layer.weight.detach()
        u, _, vt = torch.linalg.svd(weight if isinstance(base_layer, nn.Linear) else weight.T, full_matrices=False)
        self.lora_B = nn.Parameter(u[:, :r].clone(), requires_grad=False)
        self.lora_A = nn.Parameter(vt[:r].clone(), requires_grad=False)
        self.lora_R = nn.Parameter(torch.zeros(r, r, device=weight.device))

    def forward(self, states: Tensor) -> Tensor:
        low = functional.linear(functional.linear(states, self.lora_A), self.lora_R)
        added: Tensor = self.scale * functional.linear(low, self.lora_B)
        return self.base_layer(states) + added


class Prefix(nn.Module):
    """Trained keys and values before the texts' in one layer's attention (Li and Liang 2021).

    The attention sees a cache with P positions. peft passes a cache to the whole encoder, which BERT's masks do not fit
    in some releases of transformers.
    """

    def __init__(self, base_layer: nn.Module, width: int, r: int) -> None:
        super().__init__()
        self.base_layer = base_layer
        self.prefix_key, self.prefix_value = (nn.Parameter(torch.empty(r, width).normal_(std=0.02)) for _ in "kv")

    def forward(self, states: Tensor, attention_mask: Tensor | None = None, **options: Any) -> Any:
        if attention_mask is not None:
            visible = attention_mask.dtype == torch.bool  # True, or 0 for additive masks
            attention_mask = functional.pad(attention_mask, (len(self.prefix_key), 0), value=visible)
        return self.base_layer(states, attention_mask, **options | {"past_key_values": self})

    def update(self, key_BHSE: Tensor, value_BHSE: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
        """Keys and values with the prefix before them."""
        return self._before(self.prefix_key, key_BHSE), self._before(self.prefix_value, value_BHSE)

    def _before(self, prefix_PD: Tensor, text_BHSE: Tensor) -> Tensor:
        texts, heads, _, width = text_BHSE.shape
        prefix_HPE = prefix_PD.view(-1, heads, width).transpose(0, 1).to(text_BHSE.dtype)
        return torch.cat([prefix_HPE.expand(texts, -1, -1, -1), text_BHSE], 2)
