"""Processes on this machine, one per parallel job; killed processes are replaced."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.managers import SyncManager
from typing import Any

from benchmarks.executors.jobs import End, Executor, Job, compute
from benchmarks.running.events import Event
from benchmarks.running.run_options import RunOptions, gpu_memory, thread_limits

VISIBLE = "CUDA_VISIBLE_DEVICES"
CONTEXT = multiprocessing.get_context("spawn")  # forking after torch has run can hang


@contextmanager
def started(settings: RunOptions, count: int) -> Iterator[Processes]:
    """The settings' number of processes, for `count` jobs; they end with the block."""
    theirs, ours = CONTEXT.Pipe(duplex=False)
    manager = SyncManager(ctx=CONTEXT)  # a killed worker could leave a local queue locked
    manager.start(end_with_parent, (theirs,))
    slots = [_Slot(environment, theirs) for environment in environments(settings, min(settings.workers, count))]
    try:
        yield Processes(settings, slots, manager.Queue())
    finally:
        ours.close()
        for slot in slots:
            slot.pool.shutdown(cancel_futures=True)
        manager.shutdown()


class _Slot:
    """A pool with one process, so that the job of a killed process is known."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments  # of `_begin`
        self.pool = ProcessPoolExecutor(1, CONTEXT, _begin, arguments)
        self.future: Future[End] | None = None

    def submit(self, *arguments: Any) -> Future[End]:
        try:
            self.future = self.pool.submit(compute, *arguments)
        except BrokenProcessPool:
            self.pool = ProcessPoolExecutor(1, CONTEXT, _begin, self.arguments)
            self.future = self.pool.submit(compute, *arguments)
        return self.future


class Processes(Executor):
    """See `started`."""

    poll_seconds = 0.05

    def __init__(self, settings: RunOptions, slots: Sequence[_Slot], events: queue.Queue[Event]) -> None:
        self.room = len(slots)
        self._settings, self._slots, self._events = settings, slots, events

    def submit(self, jobs: Sequence[Job], wait: bool) -> list[Future[End]]:
        """Give each job to an idle process."""
        idle = [slot for slot in self._slots if slot.future is None or slot.future.done()]
        pairs = zip(idle, jobs, strict=False)
        return [slot.submit(job, self._settings, self._events.put, wait) for slot, job in pairs]

    def events(self) -> Iterator[Event]:
        """All processes' events since the last call."""
        with suppress(queue.Empty):
            while True:
                yield self._events.get_nowait()


def _begin(environment: Mapping[str, str], pipe: Connection) -> None:
    os.environ.update(environment)  # before loading torch
    end_with_parent(pipe)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a process at once: its state is on disk


def end_with_parent(*pipes: Connection) -> None:
    """End this process when its parent process ends or closes its end of a pipe."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        wait([parent.sentinel, *pipes])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def environments(settings: RunOptions, workers: int) -> list[Mapping[str, str]]:
    """Each process's environment: its threads, and its visible GPU unless the device names one.

    If there are more processes than GPUs, they share them in turn.
    """
    gpus: list[str] = []
    if settings.device in (None, "cuda"):
        visible = [name.strip() for name in os.environ.get(VISIBLE, "").split(",") if name.strip()]
        count = len(gpu_memory())
        gpus = visible if count and visible else [str(number) for number in range(count)]
    limits = thread_limits(settings.threads)
    return [limits | ({VISIBLE: gpus[number % len(gpus)]} if gpus else {}) for number in range(workers)]
