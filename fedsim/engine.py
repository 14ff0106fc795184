"""The engine: the only round loop. It calls every method through one signature."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fedsim.data import Client, Subset
from fedsim.errors import FederationError
from fedsim.plan import PlanFn
from fedsim.rng import SERVER, numpy_generator
from fedsim.server import Moments
from fedsim.store import ClientStore
from fedsim.train_config import TrainConfig
from fedsim.wire import Channel, LedgerRow, Params

if TYPE_CHECKING:
    from fedsim.checkpoint import Checkpoint

Scores = Mapping[str, float | None]  # metric -> value
Scorer = Callable[[np.ndarray, Subset], Scores]  # (the answers for a subset, one row per text; the subset)
Answers = Mapping[str, np.ndarray]  # "<client>/<evaluation>" -> the objective's answers for it
LAST_ROUNDS = 3  # rounds whose answers are kept, so that scores can average over them


@dataclass(frozen=True)
class FederationState:
    """A federation's state after `round` rounds.

    Args:
        shared: The server's tensors that a round has merged, by name.
        moments: The server optimiser's moments.
        clients: The tensors that stay with each client.
    """

    round: int
    shared: Params
    moments: Moments
    clients: ClientStore


@dataclass(frozen=True)
class RoundMetrics:
    """A round's mean training losses: per client, in cohort order, and over all their examples.

    measured: measures of the aggregation by name (see `fedsim.aggregation`); None if undefined.
    """

    client_losses: tuple[float, ...]
    train_loss: float | None
    measured: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class ClientUpdate:
    """All inputs to one client's part of a round; they determine its outcome.

    Args:
        shared: Merged tensors that the client uses but does not download in this round, by the server's names.
        private: Tensors that stayed with the client.
        received: Downloaded tensors, by the client's names.
        channel: Sends this update's payloads and counts them in a separate ledger.
    """

    round: int
    client: Client
    shared: Params
    private: Params
    received: Params
    channel: Channel


@dataclass(frozen=True)
class UpdateOutcome:
    """A client's uploaded and kept tensors, both by the client's names, and its mean loss.

    crossed: the ledger rows of the update's channel.
    """

    uploaded: Params
    kept: Params
    loss: float
    crossed: tuple[LedgerRow, ...] = ()


ComputeUpdate = Callable[[ClientUpdate], UpdateOutcome]
# Computes updates, in parallel or one by one, and returns the outcomes in order, as `map` does.
MapClients = Callable[[ComputeUpdate, Iterable[ClientUpdate]], Iterator[UpdateOutcome]]


RoundOutcome = tuple[FederationState, RoundMetrics]


def everyone(round: int, cohort: Sequence[Client]) -> Sequence[Client]:
    """The whole cohort."""
    return cohort


@dataclass(frozen=True)
class FederatedAlgorithm:
    """A method.

    Args:
        init: Creates the first state, and counts the set-up on the channel.
        predict: The answers for a subset, one row per text, from a client's model, or the server's if client is None.
        personal: Whether clients' answers differ; if not, a subset that several clients share is answered once.
        server: Every parameter of the server's model, by name; None if a method has no such model.
        plan: A client's exchange plan in a round, if it fully determines transfers and computation; else None, and a
            dry run executes the rounds.
        alike: A key per round for such a dry run; rounds with equal keys have equal transfers and computation. None:
            any two rounds may differ.
        learners: The clients in a cohort whose examples a round trains on.
        client_update: One client's computation in a round, in any process; None if a round cannot be divided by client.
    """

    init: Callable[[Sequence[Client], Channel, ClientStore], FederationState]
    round: Callable[[FederationState, Sequence[Client], Channel], RoundOutcome]
    predict: Callable[[FederationState, Client | None, Subset], np.ndarray]
    personal: bool = True
    server: Callable[[FederationState], Params] | None = None
    plan: PlanFn | None = None
    alike: Callable[[int], Hashable] | None = None
    learners: Callable[[int, Sequence[Client]], Sequence[Client]] = everyone
    client_update: ComputeUpdate | None = None


@dataclass(frozen=True)
class RoundResult:
    """A round's scores and losses.

    client_scores: evaluation -> metric -> value, per client in order. pooled_scores: the same over all clients'
    examples together.
    """

    round: int
    cohort: tuple[int, ...]
    metrics: RoundMetrics
    client_scores: tuple[Mapping[str, Scores], ...]
    pooled_scores: Mapping[str, Scores]


@dataclass
class Run:
    """A federation in progress: its state, channel, and every round's result.

    best: the number of the best round so far; None if no round has been chosen.
    answers: round -> the answers after it, for the last LAST_ROUNDS rounds and the best one.
    """

    state: FederationState
    channel: Channel
    results: list[RoundResult] = field(default_factory=list)
    best: int | None = None
    answers: dict[int, Answers] = field(default_factory=dict)


def draw_cohort(clients: Sequence[Client], participation: float, seed: int, round: int) -> list[Client]:
    """A round's clients, sampled without replacement, in client order (FedSplitBERT, Algorithm 1, line 3).

    participation: share of the clients, in (0, 1]; at least one is sampled. FederationError if a client has no training
    examples.
    """
    for client in clients:
        if not len(client.train):
            raise FederationError(
                f"client {client.id}: expected examples to train on, found none; choose fewer clients, another "
                f"partition, or a smaller held-out share"
            )
    return [clients[place] for place in drawn_places(len(clients), participation, seed, round)]


def drawn_places(clients: int, participation: float, seed: int, round: int) -> list[int]:
    """The positions of a round's participants in the list of clients, ascending; see `draw_cohort`."""
    size = max(1, int(participation * clients + 0.5))
    if size == clients:
        return list(range(clients))
    drawn = numpy_generator(seed, round, SERVER, "cohort").choice(clients, size=size, replace=False)
    return sorted(int(place) for place in drawn)


