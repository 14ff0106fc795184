"""One cell, from its definition to its record: found if it is finished, gone on with if it was begun."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import logging
import platform
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.cell import VALIDATION
from benchmarks.dry_run import round_examples
from benchmarks.environment import describe_environment
from benchmarks.errors import UserError
from benchmarks.events import CellFinished, CellStarted, CellWaits, RoundFinished, Sink, Trained
from benchmarks.executors.clients import ClientWorkers, Work, spread_of
from benchmarks.federation import Federation, Inputs, build_clients, build_federation, load_inputs
from benchmarks.found import cell_id_of, finished_record
from benchmarks.measures import metric
from benchmarks.predictions import pack_predictions, write_predictions
from benchmarks.record import LedgerEntry, RoundRecord, RunRecord, chosen_round, write_record
from benchmarks.scoring import combine_errors, mean_error, sampling_error, scores
from benchmarks.settings import Settings
from benchmarks.spec import JSON, Cell
from benchmarks.stages import Outcome, find_outcome, initial_of, keep_outcome, stopped_by
from benchmarks.tasks import Task
from fedsim.algorithms import trains
from fedsim.checkpoint import Checkpoint
from fedsim.data import Client
from fedsim.engine import Answers, RoundResult, Run, Scores, part_name, run_federation
from fedsim.errors import DivergedError
from fedsim.leases import Lease, LostError, held, refresh
from fedsim.rng import numpy_generator
from fedsim.store import ClientStore
from fedsim.wire import Channel, Ledger, Params

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # as glibc's malloc.h numbers mallopt's options
MANY_CLIENTS = 32  # beyond this, what stays with clients is kept on disk


def run_cell(
    cell: Cell,
    settings: Settings,
    sink: Sink,
    keeps_weights: bool = False,
    needs_weights: bool = False,
    wait: bool = True,
) -> RunRecord:
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


def run_stage(cell: Cell, settings: Settings, sink: Sink, wait: bool = True) -> Outcome:
    """Compute a cell from which another begins, or find its record and its weights; UserError where it diverged."""
    record, outcome = _run(cell, settings, sink, keeps=True, needs=True, wait=wait)
    if outcome is None:
        raise UserError(stopped_by(record))
    return outcome


def _run(
    cell: Cell, settings: Settings, sink: Sink, keeps: bool, needs: bool, wait: bool
) -> tuple[RunRecord, Outcome | None]:
    """keeps, needs: whether the weights are kept, and whether a record without them is not enough."""
    quiet_libraries()
    cell_id = cell_id_of(cell, settings)
    claim = settings.results_dir / "locks" / cell_id
    with held(claim, wait, lambda holder: sink(CellWaits(cell, holder))) as lease:
        for folder in (settings.records_dir, settings.results_dir / "weights", settings.checkpoints_dir):
            refresh(folder)  # another machine may have written there
        for folder in settings.checkpoint_dirs(cell_id):
            refresh(folder)
        record = finished_record(cell, cell_id, settings.records_dir)
        outcome = find_outcome(settings, cell, cell_id) if needs else None
        reused = record is not None and (outcome is not None or not needs or bool(record.diverged))
        if record is None or not reused:
            before = initial_of(cell)
            begun = run_stage(before, settings, _only_news(sink), wait) if before else None
            inputs = load_inputs(cell, settings, begun)
            work = Work(cell, cell_id, settings, begun)
            with spread_of(work, lambda examples: sink(Trained(cell_id, examples))) as spread:
                computed, predictions, parameters = _compute(work, inputs, sink, keeps, lease, spread)
            lease.check()
            if keeps and not computed.diverged:
                outcome = keep_outcome(settings, cell, cell_id, parameters)
            release_memory()
            if record is None:  # one that was found keeps the predictions that it names
                if computed.predictions:
                    write_predictions(settings.records_dir, computed, predictions)
                write_record(settings.records_dir, computed)
                record = computed
        for folder in settings.checkpoint_dirs(cell_id):
            Checkpoint(folder, cell_id).remove()
    sink(CellFinished(record, reused))
    return record, outcome


def _only_news(sink: Sink) -> Sink:
    """A sink that is not told of a stage that was there already: each cell that begins from it finds it again."""
    return lambda event: None if isinstance(event, CellFinished) and event.reused else sink(event)


def _compute(
    work: Work, inputs: Inputs, sink: Sink, keeps: bool, lease: Lease, spread: ClientWorkers | None
) -> tuple[RunRecord, bytes, Params]:
    """A cell's record, what it answered, and the parameters of the server's model at its end, where they are kept."""
    import torch

    cell, cell_id, settings = work.cell, work.cell_id, work.settings
    torch.set_num_threads(settings.threads)
    started = time.perf_counter()
    clients, partition = build_clients(cell, inputs, settings)
    federation = build_federation(cell, inputs, settings, lambda n: sink(Trained(cell_id, n)), spread or map)
    server = federation.algorithm.server
    if keeps and server is None:
        raise UserError(f"{cell.label}: {cell.algorithm} leaves no server's model, so that nothing can begin from it")
    if not federation.setting.objective.own_words:
        hold_freed_memory()
    # Weights that were made anew elsewhere are others: what was trained on the old ones does not go on from them.
    folder = settings.checkpoint_dir(cell_id, work.initial.sha256 if work.initial else "")
    channel = Channel(cell.codec)
    chosen_by = f"{VALIDATION}/{inputs.task.metrics[0]}" if VALIDATION in clients[0].evaluation else ""
    begun: list[tuple[float, Run]] = []
    diverged: dict[str, JSON] = {}

    def on_start(run: Run) -> None:
        begun.append((time.perf_counter(), run))
        done = tuple(round_record(result, channel.ledger) for result in run.results)
        whole = spread is not None and federation.algorithm.turn is None and trains(cell.algorithm)
        note = f"{cell.algorithm}: its rounds are one piece each, --client-workers is without effect" if whole else ""
        sink(CellStarted(cell, cell_id, done, round_examples(cell, clients, federation.algorithm), note))

    def on_round(run: Run) -> None:
        sink(RoundFinished(cell_id, round_record(run.results[-1], channel.ledger)))

    try:
        run_federation(
            federation.algorithm,
            clients,
            channel,
            lambda answers, part: scores(inputs.task.metrics, federation.setting.objective, answers, part),
            rounds=cell.training.last_round,
            seed=cell.seed,
            is_best=lambda results: is_chosen(results, chosen_by),
            participation=cell.training.participation,
            checkpoint=Checkpoint(folder, cell_id, lease.check),
            store=ClientStore(folder, in_memory=len(clients) <= MANY_CLIENTS),
            on_start=on_start,
            on_round=on_round,
        )
    except DivergedError as error:
        if not begun:
            raise
        diverged = {"round": len(begun[0][1].results) + 1, "reason": str(error)}
    ended = time.perf_counter()
    ((start, run),) = begun
    predictions, errors = b"", {}
    if not diverged:
        chosen = run.best or run.state.round
        predictions = pack_predictions(clients, run.answers, chosen)
        errors = sampling_errors(federation, chosen, run.answers[chosen], clients, inputs.task, cell.seed)
    record = RunRecord(
        cell=cell,
        cell_id=cell_id,
        inputs=inputs.to_json(),
        partition=partition.to_json(),
        clients=tuple(
            {"client": client.id, "train": len(client.train)}
            | {name: len(part) for name, part in client.evaluation.items()}
            for client in clients
        ),
        rounds=tuple(round_record(result, channel.ledger) for result in run.results),
        sampling_errors=errors,
        setup_bytes=channel.ledger.setup_bytes,
        # What a round that did not end had sent is in no round's bytes either.
        ledger=tuple(entry for row in channel.ledger.rows if (entry := LedgerEntry(*row)).round <= len(run.results)),
        environment=describe_environment(federation.precision, settings.threads)
        | {"kernels": federation.kernels}
        | ({"client_workers": len(spread.workers)} if spread and spread.workers else {}),
        timing={
            "setup_seconds": round(start - started, 3),
            "train_seconds": round(ended - start, 3),  # of the last start, with scoring and checkpoints
            "peak_memory_bytes": peak_memory_bytes() + (spread.peak_bytes if spread else 0),
        },
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        chosen_by=chosen_by,
        predictions={"sha256": hashlib.sha256(predictions).hexdigest()} if predictions else {},
        diverged=diverged,
    )
    return record, predictions, server(run.state) if keeps and server is not None and not diverged else {}


def round_record(result: RoundResult, ledger: Ledger) -> RoundRecord:
    """A round as a record keeps it: scores are means over clients, None where a client's is undefined."""
    return RoundRecord(
        round=result.round,
        cohort=result.cohort,
        train_loss=result.metrics.train_loss,
        client_losses=result.metrics.client_losses,
        scores=mean_scores(result.client_scores),
        client_scores=result.client_scores,
        up_bytes=ledger.total_bytes("up", result.round),
        down_bytes=ledger.total_bytes("down", result.round),
        pooled_scores=result.pooled_scores,
    )


