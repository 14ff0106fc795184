"""The rounds of a cell before they are run: who takes part in each, and what each comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from benchmarks.errors import RoundRefusedError, UserError
from benchmarks.spec import Cell
from fedsim.data import Client
from fedsim.engine import FederatedAlgorithm, FederationState, draw_cohort
from fedsim.errors import FederationError
from fedsim.plan import ExchangePlan

K = TypeVar("K", bound=Hashable)
Amounts = Mapping[K, int]  # what is counted -> how much of it; amounts of clients and rounds add up
Measure = Callable[[FederationState, Sequence[Client]], tuple[FederationState, Amounts[K]]]


def cohorts(cell: Cell, clients: Sequence[Client]) -> Iterator[list[Client]]:
    """The clients that take part in each round of a cell, as the engine draws them; UserError without rounds."""
    if cell.training.rounds < 1:
        raise UserError(f"training.rounds: expected a number above 0, found {cell.training.rounds}")
    for number in range(1, cell.training.last_round + 1):
        yield draw_cohort(clients, cell.training.participation, cell.seed, number)


def round_examples(cell: Cell, clients: Sequence[Client], algorithm: FederatedAlgorithm) -> tuple[int, ...]:
    """Examples that go through the optimiser in each round of a cell, with its local epochs."""
    drawn = enumerate(cohorts(cell, clients), start=1)
    epochs = cell.training.local_epochs
    return tuple(epochs * sum(len(one.train) for one in algorithm.learners(number, cohort)) for number, cohort in drawn)


def amounts_by_round(
    algorithm: FederatedAlgorithm,
    state: FederationState,
    drawn: Iterable[Sequence[Client]],
    measure: Measure[K],
    of_client: Callable[[Client], Hashable],
) -> list[Amounts[K]]:
    """What each round comes to.

    state: before the first round. drawn: each round's cohort. measure: runs the round after a state with some clients,
    and counts. of_client: what of a client, beside its plan, decides about its amounts.
    A method that shows its plans is measured once for each distinct one, client by client; else every round is run
    that is not like one before.
    """
    known: dict[Hashable, Amounts[K]] = {}
    rounds: list[Amounts[K]] = []
    for number, cohort in enumerate(drawn):
        if algorithm.plan is None:
            learners = [(len(client.train), of_client(client)) for client in algorithm.learners(number + 1, cohort)]
            key = (algorithm.alike(number + 1) if algorithm.alike else number, *learners)
            if key in known:
                state = replace(state, round=number + 1)
            else:
                try:
                    state, known[key] = measure(state, cohort)
                except FederationError as error:
                    if number:
                        raise RoundRefusedError(str(error)) from None
                    raise
            rounds.append(known[key])
            continue
        keys = [(of_client(client), decisive(algorithm.plan(number + 1, client.id))) for client in cohort]
        for client, key in zip(cohort, keys, strict=True):
            if key not in known:
                known[key] = measure(replace(state, round=number), [client])[1]
        rounds.append(_sum(Counter(keys), known))
    return rounds


def _sum(times: Mapping[Hashable, int], known: Mapping[Hashable, Amounts[K]]) -> Amounts[K]:
    total: dict[K, int] = {}
    for key, count in times.items():
        for name, amount in known[key].items():
            total[name] = total.get(name, 0) + count * amount
    return total


def decisive(plan: ExchangePlan) -> Hashable:
    """What of a plan decides about bytes and arithmetic: not which of the server's layers a frozen one stands for."""
    exchanged = plan.download | plan.upload
    return (
        frozenset(plan.view),
        plan.train,
        plan.download,
        plan.upload,
        frozenset((name, plan.view[name]) for name in exchanged),
    )
