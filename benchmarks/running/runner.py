"""Run one cell: reuse its record, resume it, or compute it from the start."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import safetensors.torch
import torch

from benchmarks.errors import UserError
from benchmarks.predictions import pack_predictions, write_predictions
from benchmarks.results import LedgerEntry, RunResult, write_result
from benchmarks.run_config import JSON, VALIDATION, RunConfig
from benchmarks.running.clients import ClientTasks, Work, client_tasks, on_cpu
from benchmarks.running.completed import (
    KeptWeights,
    find_weights,
    finished_result,
    initial_of,
    keep_weights,
    stopped_by,
    with_other_inputs,
)
from benchmarks.running.events import CellFinished, CellStarted, CellWaits, RoundFinished, Sink, Trained
from benchmarks.running.federation import (
    Federation,
    Inputs,
    build_clients,
    build_federation,
    cell_id_of,
    load_inputs,
    stand_in_of,
)
from benchmarks.running.process import describe_environment, peak_memory_bytes, quiet_libraries
from benchmarks.running.run_options import RunOptions
from benchmarks.running.scoring import is_chosen, round_record, sampling_errors, scores
from fedsim.algorithms import trains
from fedsim.checkpoint import Checkpoint
from fedsim.data import Client
from fedsim.engine import Run, round_examples, run_federation
from fedsim.errors import DivergedError
from fedsim.locks import Lock, LostError, held, refresh
from fedsim.store import ClientStore
from fedsim.wire import Channel, Params
from partitions import PartitionReport

MANY_CLIENTS = 32  # with more, clients' private states are kept on disk


def run_cell(
    cell: RunConfig,
    settings: RunOptions,
    sink: Sink,
    keeps_weights: bool = False,
    needs_weights: bool = False,
    wait: bool = True,
) -> RunResult:
    """Compute a cell and its earlier cells, or read its record.

    If training diverges, the cell ends early, with a record that says so and without weights.

    Args:
        cell: The cell.
        settings: Folders and machine.
        sink: Called with the events.
        keeps_weights: Keep trained weights, so that other cells can start from them.
        needs_weights: Compute the cell again if its record, such as an imported one, has no weights.
        wait: Wait for another process that computes the cell or an earlier one; if False, raise TakenError.
    """
    weights = trains(cell.algorithm)
    while True:
        try:
            return _run(cell, settings, sink, keeps_weights and weights, needs_weights and weights, wait)[0]
        except LostError:  # this machine slept, and another process resumed the cell
            continue


def run_stage(cell: RunConfig, settings: RunOptions, sink: Sink, wait: bool = True) -> KeptWeights:
    """Compute an earlier cell, or read its record and weights; UserError if it diverged."""
    record, outcome = _run(cell, settings, sink, keeps=True, needs=True, wait=wait)
    if outcome is None:
        raise UserError(stopped_by(record))
    return outcome


def _run(
    cell: RunConfig, settings: RunOptions, sink: Sink, keeps: bool, needs: bool, wait: bool
) -> tuple[RunResult, KeptWeights | None]:
    """keeps, needs: whether to keep the weights, and whether the record must have them."""
    quiet_libraries()
    cell_id = cell_id_of(cell, settings)
    path = settings.results_dir / "locks" / cell_id
    with held(path, wait, lambda holder: sink(CellWaits(cell, holder))) as lock:
        for folder in (settings.records_dir, settings.results_dir / "weights", settings.checkpoints_dir):
            refresh(folder)  # another machine may have written there
        for folder in settings.checkpoint_dirs(cell_id):
            refresh(folder)
        record = finished_result(cell, cell_id, settings.records_dir)
        outcome = find_weights(settings, cell, cell_id) if needs else None
        reused = record is not None and (outcome is not None or not needs or bool(record.diverged))
        if record is None or not reused:
            before = initial_of(cell)
            initial = run_stage(before, settings, _without_reused(sink), wait) if before else None
            note = "" if record else with_other_inputs(cell, settings.records_dir)
            work = Work(cell, cell_id, settings, initial, note)
            computed, predictions, parameters = _compute(work, sink, keeps, lock)
            lock.check()
            if keeps and not computed.diverged:
                outcome = keep_weights(settings, cell, cell_id, safetensors.torch.save(parameters))
            if record is None:  # an existing record keeps its predictions
                if computed.predictions:
                    write_predictions(settings.records_dir, computed, predictions)
                write_result(settings.records_dir, computed)
                record = computed
        for folder in settings.checkpoint_dirs(cell_id):
            Checkpoint(folder, cell_id).remove()
    sink(CellFinished(record, reused))
    return record, outcome


def _without_reused(sink: Sink) -> Sink:
    """A sink that ignores finished earlier cells, which each later cell reads again."""
    return lambda event: None if isinstance(event, CellFinished) and event.reused else sink(event)


@dataclass(frozen=True)
class _Prepared:
    """A cell's data, clients and federation. chosen_by: the score that chooses a round, or ""."""

    inputs: Inputs
    clients: Sequence[Client]
    partition: PartitionReport
    federation: Federation
    chosen_by: str


