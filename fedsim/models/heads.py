"""Heads: what stands on the encoder's last hidden states and answers, on one path or on several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from fedsim.errors import FederationError
from fedsim.models.head import Head, States
from fedsim.models.paths import HierarchicalSum, ParallelSum
from fedsim.models.pretrained import MASKED_LM, POOLER, Names
from fedsim.rng import SERVER, torch_seeded

# Shape suffixes: B batch, S tokens, D hidden width, N targets: the texts of a batch, or the tokens asked for.


class Pooled(Head):
    """BERT's own: pooler (dense and tanh over [CLS]), dropout, linear (Devlin et al. 2019, section 4.1)."""

    pretrained: ClassVar[Names] = POOLER

    def __init__(self, config: Any, outputs: int) -> None:
        super().__init__()
        dropout: Any = getattr(config, "classifier_dropout", None)
        if dropout is None:
            dropout = getattr(config, "hidden_dropout_prob", 0.1)
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(config.hidden_size, outputs)

    def forward(self, states: States, mask_BS: Tensor, asked_BS: Tensor | None = None) -> Tensor:
        return self.classifier(self.dropout(torch.tanh(self.pooler(states[0][:, 0]))))[None]


class Ordinary(Head):
    """[CLS] and one linear layer (FedFreezeBERT's ordinary aggregator)."""

    def __init__(self, config: Any, outputs: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(config.hidden_size, outputs)

    def forward(self, states: States, mask_BS: Tensor, asked_BS: Tensor | None = None) -> Tensor:
        return self.classifier(states[0][:, 0])[None]


class Average(Head):
    """The mean over a text's tokens, padding left out, and one linear layer (FedFreezeBERT's average aggregator)."""

    tokens = True

    def __init__(self, config: Any, outputs: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(config.hidden_size, outputs)

    def forward(self, states: States, mask_BS: Tensor, asked_BS: Tensor | None = None) -> Tensor:
        mask_BS1 = mask_BS[:, :, None].float()
        return self.classifier((states[0] * mask_BS1).sum(1) / mask_BS1.sum(1))[None]


class Tokens(Head):
    """Dropout and one linear layer over each token asked for (Devlin et al. 2019, section 5.3)."""

    tokens = True
    answers_tokens = True

    def __init__(self, config: Any, outputs: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(getattr(config, "hidden_dropout_prob", 0.1))
        self.classifier = nn.Linear(config.hidden_size, outputs)

    def forward(self, states: States, mask_BS: Tensor, asked_BS: Tensor | None = None) -> Tensor:
        return self.classifier(self.dropout(states[0][asked_BS]))[None]


class CausalLanguageModel(Head):
    """The word embeddings as decoder, over the tokens asked for (Radford et al. 2018, equation 2).

    The decoder's weight is the embeddings' own parameter and no second one: it is trained, sent and counted once.
    """

    tokens = True
    answers_tokens = True
    decoder: nn.Parameter

    def __init__(self, config: Any, outputs: int) -> None:
        super().__init__()
        self._check(config.vocab_size, outputs)

    def attach(self, encoder: Any) -> None:
        self.decoder = encoder.get_input_embeddings().weight

    def forward(self, states: States, mask_BS: Tensor, asked_BS: Tensor | None = None) -> Tensor:
        return functional.linear(states[0][asked_BS], self.decoder)[None]

    def _check(self, words: int, outputs: int) -> None:
        if words != outputs:
            raise FederationError(
                f"tied decoder: expected as many outputs as the encoder's {words} words, got {outputs}"
            )


class MaskedLanguageModel(CausalLanguageModel):
    """Dense, GELU, LayerNorm, then the word embeddings as decoder, with a bias (Devlin et al. 2019, appendix A.1)."""

    pretrained: ClassVar[Names] = MASKED_LM

    def __init__(self, config: Any, outputs: int) -> None:
        super().__init__(config, outputs)
        self.transform = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=getattr(config, "layer_norm_eps", 1e-12))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, states: States, mask_BS: Tensor, asked_BS: Tensor | None = None) -> Tensor:
        hidden_ND = self.norm(functional.gelu(self.transform(states[0][asked_BS])))
        return functional.linear(hidden_ND, self.decoder, self.bias)[None]


class _Untied(CausalLanguageModel):
    """A decoder of its own, drawn as other weights are, in place of the word embeddings."""

    pretrained: ClassVar[Names] = {}

    def attach(self, encoder: Any) -> None:
        words = encoder.get_input_embeddings().weight
        deviation = getattr(encoder.config, "initializer_range", 0.02)
        self.decoder = nn.Parameter(torch.empty_like(words, requires_grad=True).normal_(std=deviation))


class UntiedCausalLanguageModel(_Untied):
    """A causal language model whose decoder is no part of the embeddings."""


class UntiedMaskedLanguageModel(_Untied, MaskedLanguageModel):
    """A masked language model whose decoder is no part of the embeddings."""


# "-copied": the layers begin as copies of the encoder's last four; else fresh, as BERT is initialised.
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


def build_head(name: str, encoder: nn.Module, outputs: int, seed: int) -> Head:
    """The head of that name for an encoder, its weights drawn from `seed` as BERT's are; FederationError if unfit."""
    if name not in HEADS:
        raise FederationError(f"unknown head {name!r}: expected one of {', '.join(HEADS)}")
    config: Any = encoder.config  # its fields differ from family to family
    kind = HEADS[name]
    if config.num_hidden_layers < kind.states:
        raise FederationError(
            f"head {name}: it reads the last {kind.states} layers, and the encoder has {config.num_hidden_layers}; "
            f"choose a deeper encoder, or one of the heads {', '.join(n for n, k in HEADS.items() if k.states == 1)}"
        )
    with torch_seeded(seed, 0, SERVER, "layout"):  # modules draw weights when they are made; the head's are drawn below
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
            f"copied layers: the layers of a {encoder.config.model_type} encoder are not BERT's; choose fresh ones"
        ) from None
