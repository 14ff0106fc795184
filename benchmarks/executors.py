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
from benchmarks.events import CellFailed, Event, Sink
from benchmarks.settings import Settings
from benchmarks.spec import Cell


def run_cells(cells: Sequence[Cell], settings: Settings, sink: Sink) -> int:
    """Run cells and tell the sink; returns how many failed. A cell that fails does not keep the others from running."""
    workers = min(settings.workers, len(cells))
    failed = 0

    def counting(event: Event) -> None:
        nonlocal failed
        failed += isinstance(event, CellFailed)
        sink(event)

    if workers <= 1:
        for cell in cells:
            _attempt(cell, settings, counting)
    else:
        _run_side_by_side(cells, settings, counting, workers)
    return failed


def _attempt(cell: Cell, settings: Settings, sink: Sink) -> None:
    from benchmarks.runner import run_cell
    from fedsim.errors import FederationError
    from partitions import PartitionError

    try:
        run_cell(cell, settings, sink)
    except (UserError, FederationError, PartitionError) as error:
        sink(CellFailed(cell, str(error)))


def _run_side_by_side(cells: Sequence[Cell], settings: Settings, sink: Sink, workers: int) -> None:
    context = multiprocessing.get_context("spawn")  # forking a process that has run torch can hang
    manager = SyncManager(ctx=context)
    manager.start(_end_with_parent)
    with (
        manager,
        _forwarded(manager.Queue(), sink) as queue,
        ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(queue,)) as pool,
    ):
        pending: set[Future[None]] = {pool.submit(_attempt_in_worker, cell, settings) for cell in cells}
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


def _attempt_in_worker(cell: Cell, settings: Settings) -> None:
    _attempt(cell, settings, _queue.put)
