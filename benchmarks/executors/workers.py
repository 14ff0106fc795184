"""Workers that drain a queue on a shared disk, and who started them and watches; SLURM and Ray differ in the start."""

from __future__ import annotations

import os
import platform
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.events import CellFailed, Sink
from benchmarks.executors.board import Board
from benchmarks.executors.queue import Queue
from benchmarks.executors.serial import drain
from benchmarks.fetched import use
from benchmarks.settings import Settings

POLL_SECONDS = 0.3
PATIENCE_SECONDS = 30.0  # of a worker with nothing to do, before it says whom it waits for


class Workers(Protocol):
    """Those that were started."""

    def running(self) -> bool:
        """Whether any of them may still do something."""

    def problems(self) -> Sequence[str]:
        """What those that ended badly said."""

    def stop(self) -> None:
        """End those that are left."""


def work(folder: Path, environment: Mapping[str, str]) -> None:
    """Compute what is open in a queue, until nothing is; UserError where this machine does not see it.

    environment: what libraries read when they are loaded.
    """
    os.environ.update(environment)
    queue, name = Queue.opened(folder), f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
    use(queue.settings.data_dir)
    board = Board(queue.jobs)
    hear = queue.listener(board, but=name)
    drain(board, queue.settings, board.noting(queue.log(name)), hear, PATIENCE_SECONDS)


def watch(board: Board, settings: Settings, sink: Sink, start: Callable[[Queue], Workers]) -> None:
    """Start workers on a new queue, and pass on what they say, until all is done or none of them is left."""
    tell = board.noting(sink)
    queue = Queue.made(board, settings)
    try:
        workers = start(queue)
        try:
            _listen(board, queue, workers, tell)
            why = "; ".join(dict.fromkeys(workers.problems())) or "all have ended"
            for job in list(board.open.values()):
                tell(CellFailed(job.cell, f"no worker is left that could compute it: {why}"))
        finally:
            workers.stop()
    finally:
        queue.remove()


def _listen(board: Board, queue: Queue, workers: Workers, tell: Sink) -> None:
    new = queue.events()
    while board.open:
        alive = workers.running()  # asked first: what the last one said is then written
        events = new()
        for event in events:
            tell(event)
        if not events:
            if not alive:
                return
            time.sleep(POLL_SECONDS)
