"""Traffic: bytes from the ledger or from shapes, in the directions that a paper counts.

No other file reads ledgers, rounds' bytes and wire plans.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import pandas as pd

from benchmarks.costs import Work
from benchmarks.costs.networks import ACCOMPANYING, BATCHWISE, Turn
from benchmarks.dry_run import shapes
from benchmarks.experiment import Benchmark, Column, Row
from benchmarks.results import Find, LedgerEntry, RunResult, all_stages, stage_bytes
from reports.evidence.records import Request
from reports.evidence.statistics import mean


def sent_by_round(record: RunResult, directions: Sequence[str]) -> list[int]:
    """Payload bytes of all clients before the first round and after each one, summed, without set-up."""
    sizes = (sum(getattr(entry, f"{way}_bytes") for way in directions) for entry in record.rounds)
    return list(accumulate(sizes, initial=0))


def values_until(record: RunResult, rounds: int, directions: Sequence[str]) -> int:
    """Numbers sent in the first rounds, before the codec; without set-up."""
    return sum(row.values for row in record.ledger if 1 <= row.round <= rounds and row.direction in directions)


def turns_of(record: RunResult, work: Work) -> list[list[Turn]]:
    """Each client's traffic and computation in each round, from the ledger and shapes; without set-up.

    If a round exchanges activations, the clients that send them train; otherwise the whole cohort does.
    """
    sums: dict[int, dict[int, Counter[str]]] = {entry.round: {} for entry in record.rounds}
    splits = {(row.round, row.client) for row in record.ledger if row.kind == "activations"}
    for row in record.ledger:
        if row.round in sums:
            one = sums[row.round].setdefault(row.client, Counter())
            one[row.direction] += row.bytes
            one["messages"] += 0 if row.kind in ACCOMPANYING else row.messages
    epochs, rounds = record.cell.training.local_epochs, list[list[Turn]]()
    for entry in record.rounds:
        learners = {client for number, client in splits if number == entry.round} or set(entry.cohort)
        turns = list[Turn]()
        for client in sorted(sums[entry.round].keys() | learners):
            sent, texts = sums[entry.round].get(client, Counter()), 0
            if client in learners:
                texts = int(record.clients[client]["train"])
            once = work.features * texts if entry.round == 1 else 0.0
            operations = (epochs * texts * work.client + once, epochs * texts * work.server)
            turns.append(Turn(sent["down"], sent["up"], sent["messages"], *operations))
        rounds.append(turns)
    return rounds


def whole_run(record: RunResult, request: Request) -> list[list[Turn]] | None:
    """The rounds of a run after those of its parent runs; None if a record or a number of operations is missing."""
    rounds = list[list[Turn]]()
    for stage in all_stages(record, request.find) or ():
        work = shapes.derive_work(stage.cell)
        if work is None:
            return None
        rounds += turns_of(stage, work)
    return rounds or None


def carried(record: RunResult) -> Iterator[LedgerEntry]:
    """A record's ledger, summed over clients, by direction and kind: set-up as round 0, all rounds as round 1."""
    ledger = pd.DataFrame(record.ledger, columns=LedgerEntry._fields)
    ledger["round"] = ledger["round"].clip(upper=1)
    sums = ledger.groupby(["round", "direction", "kind"])[["values", "bytes", "messages"]].sum()
    for (number, direction, kind), total in sums.iterrows():
        yield LedgerEntry(number, 0, direction, kind, *(int(amount) for amount in total))


@dataclass(frozen=True)
class Cost:
    """A cell's bytes and seconds, as means over seeds; payload bytes are summed over clients.

    A whole run includes its parent runs, and its round is from the stage that sends most.

    Args:
        seeds: The number of seeds; 0 for derived bytes.
        rounds: The rounds of the last stage.
        round_bytes: The bytes of a round, in the directions of the paper's convention.
        run_bytes: The bytes of the whole run, in the same directions.
        round_up: Uploaded bytes of a round.
        round_down: Downloaded bytes of a round.
        up_bytes: Uploaded bytes of the whole run.
        down_bytes: Downloaded bytes of the whole run.
        setup_bytes: Bytes sent once, before the first round; not part of the others.
        kinds: Kind of payload -> its bytes in both directions.
        test_examples: The test examples of the last stage.
        train_seconds: The seconds of the last stage; None if no record has them.
    """

    seeds: int
    rounds: float
    round_bytes: float
    run_bytes: float
    round_up: float
    round_down: float
    up_bytes: float
    down_bytes: float
    setup_bytes: float
    kinds: Mapping[str, float]
    test_examples: float = 0
    train_seconds: float | None = None

    @property
    def total_bytes(self) -> float:
        return self.up_bytes + self.down_bytes


