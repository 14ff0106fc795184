"""Two cells at the same time, a process and a thread each, as a table is run with WORKERS=2."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from benchmarks.performance.fedavg_job import Job, Ready, engine_seconds, prepare
from benchmarks.performance.processes import fresh_processes
from benchmarks.running.process import hold_freed_memory, quiet_libraries

CELLS = 2
PATIENCE_SECONDS = 600  # for the other process: after that something is wrong with it

_ready: Ready  # of a worker process
_barrier: Any


class SideBySide:
    """Worker processes that hold one cell each; every call trains a round of all cells at the same time."""

    def __init__(self, pool: ProcessPoolExecutor, job: Job) -> None:
        self._pool, self._job = pool, job

    def __call__(self, number: int = 1) -> float:
        """Examples a second of all cells together: those of a round, by the time of the slowest."""
        # A worker that waits at the barrier takes no second task, so each cell gets a process of its own.
        rounds: list[Future[tuple[int, float]]] = [self._pool.submit(_round, self._job, number) for _ in range(CELLS)]
        done = [round.result() for round in rounds]
        return sum(examples for examples, _ in done) / max(seconds for _, seconds in done)


@contextmanager
def side_by_side(job: Job) -> Iterator[SideBySide]:
    """The processes, set up and warm."""
    context = get_context("spawn")
    one_thread = replace(job, settings=replace(job.settings, threads=1))
    with fresh_processes(CELLS, _set_up, one_thread, context.Barrier(CELLS)) as pool:
        cells = SideBySide(pool, one_thread)
        cells(0)
        yield cells


def _set_up(job: Job, barrier: Any) -> None:
    global _ready, _barrier
    quiet_libraries()
    hold_freed_memory()
    _ready, _barrier = prepare(job), barrier


def _round(job: Job, number: int) -> tuple[int, float]:
    _barrier.wait(PATIENCE_SECONDS)
    return _ready.examples, engine_seconds(_ready, job.settings.results_dir, number)
