"""Where cells run: in this process, or side by side in several; the records are the same."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.managers import SyncManager
from typing import Any

from benchmarks.errors import UserError
from benchmarks.events import CellFailed, CellFinished, Event, Sink
from benchmarks.settings import Settings
from benchmarks.spec import Cell
from benchmarks.stages import by_stage, earlier_stages, initial_of, stopped_by


def run_cells(cells: Sequence[Cell], settings: Settings, sink: Sink, keeps_weights: bool = False) -> int:
    """Run cells and tell the sink; returns how many failed. A cell that fails does not keep the others from running.

    What several begin from is run before them, and keeps its weights; where that fails, they fail with it. One that
    diverges has not failed, but nothing can begin from it. keeps_weights: whether all of them do.
    """
    begun_from = {before.spec_id for cell in cells for before in earlier_stages(cell)}
    failed: set[str] = set()
    without_weights: dict[str, str] = {}  # why nothing begins from a cell

    def counting(event: Event) -> None:
        if isinstance(event, CellFailed):
            failed.add(event.cell.spec_id)
            without_weights[event.cell.spec_id] = f"{event.cell.label}, from which it begins, could not be computed"
        elif isinstance(event, CellFinished) and event.record.diverged:
            without_weights[event.record.cell.spec_id] = stopped_by(event.record)
        sink(event)

    for stage in by_stage(cells):
        ready: list[tuple[Cell, bool]] = []
        for cell in stage:
            before = initial_of(cell)
            if before is not None and before.spec_id in without_weights:
                counting(CellFailed(cell, without_weights[before.spec_id]))
            else:
                ready.append((cell, keeps_weights or cell.spec_id in begun_from))
        workers = min(settings.workers, len(ready))
        if workers <= 1:
            for cell, keeps in ready:
                _attempt(cell, keeps, settings, counting)
        else:
            _run_side_by_side(ready, settings, counting, workers)
    return len(failed)


def _attempt(cell: Cell, keeps_weights: bool, settings: Settings, sink: Sink) -> None:
    from benchmarks.runner import run_cell
    from fedsim.errors import FederationError
    from partitions import PartitionError

    try:
        run_cell(cell, settings, sink, keeps_weights)
    except (UserError, FederationError, PartitionError) as error:
        sink(CellFailed(cell, str(error)))


def _run_side_by_side(cells: Sequence[tuple[Cell, bool]], settings: Settings, sink: Sink, workers: int) -> None:
    """cells: each with whether it keeps its weights."""
    context = multiprocessing.get_context("spawn")  # forking a process that has run torch can hang
    manager = SyncManager(ctx=context)
    manager.start(_end_with_parent)
    with (
        manager,
        _forwarded(manager.Queue(), sink) as queue,
        ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(queue,)) as pool,
    ):
        pending: set[Future[None]] = {pool.submit(_attempt_in_worker, cell, keeps, settings) for cell, keeps in cells}
        try:
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
        except BrokenProcessPool:
            raise UserError(
                "a worker process was killed, perhaps for want of memory; what was finished is kept. "
                "Start the same command again, with fewer WORKERS if it happens again."
            ) from None
        except BaseException:  # Ctrl-C, say, that reached this process alone: no one waits for a whole cell
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                if not child.name.startswith(SyncManager.__name__):
                    child.terminate()
            raise


@contextmanager
def _forwarded(queue: Any, sink: Sink) -> Iterator[Any]:
    """Pass events from a queue to the sink until the block ends."""

    def forward() -> None:
        while (event := queue.get()) is not None:
            sink(event)

    thread = threading.Thread(target=forward, daemon=True)
    thread.start()
    try:
        yield queue
    finally:
        queue.put(None)
        thread.join()


_queue: Any = None


def _start_worker(queue: Any) -> None:
    import signal

    global _queue
    _queue = queue
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker at once: its state is on disk


def _end_with_parent() -> None:
    """End this process as soon as the one that started it is gone: a SIGKILL leaves no one to tell it."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _attempt_in_worker(cell: Cell, keeps_weights: bool, settings: Settings) -> None:
    _attempt(cell, keeps_weights, settings, _queue.put)