def measured_cost(benchmark: Benchmark, column: Column, records: Sequence[RunResult], find: Find) -> Cost | None:
    """The mean cost of one cell's records, with all parent runs (see `all_stages`).

    None without records, or if the record of a parent run is missing.
    """
    runs = [stages for record in records if (stages := all_stages(record, find))]
    if not runs or len(runs) < len(records):
        return None

    def counted(stage: RunResult) -> float:
        return benchmark.paper.counted_bytes(*stage_bytes(stage), stage.cell)

    def of_a_round(amount: Callable[[RunResult], float]) -> float:
        return mean([max(amount(stage) / max(len(stage.rounds), 1) for stage in stages) for stages in runs])

    def of_a_run(amount: Callable[[RunResult], float]) -> float:
        return mean([sum(map(amount, stages)) for stages in runs])

    kinds: Counter[str] = Counter()  # of all records together
    for number, _, _, kind, _, size, _ in (entry for stages in runs for stage in stages for entry in stage.ledger):
        kinds[kind] += size if number >= 1 else 0
    seconds = [record.timing["train_seconds"] for record in records if "train_seconds" in record.timing]
    return Cost(
        seeds=len(records),
        rounds=mean([len(record.rounds) for record in records]),
        round_bytes=of_a_round(counted),
        run_bytes=of_a_run(counted),
        round_up=of_a_round(lambda stage: stage_bytes(stage).up),
        round_down=of_a_round(lambda stage: stage_bytes(stage).down),
        up_bytes=of_a_run(lambda stage: stage_bytes(stage).up),
        down_bytes=of_a_run(lambda stage: stage_bytes(stage).down),
        setup_bytes=mean([record.setup_bytes for record in records]),
        kinds={kind: size / len(records) for kind, size in kinds.items()},
        test_examples=mean([record.examples(column.evaluation) for record in records]),
        train_seconds=mean(seconds) if seconds else None,
    )


def client_traffic(records: Sequence[RunResult]) -> dict[str, float] | None:
    """Payload bytes of one client in a round: means over clients, rounds and seeds; setup_bytes: once, to one client.

    None without records.
    """
    if not records:
        return None
    turns = [sum(len(entry.cohort) for entry in record.rounds) for record in records]
    sent = [stage_bytes(record) for record in records]
    return {
        "up_bytes": mean([stage.up / count for stage, count in zip(sent, turns, strict=True)]),
        "down_bytes": mean([stage.down / count for stage, count in zip(sent, turns, strict=True)]),
        "setup_bytes": mean([record.setup_bytes / len(record.clients) for record in records]),
    }


def last_round(records: Sequence[RunResult]) -> dict[str, float]:
    """Direction -> payload bytes of one client in the last round: means over clients and runs."""
    ends = [(record.rounds[-1], len(record.rounds[-1].cohort)) for record in records]
    return {way: mean([getattr(end, f"{way}_bytes") / clients for end, clients in ends]) for way in ("up", "down")}


def derived_cost(request: Request, row: Row, texts: int | None = None) -> Cost | None:
    """All rounds of the paper's encoder on the first task; None if shapes alone do not determine them.

    texts: training examples of all clients together, if bytes depend on them.
    """
    plan = request.plan(row, texts=texts)
    if plan is None:
        return None
    cell = request.benchmark.cell(row, request.columns[0], request.paper_scale, 0)
    rounds, whole = len(plan.rounds), plan.total
    kinds: Counter[str] = Counter()
    for (_, kind), size in whole.kinds.items():
        kinds[kind] += size
    up, down = whole.up_bytes, whole.down_bytes
    counted = request.benchmark.paper.counted_bytes(up, down, cell)
    return Cost(
        0, rounds, counted / rounds, counted, up / rounds, down / rounds, up, down, plan.setup_bytes, dict(kinds)
    )


def derived_turns(request: Request, row: Row, texts: int | None = None) -> list[list[Turn]] | None:
    """Each client's traffic and computation per round for the paper's encoder on the first task, by shapes.

    None if shapes alone do not determine them. texts: training examples of all clients together, split evenly.
    """
    cell = request.benchmark.cell(row, request.columns[0], request.paper_scale, 0)
    plan, work = request.plan(row, texts=texts), shapes.derive_work(cell)
    if plan is None or work is None:
        return None
    each, training = (texts or cell.clients) / cell.clients, cell.training
    clients = 1 if cell.options.get("turns") == "pass" else cell.cohort_size
    batches = math.ceil(each / training.batch_size) * training.local_epochs
    rounds, operations = list[list[Turn]](), [training.local_epochs * each * of for of in (work.client, work.server)]
    for sent in plan.rounds:
        kinds = [kind for _, kind in sent.kinds if kind not in ACCOMPANYING]
        messages = sum(batches if kind in BATCHWISE else 1 for kind in kinds)
        turn = Turn(sent.down_bytes / clients, sent.up_bytes / clients, messages, *operations)
        once = replace(turn, operations=turn.operations + work.features * each)
        rounds.append([turn if rounds else once] * clients)
    return rounds
