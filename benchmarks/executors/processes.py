"""Cells side by side, in processes of this machine: each is handed one at a time, and replaced where it is killed."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from benchmarks.errors import UserError
from benchmarks.events import CellFailed, CellWaits, Event, Sink
from benchmarks.executors.board import Board, Job, attempt
from benchmarks.executors.slots import environments
from benchmarks.settings import Settings
from fedsim.leases import POLL_SECONDS, TakenError

KILLS = 3  # of workers at one cell, before that is given up
MEMORY = "perhaps for want of memory; what was finished is kept. Start the same command again, with fewer WORKERS"
CONTEXT = multiprocessing.get_context("spawn")  # forking a process that has run torch can hang


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    environment: Mapping[str, str]
    job: Job | None = None


def run(board: Board, settings: Settings, sink: Sink) -> None:
    """Hand out what is open to as many processes as the settings say."""
    with _forwarded(sink) as tell:
        crew = _Crew(board, settings, tell)
        try:
            for environment in environments(settings, min(settings.workers, len(board.open))):
                crew.hire(environment)
            while board.open:
                crew.hand_out()
                crew.listen()
        except BaseException:  # Ctrl-C, say, that reached this process alone: no one waits for a whole cell
            crew.stop()
            raise
        crew.dismiss()


class _Crew:
    """The workers, and what each is at."""

    def __init__(self, board: Board, settings: Settings, sink: Sink) -> None:
        self.board, self.settings, self.tell = board, settings, board.noting(sink)
        self.workers: list[_Worker] = []
        self.kills: Counter[str] = Counter()  # by what the worker was at: a cell's spec_id, or "" of one that was idle
        self.resting: dict[str, float] = {}  # cells that another invocation computes: when they are tried again
        self.pauses: dict[str, float] = {}

    def hire(self, environment: Mapping[str, str]) -> None:
        """Start a worker."""
        ours, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=_work, args=(theirs, self.settings, environment))
        process.start()
        theirs.close()
        self.workers.append(_Worker(process, ours, environment))

    def hand_out(self) -> None:
        """Give each idle worker a job, as long as there are some."""
        at_work = {worker.job.cell.spec_id for worker in self.workers if worker.job}
        now = time.monotonic()
        jobs = (job for job in self.board.ready() if job.cell.spec_id not in at_work)
        ready = (job for job in jobs if self.resting.get(job.cell.spec_id, 0) <= now)
        for worker, job in zip([worker for worker in self.workers if not worker.job], ready, strict=False):
            with suppress(OSError):  # of one that is dead, as will be heard
                worker.job = job
                worker.pipe.send(job)

    def listen(self) -> None:
        """Wait until a worker says something, or has ended."""
        heard = wait([worker.pipe for worker in self.workers], POLL_SECONDS / 4 if self.resting else None)
        for worker in [worker for worker in self.workers if worker.pipe in heard]:
            try:
                self._take(worker, worker.pipe.recv())
            except (EOFError, OSError):
                self._replace(worker)

    def _take(self, worker: _Worker, said: Event | str | None) -> None:
        if said is not None and not isinstance(said, str):
            self.tell(said)
            return
        assert worker.job is not None
        spec_id = worker.job.cell.spec_id
        if said is None:
            self.resting.pop(spec_id, None)
        else:
            self.tell(CellWaits(worker.job.cell, said))
            pause = self.pauses[spec_id] = min(2 * self.pauses.get(spec_id, POLL_SECONDS / 20), POLL_SECONDS)
            self.resting[spec_id] = time.monotonic() + pause
        worker.job = None

    def _replace(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        worker.process.join()
        worker.pipe.close()
        at = worker.job.cell.spec_id if worker.job else ""
        self.kills[at] += 1
        if self.kills[at] >= KILLS:
            if worker.job is None:
                raise UserError(f"{KILLS} worker processes were killed before they had begun, {MEMORY}")
            reason = f"{KILLS} worker processes were killed while they computed it, {MEMORY}"
            self.tell(CellFailed(worker.job.cell, reason))
        if self.board.open:
            self.hire(worker.environment)

    def dismiss(self) -> None:
        """Let the workers end, when there is nothing left to do."""
        for worker in self.workers:
            with suppress(OSError):
                worker.pipe.send(None)
        for worker in self.workers:
            worker.process.join()

    def stop(self) -> None:
        """End the workers, whatever they are at."""
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.process.join()


@contextmanager
def _forwarded(sink: Sink) -> Iterator[Sink]:
    """Pass events to the sink in a thread of its own: no worker waits for a tracking server that is slow."""
    events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    errors: list[Exception] = []

    def forward() -> None:
        while (event := events.get()) is not None:
            try:
                sink(event)
            except Exception as error:  # noqa: BLE001 - raised below, where the run ends
                errors.append(error)

    thread = threading.Thread(target=forward, daemon=True)
    thread.start()
    try:
        yield events.put
    finally:
        events.put(None)
        thread.join()
    if errors:
        raise errors[0]


def _work(pipe: Connection, settings: Settings, environment: Mapping[str, str]) -> None:
    os.environ.update(environment)  # before torch is loaded
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker at once: its state is on disk
    with suppress(EOFError):
        while (job := pipe.recv()) is not None:
            try:
                attempt(job, settings, pipe.send)
                pipe.send(None)
            except TakenError as holder:
                pipe.send(str(holder))
            except Exception as error:  # noqa: BLE001 - one that fails keeps no other from running
                pipe.send(CellFailed(job.cell, unexpected(error)))
                pipe.send(None)


def unexpected(error: Exception) -> str:
    """What is said of an error that nobody foresaw; where it arose goes to stderr."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename} cannot be used ({error.strerror}); finished rounds are saved"
    with suppress(OSError, ValueError):  # stderr may be full, or closed
        traceback.print_exception(error, file=sys.stderr)
    return f"{type(error).__name__}: {error}"


def end_with_parent() -> None:
    """End this process as soon as the one that started it is gone: a SIGKILL leaves no one to tell it."""

    def follow() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