def _compute(work: Work, sink: Sink, keeps: bool, lock: Lock) -> tuple[RunResult, bytes, Params]:
    """A cell's record, its packed predictions, and the server's parameters if they are kept."""
    cell, settings = work.cell, work.settings
    torch.set_num_threads(settings.threads)
    began = time.perf_counter()
    on_batch = lambda examples: sink(Trained(work.cell_id, examples))  # noqa: E731
    with client_tasks(work, on_batch) as map_clients:
        inputs = load_inputs(cell, settings, work.initial)
        clients, partition = build_clients(cell, inputs, settings)
        federation = build_federation(cell, inputs, settings, on_batch, map_clients or map)
        chosen_by = f"{VALIDATION}/{inputs.task.metrics[0]}" if VALIDATION in clients[0].evaluation else ""
        server = federation.algorithm.server
        if keeps and server is None:
            raise UserError(f"{cell.label}: {cell.algorithm} has no server model, so no run can start from it")
        prepared = _Prepared(inputs, clients, partition, federation, chosen_by)
        run, diverged, timing = _train(work, prepared, sink, lock, began)
        record, predictions = _record(work, prepared, run, diverged, timing, map_clients)
    return record, predictions, on_cpu(server(run.state)) if keeps and server and not diverged else {}


def _train(
    work: Work, prepared: _Prepared, sink: Sink, lock: Lock, began: float
) -> tuple[Run, dict[str, JSON], dict[str, float]]:
    """Compute the remaining rounds, with a checkpoint after each.

    began: the time when loading began, in seconds.

    Returns:
        The run; the round and reason if it diverged; seconds of set-up and training since the last start.
    """
    cell, clients, algorithm = work.cell, prepared.clients, prepared.federation.algorithm
    objective, metrics = prepared.federation.workload.objective, prepared.inputs.task.metrics
    # Do not resume a state from other initial weights, such as another machine's.
    folder = work.settings.checkpoint_dir(work.cell_id, work.initial.sha256 if work.initial else "")
    channel = Channel(cell.codec, seed=cell.seed)
    starts: list[tuple[float, Run]] = []
    diverged: dict[str, JSON] = {}

    def on_start(run: Run) -> None:
        starts.append((time.perf_counter(), run))
        finished = tuple(round_record(result, channel.ledger) for result in run.results)
        whole = work.settings.client_workers > 1 and algorithm.client_update is None and trains(cell.algorithm)
        note = f"{cell.algorithm}: its rounds cannot be divided, so --client-workers has no effect" if whole else ""
        note = "; ".join(filter(None, (work.note, note)))
        examples = round_examples(algorithm, clients, cell.training, cell.seed)
        sink(CellStarted(cell, work.cell_id, finished, examples, note))

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
        if not starts:
            raise
        diverged = {"round": len(starts[0][1].results) + 1, "reason": str(error)}
    ((started, run),) = starts
    ended = time.perf_counter()
    return run, diverged, {"setup_seconds": round(started - began, 3), "train_seconds": round(ended - started, 3)}


def _record(
    work: Work,
    prepared: _Prepared,
    run: Run,
    diverged: dict[str, JSON],
    timing: dict[str, float],
    map_clients: ClientTasks | None,
) -> tuple[RunResult, bytes]:
    """The record of a computed run, and its packed predictions."""
    cell, clients, federation, ledger = work.cell, prepared.clients, prepared.federation, run.channel.ledger
    tasks = map_clients if map_clients and map_clients.peak_bytes else None
    texts = {federation.workload.training.micro_batches.size, *(tasks.micro_batches if tasks else ())} - {None}
    cut = [size for size in texts if trains(cell.algorithm) and size < cell.training.batch_size]
    predictions, errors = b"", {}
    if not diverged:
        chosen = run.best or run.state.round
        predictions = pack_predictions(clients, run.answers, chosen)
        errors = sampling_errors(federation, chosen, run.answers[chosen], clients, prepared.inputs.task, cell.seed)
    record = RunResult(
        cell=cell,
        cell_id=work.cell_id,
        inputs=prepared.inputs.to_json(cell.head, stand_in_of(cell, work.settings)),
        partition=prepared.partition.to_json(),
        clients=tuple(
            {"client": client.id, "train": len(client.train)}
            | {name: len(part) for name, part in client.evaluation.items()}
            for client in clients
        ),
        rounds=tuple(round_record(result, ledger) for result in run.results),
        sampling_errors=errors,
        setup_bytes=ledger.setup_bytes,
        # Leave out the bytes of an unfinished round, as in the rounds.
        ledger=tuple(entry for row in ledger.rows if (entry := LedgerEntry(*row)).round <= len(run.results)),
        environment=describe_environment(federation.precision, work.settings.threads)
        | {"kernels": federation.kernels}
        | ({"client_workers": tasks.count} if tasks else {}),
        timing={**timing, "peak_memory_bytes": peak_memory_bytes() + (tasks.peak_bytes if tasks else 0)},
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        chosen_by=prepared.chosen_by,
        micro_batch=min(cut, default=None),
        predictions={"sha256": hashlib.sha256(predictions).hexdigest()} if predictions else {},
        diverged=diverged,
    )
    return record, predictions
