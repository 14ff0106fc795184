"""From hidden states back to tokens: a small model over a public encoder's word embeddings."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedsim.data import NOT_ASKED, Batch, Part, evaluation_batches
from fedsim.models.heads import Head, States
from fedsim.models.resident import Resident
from fedsim.models.sequence import SequenceModel
from fedsim.rng import SERVER, torch_seeded

# Shape suffixes: B batch, S tokens, K hidden states, D hidden width, E width of word embeddings, N tokens asked for,
# C tokens that occur in training, V vocabulary.

WIDENING = 4  # the inner layer's width in word embeddings', as in BERT's own feed-forward layers
ROWS = 256  # tokens that are compared with the whole vocabulary at once


class Readout(Head):
    """Each token's hidden states to an estimate of its word embedding, [1, B, S, E]; no token sees another's.

    dtype: how the states were sent; they are rounded to it.
    """

    tokens = True

    def __init__(self, states: int, hidden: int, embedding: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(states))
        self.inner = nn.Linear(states * hidden, WIDENING * embedding)
        self.outer = nn.Linear(WIDENING * embedding, embedding)

    def forward(self, states: States, _: Tensor) -> Tensor:
        received = [state.to(self.dtype).float() for state in states]
        normed = [norm(state) for norm, state in zip(self.norms, received, strict=True)]
        return self.outer(functional.gelu(self.inner(torch.cat(normed, dim=-1))))[None]


class Inverter(Resident):
    """Recovers texts from features: a token is the one whose word embedding has the largest product with the estimate.

    It learns by cross-entropy over the tokens that occur in its training texts, and answers with any token of the
    vocabulary. What it reads are batches of features; the encoder gives its word embeddings alone, and stays as it is.
    """

    def __init__(self, victim: Resident, occurring: np.ndarray, dtype: torch.dtype, seed: int) -> None:
        """victim: the model whose features are read. occurring: ids of the tokens in the training texts, ascending."""
        words_VE = victim.parameters[victim.word_embeddings].detach()
        with torch_seeded(seed, 0, SERVER, "inverter"):
            readout = Readout(victim.model.head.states, victim.hidden, words_VE.shape[1], dtype)
        super().__init__(SequenceModel(victim.model.encoder, readout), victim.precision)
        self.words_VE = words_VE
        self.occurring_C = torch.from_numpy(occurring).to(self.device)

    def loss(self, batch: Batch) -> Tensor:
        """Mean cross-entropy of the tokens asked for."""
        estimates_BSE = self.path_logits(batch)[0]
        labels_BS = batch["labels"].to(self.device)[:, : estimates_BSE.shape[1]]
        asked_BS = labels_BS != NOT_ASKED
        logits_NC = estimates_BSE[asked_BS] @ self.words_VE[self.occurring_C].T
        targets_N = torch.searchsorted(self.occurring_C, labels_BS[asked_BS])
        return functional.cross_entropy(logits_NC, targets_N, reduction="sum") / max(1, len(targets_N))

    def invert(self, part: Part, batch_size: int, width: int | None) -> np.ndarray:
        """Token ids int64 [n, longest] for a part in its order, NOT_ASKED behind each text."""
        self.model.eval()
        answers = np.full((len(part), int(part.examples.lengths.max(initial=0))), NOT_ASKED, dtype=np.int64)
        with torch.inference_mode():
            for positions, batch in evaluation_batches(part, batch_size, width):
                present_BS = batch["attention_mask"].bool()
                estimates = self.path_logits(batch)[0][present_BS.to(self.device)]
                ids = torch.cat([(rows @ self.words_VE.T).argmax(1) for rows in estimates.split(ROWS)])
                found = np.full(present_BS.shape, NOT_ASKED, dtype=np.int64)
                found[present_BS.numpy()] = ids.cpu().numpy()
                answers[positions, : found.shape[1]] = found
        return answers
