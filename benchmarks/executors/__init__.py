"""Executors for runs, with equal results: this process, several processes, SLURM or a Ray cluster."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import chain, islice

from benchmarks.executors.jobs import End, Executor, Job, Serial, staged_jobs
from benchmarks.run_config import RunConfig
from benchmarks.running.clients import connected
from benchmarks.running.completed import Completed, IsFinished, stopped_by
from benchmarks.running.events import CellFailed, CellFinished, CellWaits, Sink
from benchmarks.running.run_options import ELSEWHERE, RunOptions

DEATHS = 3  # of a job's process, after which the job fails
DIED = (
    f"its process died {DEATHS} times, possibly out of memory; finished rounds are saved. Start the same command "
    "again, with fewer WORKERS"
)
ADAPTERS = {"processes": "processes", "slurm": "on_slurm", "ray": "on_ray"}  # executor -> its module, loaded when used


def run_cells(
    cells: Sequence[RunConfig],
    settings: RunOptions,
    sink: Sink,
    keeps_weights: bool = False,
    is_finished: IsFinished | None = None,
) -> int:
    """Run cells after their earlier runs. A failed run does not stop others.

    A run whose earlier run failed or diverged fails, too. Finished cells are not computed again.

    Args:
        cells: The cells to run; duplicates run once.
        settings: Folders and machine, including the executor.
        sink: Receives each event.
        keeps_weights: Whether all cells keep their weights, not only those that others start from.
        is_finished: Whether a cell is finished; None to look for its record.

    Returns:
        The number of failed runs.
    """
    is_finished = is_finished or Completed(settings)
    stages = staged_jobs(cells, keeps_weights, is_finished)
    left = {job.cell.spec_id for job in chain(*stages) if not is_finished(job.cell, job.needs_weights)}
    stops: dict[str, str] = {}  # spec_id -> why no run can start from this one
    failed = 0
    with executor_for(settings, sink, len(left)) as executor:
        for jobs in stages:
            blocked = [(job, CellFailed(job.cell, stops[job.after])) for job in jobs if job.after in stops]
            able = [job for job in jobs if job.after not in stops]
            finished = run_jobs(Serial(settings, sink), [job for job in able if job.cell.spec_id not in left], sink)
            computed = run_jobs(executor, [job for job in able if job.cell.spec_id in left], sink)
            for job, end in chain(blocked, finished, computed):
                sink(end)
                if isinstance(end, CellFailed):
                    failed += 1
                    stops[job.cell.spec_id] = f"its parent run {job.cell.label} failed"
                elif isinstance(end, CellFinished) and end.record.diverged:
                    stops[job.cell.spec_id] = stopped_by(end.record)
    return failed


@contextmanager
def executor_for(settings: RunOptions, sink: Sink, count: int) -> Iterator[Executor]:
    """The executor in the settings, for `count` jobs."""
    name = settings.executor or "processes"
    with ExitStack() as stack:
        if settings.client_workers > 1 and name not in ELSEWHERE and count:  # one Ray cluster for all runs
            settings = replace(settings, ray_address=stack.enter_context(connected(settings)))
        if name == "serial" or count == 0 or (name == "processes" and min(settings.workers, count) == 1):
            yield Serial(settings, sink)
        else:
            adapter = import_module(f"{__name__}.{ADAPTERS[name]}")
            yield stack.enter_context(adapter.started(settings, count))


def run_jobs(executor: Executor, jobs: Iterable[Job], sink: Sink) -> Iterator[tuple[Job, End]]:
    """Compute jobs, and yield each with its end; those that another invocation computes come last.

    Jobs are taken one by one when there is room, and submitted again if their process was killed. The sink receives
    their events, except their ends.
    """
    taken: list[tuple[Job, CellWaits]] = []
    for job, end in _computed(executor, iter(jobs), sink, wait=False):
        if isinstance(end, CellWaits):
            taken.append((job, end))
        else:
            yield job, end
    for _, waits in taken:
        sink(waits)
    yield from _computed(executor, iter([job for job, _ in taken]), sink, wait=True)


def _computed(executor: Executor, jobs: Iterator[Job], sink: Sink, wait: bool) -> Iterator[tuple[Job, End]]:
    again, pending, deaths = deque[Job](), dict[Future[End], Job](), Counter[str]()
    while True:
        left = iter(lambda: again.popleft() if again else next(jobs, None), None)
        if batch := list(islice(left, executor.room - len(pending))):
            pending.update(zip(executor.submit(batch, wait), batch, strict=True))
        if not pending:
            return
        ended = [future for future in pending if future.done()]
        for event in executor.events():  # read later, to include all events of ended jobs
            sink(event)
        for future in ended:
            job = pending.pop(future)
            end = _end(job, future, deaths)
            if end is None:
                again.append(job)
            else:
                yield job, end
        if not ended:
            time.sleep(executor.poll_seconds)


def _end(job: Job, future: Future[End], deaths: Counter[str]) -> End | None:
    """The end of a job; None if its process died and the job must be submitted again."""
    try:
        return future.result()
    except Exception as error:  # noqa: BLE001 - a job's errors are ends, so its process was lost
        deaths[job.cell.spec_id] += 1
        if deaths[job.cell.spec_id] < DEATHS:
            return None
        return CellFailed(job.cell, f"{DIED} ({' '.join(str(error).split())[:300]})")
