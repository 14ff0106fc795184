"""Objectives of whole texts: a class, or a score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fedsim.data import Batch, Subset
from fedsim.objectives.base import Objective
from fedsim.wire import Params

NEVER = -30.0  # the logit of a class of which nothing is known


class Classification(Objective):
    """One of C classes for a text: cross-entropy; answers are logits [n, C], predictions label ids [n]."""

    def loss(self, outputs_NC: Tensor, targets_N: Tensor) -> Tensor:
        return functional.cross_entropy(outputs_NC, targets_N)

    def answer(self, outputs_NC: Tensor, batch: Batch) -> np.ndarray:
        return outputs_NC.cpu().numpy()

    def for_metrics(self, answers: np.ndarray, subset: Subset) -> tuple[np.ndarray, np.ndarray]:
        return answers.argmax(axis=1), subset.labels

    def prior(self, known: Subset, subset: Subset) -> np.ndarray:
        """The most frequent class; of equally frequent ones the smallest id."""
        return np.tile(most_frequent(known.labels, self.outputs), (len(subset), 1))

    def tally(self, known: Subset) -> Params:
        """How often each class occurs, int32 [C]."""
        return {"classes": torch.from_numpy(np.bincount(known.labels, minlength=self.outputs).astype(np.int32))}

    def with_prior(self, answers: np.ndarray, known: Subset, everyone: Mapping[str, Tensor]) -> np.ndarray:
        """Logit adjustment (Menon et al. 2021, section 4.1) from everyone's shares of the classes to the client's own.

        log p_own - log p_everyone is added to the logits; shares with add-one smoothing.
        """
        own, all_together = (log_shares(counts["classes"]) for counts in (self.tally(known), everyone))
        return answers + (own - all_together).astype(answers.dtype)

    def linear(self, features_NF: Any, targets_N: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
        """Logistic regression; a class that does not occur is as good as never answered."""
        from sklearn.linear_model import LogisticRegression

        seen = np.unique(targets_N)
        weights, biases = np.zeros((self.outputs, features_NF.shape[1])), np.full(self.outputs, NEVER)
        biases[seen] = 0
        if len(seen) > 1:
            fitted = LogisticRegression(C=strength, max_iter=1000).fit(features_NF, targets_N)
            parts = fitted.coef_, fitted.intercept_[:, None]
            # of two classes, scikit-learn has the logit of the second
            both = (np.concatenate([-part, part]) / 2 if len(seen) == 2 else part for part in parts)
            weights[seen], biases[seen, None] = both
        return weights, biases


@dataclass(frozen=True)
class Regression(Classification):
    """A score for a text: mean squared error; answers are scores [n, 1], predictions scores [n]."""

    outputs: int = 1

    def loss(self, outputs_NC: Tensor, targets_N: Tensor) -> Tensor:
        return functional.mse_loss(outputs_NC.squeeze(-1), targets_N)

    def for_metrics(self, answers: np.ndarray, subset: Subset) -> tuple[np.ndarray, np.ndarray]:
        return answers[:, 0].astype(np.float64), subset.labels

    def prior(self, known: Subset, subset: Subset) -> np.ndarray:
        """The mean score."""
        return np.full((len(subset), 1), known.labels.mean(), dtype=np.float32)

    def tally(self, known: Subset) -> Params:
        """Nothing: a client's own scores are enough."""
        return {}

    def with_prior(self, answers: np.ndarray, known: Subset, everyone: Mapping[str, Tensor]) -> np.ndarray:
        """The analogue: a prior that is uniform over the range of the client's own scores; outputs are cut to it."""
        return answers.clip(known.labels.min(), known.labels.max())

    def linear(self, features_NF: Any, targets_N: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
        """Ridge regression."""
        from sklearn.linear_model import Ridge

        fitted = Ridge(alpha=1 / strength).fit(features_NF, targets_N)
        return fitted.coef_[None], np.array([fitted.intercept_])


def most_frequent(ids: np.ndarray, classes: int) -> np.ndarray:
    """A row of logits, float32 [C]: 1 at the most frequent id, of equals the smallest."""
    row = np.zeros(classes, dtype=np.float32)
    row[np.bincount(ids, minlength=classes).argmax()] = 1
    return row


def log_shares(counts: Tensor) -> np.ndarray:
    """Logarithms of each class's share by counts [C], with add-one smoothing; float64 [C]."""
    smoothed = counts.cpu().numpy().astype(np.float64) + 1
    shares: np.ndarray = np.log(smoothed / smoothed.sum())
    return shares
