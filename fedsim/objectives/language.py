"""Language models: tokens that are hidden, or those that come next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fedsim.data import IGNORED, Batch, Subset
from fedsim.errors import FederationError
from fedsim.objectives.base import NO_WORDS, Vocabulary
from fedsim.objectives.tokens import ROWS, OfTokens

SPECIAL = 2  # tokens of a text that are never masked: [CLS], [SEP]


class _LanguageModel(OfTokens):
    """Answers are a text's summed log-likelihood in nats and how many tokens it is of: float64 [n, 2]."""

    own_words: ClassVar[bool] = False

    def weight(self, batch: Batch) -> int:
        """The tokens asked for, so that a round's mean loss is one a token."""
        return int((batch["labels"] != IGNORED).sum())

    def answer(self, outputs_NC: Tensor, batch: Batch) -> np.ndarray:
        labels_BS = batch["labels"]
        asked_BS = labels_BS != IGNORED
        targets_N = labels_BS[asked_BS].to(outputs_NC.device)
        parts = zip(outputs_NC.split(ROWS), targets_N.split(ROWS), strict=True)
        losses = [functional.cross_entropy(logits, targets, reduction="none") for logits, targets in parts]
        found = np.zeros((len(labels_BS), 2))
        rows_N = asked_BS.nonzero()[:, 0].numpy()
        np.add.at(found[:, 0], rows_N, -torch.cat(losses).double().cpu().numpy() if losses else 0.0)
        found[:, 1] = asked_BS.sum(1).numpy()
        return found

    def shape(self, subset: Subset) -> tuple[int, ...]:
        return len(subset), 2

    def for_metrics(self, answers: np.ndarray, subset: Subset) -> tuple[np.ndarray, np.ndarray]:
        return answers[:, 0], answers[:, 1].astype(np.int64)


@dataclass(frozen=True)
class MaskedLM(_LanguageModel):
    """Masked tokens of a text, from those around them (Devlin et al. 2019, section 3.1 and appendix A.1).

    Of a batch's ordinary tokens a `share` is masked, at least one, drawn anew for each batch: most become the mask
    token, some (`random_share`) any ordinary token, the rest stay. Only masked tokens are asked for.
    """

    vocabulary: Vocabulary = NO_WORDS
    share: float = 0.15
    mask_share: float = 0.8
    random_share: float = 0.1

    def __post_init__(self) -> None:
        if self.vocabulary.mask_id is None:
            raise FederationError("masked language modelling: expected a tokenizer with a mask token, found none")
        if not 0 < self.share < 1:
            raise FederationError(f"masked language modelling: expected a share in (0, 1), found {self.share}")

    def asked_of(self, tokens: int) -> int:
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
    """Each token from those before it (Radford et al. 2018, equation 1); the first one is given."""

    def asked_of(self, tokens: int) -> int:
        return tokens - 1

    def prepare(self, batch: Batch, rng: np.random.Generator) -> Batch:
        labels_BS = torch.full_like(batch["input_ids"], IGNORED)
        present_BS = batch["attention_mask"][:, 1:].bool()
        labels_BS[:, :-1] = torch.where(present_BS, batch["input_ids"][:, 1:], IGNORED)
        return {**batch, "labels": labels_BS}
