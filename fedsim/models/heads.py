"""Heads: modules that turn the encoder's last hidden states into outputs, on one or several paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertLayer

from fedsim.errors import FederationError, plural
from fedsim.rng import SERVER, torch_seeded

# Shape suffixes: P paths, B batch, S tokens, D hidden width, C outputs, H attention heads, E head width, N targets: a
# batch's texts, or its tokens with a target.

# The encoder's last hidden states [B, S, D], the last one first; features may be in half precision, sums are in fp32.
States = Sequence[Tensor]


class Head(nn.Module):
    """From hidden states to path logits [P, N, C]; path losses are summed, path logits averaged.

    Built from an encoder's configuration and a number of outputs.

    Attributes:
        states: The number of last hidden states it reads.
        tokens: Whether it reads all tokens, or only [CLS].
        answers_tokens: Whether it has outputs per token marked by `is_target_BS`, or per text.
    """

    states: ClassVar[int] = 1
    tokens: ClassVar[bool] = False
    answers_tokens: ClassVar[bool] = False

    def forward(self, states: States, mask_BS: Tensor, is_target_BS: Tensor | None = None) -> Tensor:
        raise NotImplementedError

    def attach(self, encoder: nn.Module) -> None:
        """Use encoder parameters such as word embeddings; by default the head uses no such parameters."""


class Pooled(Head):
    """BERT's head: pooler (dense and tanh over [CLS]), dropout, linear (Devlin et al. 2019, section 4.1)."""

    def __init__(self, config: Any, outputs: int) -> None:
        super().__init__()
        dropout: Any = getattr(config, "classifier_dropout", None)
        if dropout is None:
            dropout = getattr(config, "hidden_dropout_prob", 0.1)
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(config.hidden_size, outputs)

    def forward(self, states: States, mask_BS: Tensor, is_target_BS: Tensor | None = None) -> Tensor:
        return self.classifier(self.dropout(torch.tanh(self.pooler(states[0][:, 0]))))[None]


class Ordinary(Head):
    """[CLS] and one linear layer (FedFreezeBERT's ordinary aggregator)."""

    def __init__(self, config: Any, outputs: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(config.hidden_size, outputs)

    def forward(self, states: States, mask_BS: Tensor, is_target_BS: Tensor | None = None) -> Tensor:
        return self.classifier(states[0][:, 0])[None]


class Average(Ordinary):
    """The mean over a text's tokens without padding, and one linear layer (FedFreezeBERT's average aggregator)."""

    tokens = True

    def forward(self, states: States, mask_BS: Tensor, is_target_BS: Tensor | None = None) -> Tensor:
        mask_BS1 = mask_BS[:, :, None].float()
        return self.classifier((states[0] * mask_BS1).sum(1) / mask_BS1.sum(1))[None]


class Tokens(Head):
    """Dropout and one linear layer over each token with a target (Devlin et al. 2019, section 5.3)."""

    tokens = True
    answers_tokens = True

    def __init__(self, config: Any, outputs: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(getattr(config, "hidden_dropout_prob", 0.1))
        self.classifier = nn.Linear(config.hidden_size, outputs)

    def forward(self, states: States, mask_BS: Tensor, is_target_BS: Tensor | None = None) -> Tensor:
        return self.classifier(self.dropout(states[0][is_target_BS]))[None]


class CausalLanguageModel(Head):
    """The word embeddings as decoder, over the tokens with a target (Radford et al. 2018, equation 2).

    The decoder shares the embeddings' parameter, which is trained, sent and counted once.
    """

    tokens = True
    answers_tokens = True
    decoder: nn.Parameter

    def __init__(self, config: Any, outputs: int) -> None:
        super().__init__()
        if config.vocab_size != outputs:
            raise FederationError(
                f"tied decoder: expected as many outputs as the encoder's {config.vocab_size} words, found {outputs}"
            )

    def attach(self, encoder: Any) -> None:
        self.decoder = encoder.get_input_embeddings().weight

    def forward(self, states: States, mask_BS: Tensor, is_target_BS: Tensor | None = None) -> Tensor:
        return functional.linear(states[0][is_target_BS], self.decoder)[None]


class MaskedLanguageModel(CausalLanguageModel):
    """Dense, GELU, LayerNorm, then the word embeddings as decoder, with a bias (Devlin et al. 2019, appendix A.1)."""

    def __init__(self, config: Any, outputs: int) -> None:
        super().__init__(config, outputs)
        self.transform = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=getattr(config, "layer_norm_eps", 1e-12))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, states: States, mask_BS: Tensor, is_target_BS: Tensor | None = None) -> Tensor:
        hidden_ND = self.norm(functional.gelu(self.transform(states[0][is_target_BS])))
        return functional.linear(hidden_ND, self.decoder, self.bias)[None]


class _Untied(CausalLanguageModel):
    """A separate decoder, initialised like other weights, instead of the word embeddings."""

    def attach(self, encoder: Any) -> None:
        embeddings = encoder.get_input_embeddings().weight
        deviation = getattr(encoder.config, "initializer_range", 0.02)
        self.decoder = nn.Parameter(torch.empty_like(embeddings, requires_grad=True).normal_(std=deviation))


class UntiedCausalLanguageModel(_Untied):
    """A causal language model with a decoder separate from the embeddings."""


