"""The unigram model: each token by its share of the training texts. The baseline of language models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fedsim.algorithms import Workload, silent_start
from fedsim.algorithms.central import pooled
from fedsim.data import IGNORED, Client, Subset, evaluation_batches
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.errors import FederationError
from fedsim.objectives import CausalLM, MaskedLM
from fedsim.rng import SERVER, numpy_generator
from fedsim.wire import Channel

TRAINS = False


def unigram(setting: Workload) -> FederatedAlgorithm:
    """Count how often each token occurs in all clients' texts together, plus one (Laplace); nothing is sent.

    It is asked for the same tokens as a model. In masked language modelling special tokens are never masked, so they
    have no share. FederationError if the objective is no language model.
    """
    objective = setting.objective
    if not isinstance(objective, CausalLM | MaskedLM):
        raise FederationError(f"unigram: expected a language model's objective, found {type(objective).__name__}")

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        counts = torch.ones(objective.outputs, dtype=torch.float64)
        for _, batch in evaluation_batches(pooled(cohort), setting.evaluation_batch_size, setting.training.width):
            tokens = batch["input_ids"][batch["attention_mask"].bool()]
            counts += torch.bincount(tokens, minlength=objective.outputs)
        if isinstance(objective, MaskedLM):
            special = torch.ones_like(counts, dtype=torch.bool)
            special[torch.from_numpy(objective.vocabulary.ordinary_ids)] = False
            counts[special] = 0
        shares = {"shares": counts / counts.sum()}
        return FederationState(state.round + 1, shares, {}, state.clients), RoundMetrics((), None)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        log_shares_C = state.shared["shares"].cpu().log().float()
        answers = np.zeros(objective.shape(subset))
        rng = numpy_generator(0, 0, SERVER, "evaluation")  # as a model's answers are drawn
        for positions, drawn in evaluation_batches(subset, setting.evaluation_batch_size, setting.training.width):
            batch = objective.prepare(drawn, rng)
            asked = int((batch["labels"] != IGNORED).sum())
            answers[positions] = objective.answer(log_shares_C.expand(asked, -1), batch)
        return answers

    return FederatedAlgorithm(silent_start, round, predict, personal=False)
