"""What every objective answers to: targets, loss, answers, and what follows from targets alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from fedsim.data import Batch, Subset
from fedsim.errors import FederationError
from fedsim.wire import Params

# Shape suffixes of objectives: n texts of a subset, P paths, B batch, S tokens, N targets of a batch (B, or tokens
# asked for), C outputs, V vocabulary, E width of word embeddings, F features of a linear model.


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words that a language model answers with.

    words: rows of the word embeddings, V. ordinary_ids: of the tokenizer's tokens that are not special, int64
    ascending. mask_id: the token that hides another; None where there is none.
    """

    words: int
    ordinary_ids: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    mask_id: int | None = None


NO_WORDS = Vocabulary(0)  # of whatever reads none


@dataclass(frozen=True)
class Objective(ABC):
    """What is asked of a text or of its tokens: the targets in a batch, the loss, the answers for the metrics.

    outputs: C, the width of what a model puts out for each target.
    """

    outputs: int
    of_tokens: ClassVar[bool] = False  # a target for each token asked for, or one for each text
    # Whether the rows of words that a client does not have get no gradient; a decoder tied to them gives them some.
    own_words: ClassVar[bool] = True

    def prepare(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """The batch with its targets under "labels"; rng: for an objective that draws them."""
        return batch

    def asked_of(self, tokens: int) -> int:
        """How much is asked in training of a text of so many tokens, its special ones among them."""
        return 1

    @abstractmethod
    def loss(self, outputs_NC: Tensor, targets_N: Tensor) -> Tensor:
        """Mean loss of a batch's targets."""

    def weight(self, batch: Batch) -> int:
        """What a batch counts in the mean loss of a round: its texts."""
        return len(batch["labels"])

    @abstractmethod
    def answer(self, outputs_NC: Tensor, batch: Batch) -> np.ndarray:
        """What is kept of a model's outputs for a batch, a row a text: [B, …], or [B, S, …] of tokens."""

    def shape(self, subset: Subset) -> tuple[int, ...]:
        """The shape of all answers for a subset."""
        return len(subset), self.outputs

    @abstractmethod
    def for_metrics(self, answers: np.ndarray, subset: Subset) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and references of a subset, a row a text, as the metrics of this objective take them."""

    def prior(self, known: Subset, subset: Subset) -> np.ndarray:
        """The answers for a subset of one who knows the targets of another alone; FederationError where none follow."""
        raise self._no_prior()

    def tally(self, known: Subset) -> Params:
        """What the others need to know of a client's targets before `with_prior`: counts, which add up over clients.

        Empty where they need to know nothing. FederationError where `with_prior` gives one.
        """
        raise self._no_prior()

    def with_prior(self, answers: np.ndarray, known: Subset, everyone: Mapping[str, Tensor]) -> np.ndarray:
        """A common model's answers with a client's own prior in place of everyone's; as many and of the same shape.

        known: the client's training examples. everyone: the sum of all clients' tallies. FederationError where nothing
        is known of a prior.
        """
        raise self._no_prior()

    def linear(self, features_NF: Any, targets_N: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
        """A linear model by scikit-learn: weights [C, F] and biases [C], whose outputs are answers.

        features: a sparse matrix. strength: inverse of the L2 penalty. FederationError where there is no such model.
        """
        raise FederationError(f"there is no linear model of {type(self).__name__}: choose another method")

    def _no_prior(self) -> FederationError:
        return FederationError(f"no answer follows from {type(self).__name__}'s targets alone: choose another method")
