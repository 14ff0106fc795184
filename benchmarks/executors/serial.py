"""One cell after the other, in this process: an executor of its own, and what each worker of a cluster does."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.events import CellWaits, Event, Sink
from benchmarks.executors.board import Board, attempt
from benchmarks.settings import Settings
from fedsim.leases import POLL_SECONDS, TakenError


def run(board: Board, settings: Settings, sink: Sink) -> None:
    """Compute what is open; what another process computes is left to it, and its record found in the end."""
    drain(board, settings, board.noting(sink), lambda: None)


def drain(
    board: Board, settings: Settings, sink: Sink, hear: Callable[[], None], patience_seconds: float = 0.0
) -> None:
    """Compute what is open, in the order that dependencies allow, skip what is taken, and come back to it.

    sink: notes on the board what it is told. hear: called between cells, to note there what others have done.
    patience_seconds: after so long with nothing to do, the sink is told who is waited for.
    """
    idle, pause = 0.0, POLL_SECONDS / 20
    while board.open:
        taken: list[Event] = []
        progress = len(board.open)
        for job in board.ready():
            hear()
            if job.cell.spec_id in board.open:
                try:
                    attempt(job, settings, sink)
                except TakenError as holder:
                    taken.append(CellWaits(job.cell, str(holder)))
        hear()
        if len(board.open) < progress:
            idle, pause = 0.0, POLL_SECONDS / 20
            continue
        if idle >= patience_seconds:
            for event in taken:
                sink(event)
        time.sleep(pause)
        idle, pause = idle + pause, min(2 * pause, POLL_SECONDS)
