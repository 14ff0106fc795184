"""Run one cell: reuse its finished record, resume it where it is unfinished, or compute it from the start."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.dry_run.rounds import round_examples
from benchmarks.errors import UserError
from benchmarks.executors.clients import ClientTasks, Work, spread_of
from benchmarks.predictions import pack_predictions, write_predictions
from benchmarks.results import LedgerEntry, RunResult, write_result
from benchmarks.run_config import JSON, VALIDATION, RunConfig
from benchmarks.running.environment import describe_environment
from benchmarks.running.events import CellFinished, CellStarted, CellWaits, RoundFinished, Sink, Trained
from benchmarks.running.federation import Federation, Inputs, build_clients, build_federation, load_inputs
from benchmarks.running.found import cell_id_of, finished_result
from benchmarks.running.process import hold_freed_memory, peak_memory_bytes, quiet_libraries
from benchmarks.running.run_options import RunOptions
from benchmarks.running.scoring import is_chosen, round_record, sampling_errors, scores
from benchmarks.running.stages import Outcome, find_outcome, initial_of, keep_outcome, stopped_by
from fedsim.algorithms import trains
from fedsim.checkpoint import Checkpoint
from fedsim.client_updates import MapClients
from fedsim.data import Client
from fedsim.engine import Run, run_federation
from fedsim.errors import DivergedError
from fedsim.locks import Lock, LostError, held, refresh
from fedsim.store import ClientStore
from fedsim.wire import Channel, Params
from partitions import PartitionReport

MANY_CLIENTS = 32  # beyond this, what stays with clients is kept on disk


def run_cell(
    cell: RunConfig,
    settings: RunOptions,
    sink: Sink,
    keeps_weights: bool = False,
    needs_weights: bool = False,
    wait: bool = True,
) -> RunResult:
    """Compute a cell, or find its record; whoever starts a cell that another process computes waits for it.

    What it begins from is computed first, or found. Training that diverges ends a cell early, with a record that says
    so; no weights are kept of it. keeps_weights: whether others may begin from it, if it trains: what only counts or
    draws is made again by whoever begins from it, and may leave no weights at all. needs_weights: whether others do,
    so that a record without weights, such as an imported one, is not enough. Without wait: TakenError where another
    process computes it, or a cell from which it begins.
    """
    weights = trains(cell.algorithm)
    while True:
        try:
            return _run(cell, settings, sink, keeps_weights and weights, needs_weights and weights, wait)[0]
        except LostError:  # this machine slept: whoever took the cell over has gone on from the last round
            continue


def run_stage(cell: RunConfig, settings: RunOptions, sink: Sink, wait: bool = True) -> Outcome:
    """Compute a cell from which another begins, or find its record and its weights; UserError where it diverged."""
    record, outcome = _run(cell, settings, sink, keeps=True, needs=True, wait=wait)
    if outcome is None:
        raise UserError(stopped_by(record))
    return outcome


def _run(
    cell: RunConfig, settings: RunOptions, sink: Sink, keeps: bool, needs: bool, wait: bool
) -> tuple[RunResult, Outcome | None]:
    """keeps, needs: whether the weights are kept, and whether a record without them is not enough."""
    quiet_libraries()
    cell_id = cell_id_of(cell, settings)
    path = settings.results_dir / "locks" / cell_id
    with held(path, wait, lambda holder: sink(CellWaits(cell, holder))) as lock:
        for folder in (settings.records_dir, settings.results_dir / "weights", settings.checkpoints_dir):
            refresh(folder)  # another machine may have written there
        for folder in settings.checkpoint_dirs(cell_id):
            refresh(folder)
        record = finished_result(cell, cell_id, settings.records_dir)
        outcome = find_outcome(settings, cell, cell_id) if needs else None
        reused = record is not None and (outcome is not None or not needs or bool(record.diverged))
        if record is None or not reused:
            before = initial_of(cell)
            begun = run_stage(before, settings, _only_news(sink), wait) if before else None
            computed, predictions, parameters = _compute(Work(cell, cell_id, settings, begun), sink, keeps, lock)
            lock.check()
            if keeps and not computed.diverged:
                outcome = keep_outcome(settings, cell, cell_id, parameters)
            if record is None:  # one that was found keeps the predictions that it names
                if computed.predictions:
                    write_predictions(settings.records_dir, computed, predictions)
                write_result(settings.records_dir, computed)
                record = computed
        for folder in settings.checkpoint_dirs(cell_id):
            Checkpoint(folder, cell_id).remove()
    sink(CellFinished(record, reused))
    return record, outcome


def _only_news(sink: Sink) -> Sink:
    """A sink that is not told of a stage that was there already: each cell that begins from it finds it again."""
    return lambda event: None if isinstance(event, CellFinished) and event.reused else sink(event)


@dataclass(frozen=True)
class _Prepared:
    """What a cell is computed with. chosen_by: the score by which a round is chosen, or ""."""

    inputs: Inputs
    clients: Sequence[Client]
    partition: PartitionReport
    federation: Federation
    chosen_by: str


@dataclass(frozen=True)
class _Trained:
    """What training came to. started, ended: its first and last moment in this process, in seconds."""

    run: Run
    diverged: dict[str, JSON]
    started: float
    ended: float


def _compute(work: Work, sink: Sink, keeps: bool, lock: Lock) -> tuple[RunResult, bytes, Params]:
    """A cell's record, what it answered, and the parameters of the server's model at its end, where they are kept."""
    import torch

    torch.set_num_threads(work.settings.threads)
    began = time.perf_counter()
    on_batch = lambda examples: sink(Trained(work.cell_id, examples))  # noqa: E731
    with spread_of(work, on_batch) as map_clients:
        prepared = _prepare(work, on_batch, map_clients or map)
        server = prepared.federation.algorithm.server
        if keeps and server is None:
            raise UserError(
                f"{work.cell.label}: {work.cell.algorithm} leaves no server's model, so that nothing can begin from it"
            )
        trained = _train(work, prepared, sink, lock)
        record, predictions = _record(work, prepared, trained, map_clients, began)
    return record, predictions, server(trained.run.state) if keeps and server and not trained.diverged else {}


def _prepare(work: Work, on_batch: Callable[[int], None], map_clients: MapClients) -> _Prepared:
    """Load a cell's data and model, and build its federation."""
    inputs = load_inputs(work.cell, work.settings, work.initial)
    clients, partition = build_clients(work.cell, inputs, work.settings)
    federation = build_federation(work.cell, inputs, work.settings, on_batch, map_clients)
    if not federation.setting.objective.own_words:
        hold_freed_memory()
    chosen_by = f"{VALIDATION}/{inputs.task.metrics[0]}" if VALIDATION in clients[0].evaluation else ""
    return _Prepared(inputs, clients, partition, federation, chosen_by)


