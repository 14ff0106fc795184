"""From hidden states back to tokens: a small model over a public encoder's word embeddings."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedsim.models.head import Head, States
from fedsim.models.model import Model
from fedsim.models.sequence import SequenceModel
from fedsim.objectives import TokenRecovery
from fedsim.rng import SERVER, torch_seeded

# Shape suffixes: B batch, S tokens, D hidden width, E width of word embeddings, N tokens asked for, V vocabulary.

WIDENING = 4  # the inner layer's width in word embeddings', as in BERT's own feed-forward layers


class Readout(Head):
    """Each token's hidden states to an estimate of its word embedding, [1, N, E]; no token sees another's.

    dtype: how the states were sent; they are rounded to it.
    """

    tokens = True
    answers_tokens = True

    def __init__(self, states: int, hidden: int, embedding: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(states))
        self.inner = nn.Linear(states * hidden, WIDENING * embedding)
        self.outer = nn.Linear(WIDENING * embedding, embedding)

    def forward(self, states: States, mask_BS: Tensor, asked_BS: Tensor | None = None) -> Tensor:
        received = [state.to(self.dtype).float() for state in states]
        normed = [norm(state) for norm, state in zip(self.norms, received, strict=True)]
        return self.outer(functional.gelu(self.inner(torch.cat(normed, dim=-1))))[asked_BS][None]


def inverter(victim: Model, occurring: np.ndarray, dtype: torch.dtype, seed: int) -> Model:
    """A model that recovers texts from features; of the encoder it uses the word embeddings, and leaves it as it is.

    victim: the model whose features are read. occurring: ids of the tokens in the training texts, ascending.
    dtype: how features were sent.
    """
    words_VE = victim.parameters[victim.word_embeddings].detach()
    with torch_seeded(seed, 0, SERVER, "inverter"):
        readout = Readout(victim.network.head.states, victim.hidden, words_VE.shape[1], dtype)
    objective = TokenRecovery(words_VE.shape[1], words_VE, torch.from_numpy(occurring).to(victim.device))
    return Model(SequenceModel(victim.network.encoder, readout), victim.precision, objective)