def is_chosen(results: Sequence[RoundResult], by: str) -> bool:
    """Whether the last of some rounds is the best of them by a score; none is without one."""
    return bool(by) and chosen_round([mean_scores(result.client_scores) for result in results], by) == len(results)


def mean_scores(client_scores: Sequence[Mapping[str, Scores]]) -> dict[str, dict[str, float | None]]:
    """Evaluation -> metric -> the clients' scores as one, in the metric's own way."""
    return {
        evaluation: {
            name: metric(name).combined([scores[evaluation][name] for scores in client_scores]) for name in metrics
        }
        for evaluation, metrics in client_scores[0].items()
    }


def sampling_errors(
    federation: Federation, round: int, answers: Answers, clients: Sequence[Client], of: Task, seed: int
) -> dict[str, dict[str, float | None]]:
    """Standard errors of a round's mean scores that come from the finite test sets.

    Clients' own test sets are independent. One on which all are scored is the same for all, so that its error does not
    shrink with their number: the mean over clients, which is the error itself where all clients have one model.
    answers: what was answered after it.
    """
    algorithm, objective = federation.algorithm, federation.setting.objective
    found: dict[str, dict[str, float | None]] = {}
    for name in clients[0].evaluation:
        common = len(clients) > 1 and len({id(client.evaluation[name]) for client in clients}) == 1
        asked = clients[:1] if common and not algorithm.personal else clients
        errors: dict[str, list[float | None]] = {}
        for client in asked:
            part = client.evaluation[name]
            outputs = answers[part_name(client, name)]
            generator = numpy_generator(seed, round, client.id, f"bootstrap-{name}")
            for each in of.metrics:
                errors.setdefault(each, []).append(sampling_error(each, objective, outputs, part, generator))
        combine = mean_error if common else combine_errors
        found[name] = {each: combine(values) for each, values in errors.items()}
    return found


def peak_memory_bytes() -> int:
    """The largest resident memory of this process so far, and the largest that torch held on a GPU."""
    import torch

    gpu = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    return _peak_resident_bytes() + gpu


def _peak_resident_bytes() -> int:
    """From /proc where there is one: Linux's getrusage counts the peak of the process that started this one as well."""
    import resource

    with suppress(OSError), Path("/proc/self/status").open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def hold_freed_memory() -> None:
    """Keep freed memory for the next step: tensors as large as a vocabulary take a third longer on fresh pages."""
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL("libc.so.6")
        for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1)):
            libc.mallopt(option, value)


def release_memory() -> None:
    """Give freed memory back to the system: batches of many widths leave glibc's heap in pieces, cell after cell."""
    gc.collect()
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def quiet_libraries() -> None:
    """Keep the libraries' chatter out of the progress display."""
    import datasets
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    logging.getLogger("datasets").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="transformers")