def _train(work: Work, prepared: _Prepared, sink: Sink, lock: Lock) -> _Trained:
    """Compute the rounds that are left, with a checkpoint after each, and tell the sink of them."""
    cell, clients, algorithm = work.cell, prepared.clients, prepared.federation.algorithm
    objective, metrics = prepared.federation.setting.objective, prepared.inputs.task.metrics
    # Weights that were made anew elsewhere are others: what was trained on the old ones does not go on from them.
    folder = work.settings.checkpoint_dir(work.cell_id, work.initial.sha256 if work.initial else "")
    channel = Channel(cell.codec)
    begun: list[tuple[float, Run]] = []
    diverged: dict[str, JSON] = {}

    def on_start(run: Run) -> None:
        begun.append((time.perf_counter(), run))
        done = tuple(round_record(result, channel.ledger) for result in run.results)
        whole = work.settings.client_workers > 1 and algorithm.turn is None and trains(cell.algorithm)
        note = f"{cell.algorithm}: its rounds are one piece each, --client-workers is without effect" if whole else ""
        sink(CellStarted(cell, work.cell_id, done, round_examples(cell, clients, algorithm), note))

    try:
        run_federation(
            algorithm,
            clients,
            channel,
            lambda answers, part: scores(metrics, objective, answers, part),
            rounds=cell.training.last_round,
            seed=cell.seed,
            is_best=lambda results: is_chosen(results, prepared.chosen_by),
            participation=cell.training.participation,
            checkpoint=Checkpoint(folder, work.cell_id, lock.check),
            store=ClientStore(folder, in_memory=len(clients) <= MANY_CLIENTS),
            on_start=on_start,
            on_round=lambda run: sink(RoundFinished(work.cell_id, round_record(run.results[-1], channel.ledger))),
        )
    except DivergedError as error:
        if not begun:
            raise
        diverged = {"round": len(begun[0][1].results) + 1, "reason": str(error)}
    ((started, run),) = begun
    return _Trained(run, diverged, started, time.perf_counter())


def _record(
    work: Work, prepared: _Prepared, trained: _Trained, map_clients: ClientTasks | None, began: float
) -> tuple[RunResult, bytes]:
    """The record of what was computed, and what the models answered. began: when loading began, in seconds."""
    cell, clients, federation, run = work.cell, prepared.clients, prepared.federation, trained.run
    ledger = run.channel.ledger
    used = map_clients if map_clients and map_clients.peak_bytes else None
    predictions, errors = b"", {}
    if not trained.diverged:
        chosen = run.best or run.state.round
        predictions = pack_predictions(clients, run.answers, chosen)
        errors = sampling_errors(federation, chosen, run.answers[chosen], clients, prepared.inputs.task, cell.seed)
    record = RunResult(
        cell=cell,
        cell_id=work.cell_id,
        inputs=prepared.inputs.to_json(),
        partition=prepared.partition.to_json(),
        clients=tuple(
            {"client": client.id, "train": len(client.train)}
            | {name: len(part) for name, part in client.evaluation.items()}
            for client in clients
        ),
        rounds=tuple(round_record(result, ledger) for result in run.results),
        sampling_errors=errors,
        setup_bytes=ledger.setup_bytes,
        # What a round that did not end had sent is in no round's bytes either.
        ledger=tuple(entry for row in ledger.rows if (entry := LedgerEntry(*row)).round <= len(run.results)),
        environment=describe_environment(federation.precision, work.settings.threads)
        | {"kernels": federation.kernels}
        | ({"client_workers": used.count} if used else {}),
        timing={
            "setup_seconds": round(trained.started - began, 3),
            "train_seconds": round(trained.ended - trained.started, 3),  # of the last start, with its checkpoints
            "peak_memory_bytes": peak_memory_bytes() + (used.peak_bytes if used else 0),
        },
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        chosen_by=prepared.chosen_by,
        predictions={"sha256": hashlib.sha256(predictions).hexdigest()} if predictions else {},
        diverged=trained.diverged,
    )
    return record, predictions