def cohorts(clients: Sequence[Client], config: TrainConfig, seed: int) -> Iterator[list[Client]]:
    """The participants of each of a run's rounds; see `draw_cohort`."""
    for round in range(1, config.last_round + 1):
        yield draw_cohort(clients, config.participation, seed, round)


def round_examples(
    algorithm: FederatedAlgorithm, clients: Sequence[Client], config: TrainConfig, seed: int
) -> tuple[int, ...]:
    """Training examples in each of a run's rounds, times local epochs."""
    drawn = enumerate(cohorts(clients, config, seed), start=1)
    learners = (algorithm.learners(round, cohort) for round, cohort in drawn)
    return tuple(config.local_epochs * sum(len(one.train) for one in each) for each in learners)


def answer(algorithm: FederatedAlgorithm, state: FederationState, clients: Sequence[Client]) -> Answers:
    """The answers for every client's evaluation sets, from the shared model or from each client's model."""
    by_subset: dict[int, np.ndarray] = {}  # a shared model's answers by subset id
    answers: dict[str, np.ndarray] = {}
    for client in clients:
        for name, subset in client.evaluation.items():
            if algorithm.personal or id(subset) not in by_subset:
                by_subset[id(subset)] = algorithm.predict(state, client, subset)
            answers[part_name(client, name)] = by_subset[id(subset)]
    return answers


def part_name(client: Client, evaluation: str) -> str:
    """The key of a client's evaluation set in `Answers`."""
    return f"{client.id}/{evaluation}"


def client_scores(answers: Answers, clients: Sequence[Client], score: Scorer) -> tuple[Mapping[str, Scores], ...]:
    """Every client's scores on its evaluation sets; shared answers are scored once."""
    by_part: dict[tuple[int, int], Scores] = {}

    def scores(client: Client, name: str, subset: Subset) -> Scores:
        part = answers[part_name(client, name)]
        key = id(part), id(subset)
        if key not in by_part:
            by_part[key] = score(part, subset)
        return by_part[key]

    return tuple(
        {name: scores(client, name, subset) for name, subset in client.evaluation.items()} for client in clients
    )


def pooled_scores(answers: Answers, clients: Sequence[Client], score: Scorer) -> dict[str, Scores]:
    """Scores on all clients' examples together, where a client's label distribution alone gives no advantage."""
    scores: dict[str, Scores] = {}
    for name, first in clients[0].evaluation.items():
        indices = np.concatenate([client.evaluation[name].indices for client in clients])
        together = _stacked([answers[part_name(client, name)] for client in clients])
        scores[name] = score(together, Subset(first.examples, indices))
    return scores


def _stacked(answers: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate answers; token answers are padded to the widest."""
    if answers[0].ndim > 1:
        widest = max(part.shape[1] for part in answers)
        rest = [(0, 0)] * (answers[0].ndim - 2)
        answers = [np.pad(part, [(0, 0), (0, widest - part.shape[1]), *rest]) for part in answers]
    return np.concatenate(answers)


def run_federation(
    algorithm: FederatedAlgorithm,
    clients: Sequence[Client],
    channel: Channel,
    score: Scorer,
    *,
    rounds: int,
    seed: int,
    participation: float = 1.0,
    checkpoint: Checkpoint | None = None,
    store: ClientStore | None = None,
    is_best: Callable[[Sequence[RoundResult]], bool] = lambda results: False,
    on_start: Callable[[Run], None] = lambda run: None,
    on_round: Callable[[Run], None] = lambda run: None,
) -> Run:
    """Run a method for `rounds` rounds and score each one; resume after the checkpoint's last round.

    is_best: whether the last of the given rounds is the best one; its answers are then kept.
    """
    store = store or ClientStore(checkpoint.folder if checkpoint else None)
    channel.keep_in(store)
    run = Run(algorithm.init(clients, channel, store), channel)
    if checkpoint is not None:
        checkpoint.restore(run)
    on_start(run)
    while run.state.round < rounds:
        number = channel.round = run.state.round + 1
        cohort = draw_cohort(clients, participation, seed, number)
        run.state, metrics = algorithm.round(run.state, cohort, channel)
        answers = answer(algorithm, run.state, clients)
        scores = client_scores(answers, clients, score), pooled_scores(answers, clients, score)
        run.results.append(RoundResult(number, tuple(client.id for client in cohort), metrics, *scores))
        if is_best(run.results):
            run.best = number
        run.answers[number] = answers
        wanted = {*range(number - LAST_ROUNDS + 1, number + 1), run.best}
        run.answers = {round: kept for round, kept in run.answers.items() if round in wanted}
        if checkpoint is not None:
            checkpoint.save(run)
        on_round(run)
    return run
