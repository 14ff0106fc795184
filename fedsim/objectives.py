"""Objectives: a model's training targets, loss and answers.

Targets are a class or score per text, a tag or the identity of each token, and masked or next tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fedsim.data import IGNORED, Batch, Subset
from fedsim.errors import FederationError, named
from fedsim.wire import Params

# Shape suffixes: n texts in a subset, B batch, S tokens, N targets in a batch (B, or tokens with a target), C outputs,
# V vocabulary, E word-embedding width.


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A language model's vocabulary.

    size: V, the number of word embeddings. ordinary_ids: ids of non-special tokens, ascending int64. mask_id: the mask
    token; None for a tokenizer without one.
    """

    size: int
    ordinary_ids: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    mask_id: int | None = None


NO_VOCABULARY = Vocabulary(0)  # for objectives without a vocabulary


@dataclass(frozen=True)
class Objective(ABC):
    """A training objective: the targets of a batch, the loss, and the answers that metrics score.

    outputs: C, the number of model outputs per target.
    """

    outputs: int
    of_tokens: ClassVar[bool] = False  # one target per token, or one per text
    # Whether only the tokens in a batch get embedding gradients; a tied decoder gives every token a gradient.
    sparse_gradients: ClassVar[bool] = True

    def prepare(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """The batch with its targets under "labels"; rng: for objectives with random targets."""
        return batch

    def targets_in(self, tokens: int) -> int:
        """The number of training targets in a text with this many tokens, special ones included."""
        return 1

    @abstractmethod
    def loss(self, outputs_NC: Tensor, targets_N: Tensor) -> Tensor:
        """Mean loss over a batch's targets."""

    def weight(self, batch: Batch) -> int:
        """A batch's weight in the round's mean loss: its number of texts."""
        return len(batch["labels"])

    @abstractmethod
    def answer(self, outputs_NC: Tensor, batch: Batch) -> np.ndarray:
        """The answers for a batch, from the model's outputs, one row per text: [B, …], or [B, S, …] for tokens."""

    def shape(self, subset: Subset) -> tuple[int, ...]:
        """The shape of all answers for a subset."""
        return len(subset), self.outputs

    @abstractmethod
    def for_metrics(self, answers: np.ndarray, subset: Subset) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and references for a subset, one row per text, as the objective's metrics take them."""

    def prior(self, train: Subset, subset: Subset) -> np.ndarray:
        """Answers for a subset, derived only from the targets in `train`; FederationError without a prior."""
        raise self._no_prior()

    def tally(self, train: Subset) -> Params:
        """A client's target counts for `with_prior`, to be summed over clients.

        Empty if no counts are needed. FederationError if the objective has no prior.
        """
        raise self._no_prior()

    def with_prior(self, answers: np.ndarray, train: Subset, everyone: Mapping[str, Tensor]) -> np.ndarray:
        """A shared model's answers with the overall prior replaced by one client's prior; same shape.

        train: the client's training examples. everyone: the sum of all clients' tallies. FederationError if the
        objective has no prior.
        """
        raise self._no_prior()

    def _no_prior(self) -> FederationError:
        return FederationError(f"no answer follows from {type(self).__name__}'s targets alone: choose another method")


ROWS = 256  # tokens compared with the whole vocabulary at once
SPECIAL = 2  # tokens per text that are never masked: [CLS], [SEP]


class Classification(Objective):
    """One of C classes per text. Loss: cross-entropy; answers: logits [n, C]; predictions: label ids [n]."""

    def loss(self, outputs_NC: Tensor, targets_N: Tensor) -> Tensor:
        return functional.cross_entropy(outputs_NC, targets_N)

    def answer(self, outputs_NC: Tensor, batch: Batch) -> np.ndarray:
        return outputs_NC.cpu().numpy()

    def for_metrics(self, answers: np.ndarray, subset: Subset) -> tuple[np.ndarray, np.ndarray]:
        return answers.argmax(axis=1), subset.labels

    def prior(self, train: Subset, subset: Subset) -> np.ndarray:
        """The most frequent class; ties go to the smallest id."""
        return np.tile(most_frequent(train.labels, self.outputs), (len(subset), 1))

    def tally(self, train: Subset) -> Params:
        """How often each class occurs, int32 [C]."""
        return {"classes": torch.from_numpy(np.bincount(train.labels, minlength=self.outputs).astype(np.int32))}

    def with_prior(self, answers: np.ndarray, train: Subset, everyone: Mapping[str, Tensor]) -> np.ndarray:
        """Logit adjustment (Menon et al. 2021, section 4.1) from the overall class shares to the client's.

        It adds log p_client - log p_everyone to the logits; shares have add-one smoothing.
        """
        client, overall = (counts["classes"].cpu().numpy() + 1.0 for counts in (self.tally(train), everyone))
        adjustment: np.ndarray = np.log(client / client.sum()) - np.log(overall / overall.sum())
        return answers + adjustment.astype(answers.dtype)


@dataclass(frozen=True)
class Regression(Classification):
    """A score per text. Loss: mean squared error; answers: scores [n, 1]; predictions: scores [n]."""

    outputs: int = 1

    def loss(self, outputs_NC: Tensor, targets_N: Tensor) -> Tensor:
        return functional.mse_loss(outputs_NC.squeeze(-1), targets_N)

    def for_metrics(self, answers: np.ndarray, subset: Subset) -> tuple[np.ndarray, np.ndarray]:
        return answers[:, 0].astype(np.float64), subset.labels

    def prior(self, train: Subset, subset: Subset) -> np.ndarray:
        """The mean score."""
        return np.full((len(subset), 1), train.labels.mean(), dtype=np.float32)

    def tally(self, train: Subset) -> Params:
        """Empty: the client's scores are enough."""
        return {}

    def with_prior(self, answers: np.ndarray, train: Subset, everyone: Mapping[str, Tensor]) -> np.ndarray:
        """Clip outputs to the range of the client's scores: the analogue with a uniform prior on that range."""
        return answers.clip(train.labels.min(), train.labels.max())


def most_frequent(ids: np.ndarray, classes: int) -> np.ndarray:
    """Logits, float32 [C]: 1 at the most frequent id (ties: the smallest), 0 elsewhere."""
    row = np.zeros(classes, dtype=np.float32)
    row[np.bincount(ids, minlength=classes).argmax()] = 1
    return row


class OfTokens(Objective):
    """One target per token; IGNORED targets are left out."""

    of_tokens: ClassVar[bool] = True

    def loss(self, outputs_NC: Tensor, targets_N: Tensor) -> Tensor:
        return functional.cross_entropy(outputs_NC, targets_N, reduction="sum") / max(1, len(targets_N))

    def targets_in(self, tokens: int) -> int:
        return tokens

    def placed(self, values_N: np.ndarray, batch: Batch) -> np.ndarray:
        """Values of the tokens with a target, at their positions: [B, S, …]; 0 elsewhere."""
        is_target_BS = (batch["labels"] != IGNORED).numpy()
        values_BS = np.zeros((*is_target_BS.shape, *values_N.shape[1:]), dtype=values_N.dtype)
        values_BS[is_target_BS] = values_N
        return values_BS


class TokenClassification(OfTokens):
    """One of C tags per token. Loss: cross-entropy; answers: logits [n, S, C]; predictions: tag ids [n, S]."""

    def shape(self, subset: Subset) -> tuple[int, ...]:
        return len(subset), subset.longest, self.outputs

    def answer(self, outputs_NC: Tensor, batch: Batch) -> np.ndarray:
        return self.placed(outputs_NC.cpu().numpy(), batch)

    def for_metrics(self, answers: np.ndarray, subset: Subset) -> tuple[np.ndarray, np.ndarray]:
        references = subset.references
        return np.where(references == IGNORED, IGNORED, answers.argmax(axis=2)), references

    def prior(self, train: Subset, subset: Subset) -> np.ndarray:
        """The most frequent tag."""
        tags = train.references
        return np.tile(most_frequent(tags[tags != IGNORED], self.outputs), (len(subset), subset.longest, 1))


@dataclass(frozen=True)
class TokenRecovery(OfTokens):
    """The tokens themselves, from the model's estimates of their word embeddings, [N, E].

    The answer is the token whose embedding has the largest dot product with the estimate, out of the whole vocabulary.
    The loss is the cross-entropy over tokens in the training texts. Answers are ids [n, S].
    embeddings_VE: the public word embeddings. occurring_C: ids of the tokens in the training texts, ascending.
    """

    embeddings_VE: Tensor | None = None
    occurring_C: Tensor | None = None

    def shape(self, subset: Subset) -> tuple[int, ...]:
        return len(subset), subset.longest

    def loss(self, outputs_NC: Tensor, targets_N: Tensor) -> Tensor:
        embeddings_VE, occurring_C = self._tensors()
        return super().loss(outputs_NC @ embeddings_VE[occurring_C].T, torch.searchsorted(occurring_C, targets_N))

    def answer(self, outputs_NC: Tensor, batch: Batch) -> np.ndarray:
        embeddings_VE, _ = self._tensors()
        ids_N = torch.cat([(rows @ embeddings_VE.T).argmax(1) for rows in outputs_NC.split(ROWS)])
        return self.placed(ids_N.cpu().numpy(), batch)

    def for_metrics(self, answers: np.ndarray, subset: Subset) -> tuple[np.ndarray, np.ndarray]:
        return answers, subset.references

    def _tensors(self) -> tuple[Tensor, Tensor]:
        if self.embeddings_VE is None or self.occurring_C is None:
            raise FederationError("token recovery: expected a method that recovers tokens, such as inversion")
        return self.embeddings_VE, self.occurring_C


class _LanguageModel(OfTokens):
    """Answers are a text's summed log-likelihood in nats and its number of predicted tokens: float64 [n, 2]."""

    sparse_gradients: ClassVar[bool] = False

    def weight(self, batch: Batch) -> int:
        """The number of tokens with a target, so that a round's mean loss is per token."""
        return int((batch["labels"] != IGNORED).sum())

    def answer(self, outputs_NC: Tensor, batch: Batch) -> np.ndarray:
        labels_BS = batch["labels"]
        is_target_BS = labels_BS != IGNORED
        targets_N = labels_BS[is_target_BS].to(outputs_NC.device)
        parts = zip(outputs_NC.split(ROWS), targets_N.split(ROWS), strict=True)
        losses = [functional.cross_entropy(logits, targets, reduction="none") for logits, targets in parts]
        sums_B2 = np.zeros((len(labels_BS), 2))
        rows_N = is_target_BS.nonzero()[:, 0].numpy()
        np.add.at(sums_B2[:, 0], rows_N, -torch.cat(losses).double().cpu().numpy() if losses else 0.0)
        sums_B2[:, 1] = is_target_BS.sum(1).numpy()
        return sums_B2

    def shape(self, subset: Subset) -> tuple[int, ...]:
        return len(subset), 2

    def for_metrics(self, answers: np.ndarray, subset: Subset) -> tuple[np.ndarray, np.ndarray]:
        return answers[:, 0], answers[:, 1].astype(np.int64)


@dataclass(frozen=True)
class MaskedLM(_LanguageModel):
    """Predicts masked tokens from their context (Devlin et al. 2019, section 3.1 and appendix A.1).

    Each batch masks a random `share` of its ordinary tokens, at least one. Of these, `mask_share` become the mask
    token, `random_share` a random ordinary token, and the rest stay. Only masked tokens have a target.
    """

    vocabulary: Vocabulary = NO_VOCABULARY
    share: float = 0.15
    mask_share: float = 0.8
    random_share: float = 0.1

    def __post_init__(self) -> None:
        if self.vocabulary.mask_id is None:
            raise FederationError("masked language modelling: expected a tokenizer with a mask token, found none")
        if not 0 < self.share < 1:
            raise FederationError(f"masked language modelling: expected a share in (0, 1), found {self.share}")

    def targets_in(self, tokens: int) -> int:
        return round(self.share * (tokens - SPECIAL))

    def prepare(self, batch: Batch, rng: np.random.Generator) -> Batch:
        ids_BS = batch["input_ids"].numpy().copy()
        flat, targets = ids_BS.reshape(-1), np.full(ids_BS.size, IGNORED, dtype=np.int64)
        ordinary_ids = self.vocabulary.ordinary_ids
        candidates = np.flatnonzero(np.isin(flat, ordinary_ids))
        masked = min(len(candidates), max(1, round(self.share * len(candidates))))
        places = np.sort(rng.choice(candidates, size=masked, replace=False)) if masked else candidates
        targets[places] = flat[places]
        fate = rng.random(len(places))
        drawn = rng.choice(ordinary_ids, size=len(places))
        flat[places] = np.where(fate < self.mask_share + self.random_share, drawn, flat[places])
        flat[places[fate < self.mask_share]] = self.vocabulary.mask_id
        labels_BS = torch.from_numpy(targets.reshape(ids_BS.shape))
        return {**batch, "input_ids": torch.from_numpy(ids_BS), "labels": labels_BS}


class CausalLM(_LanguageModel):
    """Predicts each token from those before it (Radford et al. 2018, equation 1); the first token is given."""

    def targets_in(self, tokens: int) -> int:
        return tokens - 1

    def prepare(self, batch: Batch, rng: np.random.Generator) -> Batch:
        labels_BS = torch.full_like(batch["input_ids"], IGNORED)
        present_BS = batch["attention_mask"][:, 1:].bool()
        labels_BS[:, :-1] = torch.where(present_BS, batch["input_ids"][:, 1:], IGNORED)
        return {**batch, "labels": labels_BS}


OBJECTIVES: Mapping[str, type[Objective]] = {
    "classification": Classification,
    "regression": Regression,
    "token_classification": TokenClassification,
    "token_recovery": TokenRecovery,
    "masked_lm": MaskedLM,
    "causal_lm": CausalLM,
}
LANGUAGE_MODELS = tuple(name for name, kind in OBJECTIVES.items() if not kind.sparse_gradients)


def build_objective(
    name: str, classes: int = 1, vocabulary: Vocabulary | None = None, options: Mapping[str, Any] | None = None
) -> Objective:
    """Build the named objective.

    classes: number of labels or tags. vocabulary: for a language model. options: the objective's, such as `share`.
    FederationError if the name or an option is unknown.
    """
    if name not in OBJECTIVES:
        raise FederationError(f"unknown objective {name!r}: expected one of {', '.join(OBJECTIVES)}")
    kind, given = OBJECTIVES[name], dict(options or {})
    vocabulary = vocabulary or NO_VOCABULARY
    if kind is MaskedLM:
        given["vocabulary"] = vocabulary
    names = sorted(each.name for each in fields(kind))
    if unknown := sorted({*given} - {*names}):
        raise FederationError(f"objective {name}: unknown {named('option', unknown)}; its options: {', '.join(names)}")
    outputs = 1 if kind is Regression else classes if kind.sparse_gradients else vocabulary.size
    return kind(**{"outputs": outputs, **given})