class UntiedMaskedLanguageModel(_Untied, MaskedLanguageModel):
    """A masked language model with a decoder separate from the embeddings."""


class _FourPaths(Head):
    """Four BERT layers on the last four hidden states, each with a separate classifier over [CLS]."""

    states = 4
    tokens = True

    def __init__(self, config: Any, outputs: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(BertLayer(_layer_config(config)) for _ in range(self.states))
        self.classifiers = nn.ModuleList(nn.Linear(config.hidden_size, outputs) for _ in range(self.states))

    def _classify(self, first_tokens: Sequence[Tensor]) -> Tensor:
        return torch.stack([classify(token) for classify, token in zip(self.classifiers, first_tokens, strict=True)])


class ParallelSum(_FourPaths):
    """P-SUM (Karimi et al. 2020): path i is a layer on the i-th last hidden state."""

    def forward(self, states: States, mask_BS: Tensor, is_target_BS: Tensor | None = None) -> Tensor:
        return self._classify(
            [first_token(layer, state, mask_BS) for layer, state in zip(self.layers, states, strict=True)]
        )


class HierarchicalSum(_FourPaths):
    """H-SUM (Karimi et al. 2020): path i is a layer on the i-th last hidden state plus the output of path i - 1."""

    def forward(self, states: States, mask_BS: Tensor, is_target_BS: Tensor | None = None) -> Tensor:
        attended_B11S = mask_BS[:, None, None, :].bool()
        first_tokens = []
        read = states[0].float()
        for layer, deeper in zip(self.layers, states[1:], strict=False):
            output = layer(read, attended_B11S)
            first_tokens.append(output[:, 0])
            read = output + deeper
        return self._classify([*first_tokens, first_token(self.layers[-1], read, mask_BS)])


def first_token(layer: Any, hidden_BSD: Tensor, mask_BS: Tensor) -> Tensor:
    """A BertLayer's output [B, D] at [CLS], the only output that a path reads from its last layer.

    With one query per text the products can be reordered: q (W_k x + b_k) = (q W_k) x + q b_k, and values are weighted
    before W_v is applied. No weight matrix multiplies every token, so the layer is much cheaper.
    """
    attention = layer.attention.self
    device = hidden_BSD.device.type
    autocasts = torch.amp.is_autocast_available(device)  # not on the `meta` device
    dtype = torch.get_autocast_dtype(device) if autocasts and torch.is_autocast_enabled(device) else torch.float32
    hidden_BSD = hidden_BSD.to(dtype)

    def by_head(values: Tensor, dim: int) -> Tensor:
        return values.unflatten(dim, (attention.num_attention_heads, -1))

    # Products with one token per text stay in fp32: casting the weights would cost more than it saves.
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
    """A BertConfig with the encoder's sizes; DistilBERT has other names for some of them."""
    make: Any = BertConfig  # every configuration takes attn_implementation, but none declares it

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


# "-copied": layers start as copies of the encoder's last four; else random, initialised like BERT.
COPIED = "-copied"
HEADS: Mapping[str, type[Head]] = {
    "pooled": Pooled,
    "ordinary": Ordinary,
    "average": Average,
    "psum": ParallelSum,
    "hsum": HierarchicalSum,
    f"psum{COPIED}": ParallelSum,
    f"hsum{COPIED}": HierarchicalSum,
    "tokens": Tokens,
    "masked-lm": MaskedLanguageModel,
    "causal-lm": CausalLanguageModel,
    "masked-lm-untied": UntiedMaskedLanguageModel,
    "causal-lm-untied": UntiedCausalLanguageModel,
}


def require_head(name: str) -> None:
    """Raise FederationError if no head has this name."""
    if name not in HEADS:
        raise FederationError(f"unknown head {name!r}: expected one of {', '.join(HEADS)}")


def build_head(name: str, encoder: nn.Module, outputs: int, seed: int) -> Head:
    """Build the named head for an encoder, initialised like BERT from `seed`; FederationError if it does not fit."""
    require_head(name)
    config: Any = encoder.config  # its fields differ between families
    kind = HEADS[name]
    if config.num_hidden_layers < kind.states:
        raise FederationError(
            f"head {name}: expected at least {plural(kind.states, 'layer')} in the encoder, found "
            f"{config.num_hidden_layers}; choose a deeper encoder, or one of the heads "
            f"{', '.join(n for n, k in HEADS.items() if k.states == 1)}"
        )
    with torch_seeded(seed, 0, SERVER, "layout"):  # modules initialise when made; the head's weights are set below
        head = kind(config, outputs)
    with torch_seeded(seed, 0, SERVER, "head"), torch.no_grad():
        for module in head.modules():
            if isinstance(module, nn.Linear):
                module.weight.normal_(std=getattr(config, "initializer_range", 0.02))
                module.bias.zero_()
        head.attach(encoder)
    if name.endswith(COPIED):
        _copy_layers(encoder, head)
    return head


def _copy_layers(encoder: Any, head: Any) -> None:
    """Copy the encoder's last layers, the last one to the first path."""
    try:
        for layer, original in zip(head.layers, reversed(encoder.encoder.layer), strict=False):
            layer.load_state_dict(original.state_dict())
    except (AttributeError, RuntimeError):
        raise FederationError(
            f"copied layers: expected BERT's, found those of a {encoder.config.model_type} encoder; choose fresh ones"
        ) from None
