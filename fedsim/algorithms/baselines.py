"""Baselines: references without training rounds. Only the label prior exchanges anything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fedsim.algorithms import Workload, idle_round, require_choice, silent_start
from fedsim.algorithms.central import pooled
from fedsim.data import IGNORED, Client, Subset, evaluation_batches
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics, RoundOutcome
from fedsim.errors import FederationError
from fedsim.objectives import CausalLM, MaskedLM
from fedsim.rng import SERVER, numpy_generator
from fedsim.store import ClientStore
from fedsim.wire import Channel, Params

UNTRAINED = ("untrained", "local_majority", "local_prior", "unigram")


def untrained(workload: Workload) -> FederatedAlgorithm:
    """The untrained model for all clients; its answers are the same after every round."""

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        return workload.answers(workload.server_params(state), subset)

    return FederatedAlgorithm(silent_start, idle_round, predict, personal=False, server=workload.server_params)


def local_majority(workload: Workload, whose: str = "own") -> FederatedAlgorithm:
    """The baseline that personalisation has to beat: answers derived only from a client's training labels.

    The most frequent class or tag (ties: the smallest id); for a score, the mean training score. whose: a client's
    "own" labels, or those of "all" clients together, so that all clients answer the same.
    """
    require_choice("whose", whose, ("own", "all"))
    everyone: list[Client] = []

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        everyone[:] = clients
        return silent_start(clients, channel, store)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        if whose == "all":
            return workload.objective.prior(pooled(everyone), subset)
        if client is None:
            raise FederationError("local majority: expected a client, found the server, which has no labels")
        return workload.objective.prior(client.train, subset)

    return FederatedAlgorithm(init, idle_round, predict, personal=whose == "own")


def local_prior(workload: Workload) -> FederatedAlgorithm:
    """Nothing is trained: clients answer with the initial model, corrected by their label distribution.

    A client's logits get log p_own - log p_all, with add-one smoothing (section 4.1's adjustment, from the shares that
    the model was trained on to the client's). In the single round each client's label counts go up and their sum comes
    down, as kind "counts" with 4 bytes per label. Scores are instead clipped to the range of the client's scores, for
    which nothing is sent. The server answers with the unchanged model.
    """
    objective = workload.objective

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        for client in clients:
            channel.setup(client.id, workload.initial)
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(state: FederationState, cohort: Sequence[Client], channel: Channel) -> RoundOutcome:
        if state.round > 0:
            raise FederationError("local prior: expected 1 round, found more; set training.rounds=1")
        everyone: Params = {}
        for client in cohort:
            for name, counts in channel.to_server(client.id, objective.tally(client.train), "counts").items():
                everyone[name] = everyone[name] + counts if name in everyone else counts
        for client in cohort:
            channel.to_client(client.id, everyone, "counts")
        return FederationState(1, everyone, {}, state.clients), RoundMetrics((), None)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        answers = workload.answers(workload.initial, subset)
        return answers if client is None else objective.with_prior(answers, client.train, state.shared)

    return FederatedAlgorithm(init, round, predict, server=lambda state: dict(workload.initial))


def unigram(workload: Workload) -> FederatedAlgorithm:
    """Count how often each token occurs in all clients' texts together, plus one (Laplace); nothing is sent.

    It predicts the same tokens as a model does. In masked language modelling special tokens are never masked, so their
    share is 0. FederationError unless the objective is a language model's.
    """
    objective = workload.objective
    if not isinstance(objective, CausalLM | MaskedLM):
        raise FederationError(f"unigram: expected a language model's objective, found {type(objective).__name__}")

    def round(state: FederationState, cohort: Sequence[Client], channel: Channel) -> RoundOutcome:
        counts = torch.ones(objective.outputs, dtype=torch.float64)
        for _, batch in evaluation_batches(pooled(cohort), workload.evaluation_batch_size, workload.training.width):
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
        rng = numpy_generator(0, 0, SERVER, "evaluation")  # the same generator as for a model's answers
        for positions, drawn in evaluation_batches(subset, workload.evaluation_batch_size, workload.training.width):
            batch = objective.prepare(drawn, rng)
            targets = int((batch["labels"] != IGNORED).sum())
            answers[positions] = objective.answer(log_shares_C.expand(targets, -1), batch)
        return answers

    return FederatedAlgorithm(silent_start, round, predict, personal=False)
