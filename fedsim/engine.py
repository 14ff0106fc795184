"""The engine: the only round loop. It knows one signature and no method's name."""

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
from fedsim.wire import Channel, LedgerRow, Params

if TYPE_CHECKING:
    from fedsim.checkpoint import Checkpoint

Scores = Mapping[str, float | None]  # metric -> value
Scorer = Callable[[np.ndarray, Subset], Scores]  # (the objective's answers for a subset, a row a text; the subset)
Answers = Mapping[str, np.ndarray]  # "<client>/<evaluation>" -> the objective's answers for it
LAST_ROUNDS = 3  # whose answers are kept, so that scores can average over them


@dataclass(frozen=True)
class FederationState:
    """All that a federation has learned after `round` rounds.

    shared: the server's tensors by name, once a round has merged them; moments: the server optimiser's;
    clients: what stays with each client.
    """

    round: int
    shared: Params
    moments: Moments
    clients: ClientStore


@dataclass(frozen=True)
class RoundMetrics:
    """The mean training loss of each client in a round's cohort, in order, and over all their examples.

    measured: numbers of the aggregation by name, such as those of `fedsim.aggregation`; None where one is undefined.
    """

    client_losses: tuple[float, ...]
    train_loss: float | None
    measured: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class ClientUpdate:
    """The inputs of one client's part of a round; nothing else decides its outcome.

    shared: merged tensors that the client views and does not download in this round, by the server's names.
    private: tensors that stayed with the client. received: tensors that it downloads, by its own names.
    channel: sends the payloads of this update and counts them in a separate ledger.
    """

    round: int
    client: Client
    shared: Params
    private: Params
    received: Params
    channel: Channel


@dataclass(frozen=True)
class UpdateOutcome:
    """The tensors that a client uploads, those that stay with it (both by its own names), and its mean loss.

    crossed: the ledger rows of the update's channel.
    """

    uploaded: Params
    kept: Params
    loss: float
    crossed: tuple[LedgerRow, ...] = ()


ComputeUpdate = Callable[[ClientUpdate], UpdateOutcome]
# Computes updates, several at a time or one by one, and returns the outcomes in the same order, as `map` does.
MapClients = Callable[[ComputeUpdate, Iterable[ClientUpdate]], Iterator[UpdateOutcome]]


RoundOutcome = tuple[FederationState, RoundMetrics]


def everyone(round: int, cohort: Sequence[Client]) -> Sequence[Client]:
    """All of a cohort."""
    return cohort


@dataclass(frozen=True)
class FederatedAlgorithm:
    """A method.

    init: counts the set-up on the channel.
    predict: the objective's answers for a subset, a row a text, by a client's model; by the server's if client is None.
    personal: whether clients' answers differ; if not, a subset that several clients are scored on is answered once.
    server: every parameter of the server's model, by name; None if a method has no such model.
    plan: of a client in a round, if it alone decides what the client exchanges and computes; else None, and a dry run
    has to run the rounds.
    alike: a key of each round for such a dry run; rounds with the same key exchange and compute the same. None: no two
    rounds are known to be alike.
    learners: the clients of a round's cohort on whose examples it trains.
    client_update: what one client computes in a round, in any process; None if a round is one piece.
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
    """The scores and losses that are kept of a round.

    client_scores: evaluation -> metric -> value, for each client in order. pooled_scores: the same of all clients'
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
    answers: round -> the answers after it, of the last LAST_ROUNDS rounds and of the best one.
    """

    state: FederationState
    channel: Channel
    results: list[RoundResult] = field(default_factory=list)
    best: int | None = None
    answers: dict[int, Answers] = field(default_factory=dict)


def draw_cohort(clients: Sequence[Client], participation: float, seed: int, round: int) -> list[Client]:
    """The clients of a round, drawn without replacement, in client order (line 3 of FedSplitBERT's Algorithm 1).

    participation: share of the clients, in (0, 1]; at least one is drawn. FederationError where a client has
    nothing to train on.
    """
    for client in clients:
        if not len(client.train):
            raise FederationError(
                f"client {client.id}: expected examples to train on, found none; choose fewer clients, another "
                f"partition, or a smaller share that is held back"
            )
    return [clients[place] for place in drawn_places(len(clients), participation, seed, round)]


def drawn_places(clients: int, participation: float, seed: int, round: int) -> list[int]:
    """The places in the list of clients of those that take part in a round, in order; see `draw_cohort`."""
    size = max(1, int(participation * clients + 0.5))
    if size == clients:
        return list(range(clients))
    drawn = numpy_generator(seed, round, SERVER, "cohort").choice(clients, size=size, replace=False)
    return sorted(int(place) for place in drawn)


def answer(algorithm: FederatedAlgorithm, state: FederationState, clients: Sequence[Client]) -> Answers:
    """The answers for every client's evaluation sets, by the shared model or by each client's own."""
    by_subset: dict[int, np.ndarray] = {}  # of a shared model, by part
    answers: dict[str, np.ndarray] = {}
    for client in clients:
        for name, subset in client.evaluation.items():
            if algorithm.personal or id(subset) not in by_subset:
                by_subset[id(subset)] = algorithm.predict(state, client, subset)
            answers[part_name(client, name)] = by_subset[id(subset)]
    return answers


def part_name(client: Client, evaluation: str) -> str:
    """The name of a client's evaluation set among answers."""
    return f"{client.id}/{evaluation}"


def client_scores(answers: Answers, clients: Sequence[Client], score: Scorer) -> tuple[Mapping[str, Scores], ...]:
    """Every client's scores on its own evaluation sets; answers that several share are scored once."""
    by_part: dict[tuple[int, int], Scores] = {}

    def scores(client: Client, name: str, subset: Subset) -> Scores:
        own = answers[part_name(client, name)]
        key = id(own), id(subset)
        if key not in by_part:
            by_part[key] = score(own, subset)
        return by_part[key]

    return tuple(
        {name: scores(client, name, subset) for name, subset in client.evaluation.items()} for client in clients
    )


def pooled_scores(answers: Answers, clients: Sequence[Client], score: Scorer) -> dict[str, Scores]:
    """Scores on all clients' examples together: knowing a client's share of each label helps no one here by itself."""
    scores: dict[str, Scores] = {}
    for name, first in clients[0].evaluation.items():
        indices = np.concatenate([client.evaluation[name].indices for client in clients])
        together = _stacked([answers[part_name(client, name)] for client in clients])
        scores[name] = score(together, Subset(first.examples, indices))
    return scores


def _stacked(answers: Sequence[np.ndarray]) -> np.ndarray:
    """Answers one under the other; those of tokens as wide as the widest."""
    if answers[0].ndim > 1:
        widest = max(own.shape[1] for own in answers)
        rest = [(0, 0)] * (answers[0].ndim - 2)
        answers = [np.pad(own, [(0, 0), (0, widest - own.shape[1]), *rest]) for own in answers]
    return np.concatenate(answers)


def _is_kept(round: int, run: Run) -> bool:
    """Whether the answers after a round are kept."""
    return round > run.state.round - LAST_ROUNDS or round == run.best


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
    """Run a method for `rounds` rounds, scoring after each; resumes after the checkpoint's last round.

    is_best: whether the last of some rounds is the best of them; its answers are kept.
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
        run.answers = {round: kept for round, kept in run.answers.items() if _is_kept(round, run)}
        if checkpoint is not None:
            checkpoint.save(run)
        on_round(run)
    return run
