"""Objectives of tokens: each one's tag, or the token itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fedsim.data import IGNORED, Batch, Subset
from fedsim.errors import FederationError
from fedsim.objectives.base import Objective
from fedsim.objectives.texts import most_frequent

ROWS = 256  # tokens that are compared with a whole vocabulary at once


class OfTokens(Objective):
    """Targets are tokens'; those IGNORED enter nothing."""

    of_tokens: ClassVar[bool] = True

    def loss(self, outputs_NC: Tensor, targets_N: Tensor) -> Tensor:
        return functional.cross_entropy(outputs_NC, targets_N, reduction="sum") / max(1, len(targets_N))

    def asked_of(self, tokens: int) -> int:
        return tokens

    def placed(self, values_N: np.ndarray, batch: Batch) -> np.ndarray:
        """Values of the tokens asked for, at their places: [B, S, …]; 0 elsewhere."""
        asked_BS = (batch["labels"] != IGNORED).numpy()
        found = np.zeros((*asked_BS.shape, *values_N.shape[1:]), dtype=values_N.dtype)
        found[asked_BS] = values_N
        return found


class TokenClassification(OfTokens):
    """One of C tags for each token asked for: cross-entropy; answers are logits [n, S, C], predictions ids [n, S]."""

    def shape(self, subset: Subset) -> tuple[int, ...]:
        return len(subset), subset.longest, self.outputs

    def answer(self, outputs_NC: Tensor, batch: Batch) -> np.ndarray:
        return self.placed(outputs_NC.cpu().numpy(), batch)

    def for_metrics(self, answers: np.ndarray, subset: Subset) -> tuple[np.ndarray, np.ndarray]:
        references = subset.references
        return np.where(references == IGNORED, IGNORED, answers.argmax(axis=2)), references

    def prior(self, known: Subset, subset: Subset) -> np.ndarray:
        """The most frequent tag."""
        tags = known.references
        return np.tile(most_frequent(tags[tags != IGNORED], self.outputs), (len(subset), subset.longest, 1))


@dataclass(frozen=True)
class TokenRecovery(OfTokens):
    """The tokens themselves, read off what a model makes of them: an estimate of each one's word embedding, [N, E].

    A token is the one whose embedding has the largest product with the estimate. Learned by cross-entropy over the
    tokens that occur in training; answered with any token of the vocabulary. Answers are ids [n, S].
    words_VE: the public word embeddings. occurring_C: ids of the tokens in the training texts, ascending.
    """

    words_VE: Tensor | None = None
    occurring_C: Tensor | None = None

    def shape(self, subset: Subset) -> tuple[int, ...]:
        return len(subset), subset.longest

    def loss(self, outputs_NC: Tensor, targets_N: Tensor) -> Tensor:
        words_VE, occurring_C = self._words()
        return super().loss(outputs_NC @ words_VE[occurring_C].T, torch.searchsorted(occurring_C, targets_N))

    def answer(self, outputs_NC: Tensor, batch: Batch) -> np.ndarray:
        words_VE, _ = self._words()
        ids_N = torch.cat([(rows @ words_VE.T).argmax(1) for rows in outputs_NC.split(ROWS)])
        return self.placed(ids_N.cpu().numpy(), batch)

    def for_metrics(self, answers: np.ndarray, subset: Subset) -> tuple[np.ndarray, np.ndarray]:
        return answers, subset.references

    def _words(self) -> tuple[Tensor, Tensor]:
        if self.words_VE is None or self.occurring_C is None:
            raise FederationError("token recovery: expected a method that reads tokens off features, as inversion does")
        return self.words_VE, self.occurring_C
