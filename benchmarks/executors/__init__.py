"""Where runs are computed, with the same results: in this process, in several, on SLURM or on a Ray cluster."""

from __future__ import annotations

import importlib
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain

from benchmarks.executors.jobs import End, Executor, Job, Serial, staged_jobs
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellFailed, CellFinished, CellWaits, Sink
from benchmarks.running.run_options import ELSEWHERE, RunOptions
from benchmarks.running.stages import IsFinished, stopped_by

DEATHS = 3  # of a run's process, after which the run fails
DIED = (
    f"its process died {DEATHS} times, possibly out of memory; finished rounds are saved. Start the same command "
    "again, with fewer WORKERS"
)
# Each is imported, with the library that it needs, where it is asked for.
MODULES = {"processes": "processes", "slurm": "on_slurm", "ray": "on_ray"}


def run_cells(
    cells: Sequence[RunConfig],
    settings: RunOptions,
    sink: Sink,
    keeps_weights: bool = False,
    is_finished: IsFinished | None = None,
) -> int:
    """Run cells and, before them, what they begin from. A run that fails keeps no other from running.

    What begins from a run that failed, or that diverged, fails as well. Finished cells are not computed again.

    Args:
        cells: What to run; a cell that is given twice is run once.
        settings: Where results are, and which executor runs the cells.
        sink: Told each event as it happens.
        keeps_weights: Whether all cells keep their weights, and not only those that others begin from.
        is_finished: Says which cells are finished; where it is None, they are looked up.

    Returns:
        How many runs failed.
    """
    if is_finished is None:
        is_finished = importlib.import_module("benchmarks.running.found").Found(settings)
    stages = staged_jobs(cells, keeps_weights, is_finished)
    left = {job.cell.spec_id for job in chain(*stages) if not is_finished(job.cell, job.needs_weights)}
    stops: dict[str, str] = {}  # spec_id -> why nothing begins from this run
    failed = 0
    with _executor(settings, sink, len(left)) as executor:
        for jobs in stages:
            blocked = [(job, CellFailed(job.cell, stops[job.after])) for job in jobs if job.after in stops]
            able = [job for job in jobs if job.after not in stops]
            found = _ends(Serial(settings, sink), [job for job in able if job.cell.spec_id not in left], sink)
            computed = _ends(executor, [job for job in able if job.cell.spec_id in left], sink)
            for job, end in chain(blocked, found, computed):
                sink(end)
                if isinstance(end, CellFailed):
                    failed += 1
                    stops[job.cell.spec_id] = f"{job.cell.label}, from which it begins, could not be computed"
                elif isinstance(end, CellFinished) and end.record.diverged:
                    stops[job.cell.spec_id] = stopped_by(end.record)
    return failed


@contextmanager
def _executor(settings: RunOptions, sink: Sink, count: int) -> Iterator[Executor]:
    """The executor that the settings name, for so many runs."""
    name = settings.executor or "processes"
    with ExitStack() as stack:
        if settings.client_workers > 1 and name not in ELSEWHERE and count:  # one Ray cluster for all runs
            on_ray = importlib.import_module("benchmarks.executors.on_ray")
            settings = replace(settings, ray_address=stack.enter_context(on_ray.connected(settings)))
        if name == "serial" or count == 0 or (name == "processes" and min(settings.workers, count) == 1):
            yield Serial(settings, sink)
        else:
            module = importlib.import_module(f"benchmarks.executors.{MODULES[name]}")
            yield stack.enter_context(module.started(settings, count))


def _ends(executor: Executor, jobs: Sequence[Job], sink: Sink) -> Iterator[tuple[Job, End]]:
    """Compute runs; those that another invocation computes are waited for in the end."""
    taken: list[tuple[Job, CellWaits]] = []
    for job, end in _computed(executor, jobs, False, sink):
        if isinstance(end, CellWaits):
            taken.append((job, end))
        else:
            yield job, end
    for _, waits in taken:
        sink(waits)
    yield from _computed(executor, [job for job, _ in taken], True, sink)


def _computed(executor: Executor, jobs: Sequence[Job], wait: bool, sink: Sink) -> Iterator[tuple[Job, End]]:
    """Hand runs to an executor, and again where their process was killed."""
    queue, pending = deque(jobs), dict[Future[End], Job]()
    deaths: Counter[str] = Counter()
    while queue or pending:
        if batch := [queue.popleft() for _ in range(min(len(queue), executor.room - len(pending)))]:
            pending.update(zip(executor.submit(batch, wait), batch, strict=True))
        ended = [future for future in pending if future.done()]
        for event in executor.events():  # asked later: whatever an ended run has told is among them
            sink(event)
        for future in ended:
            job = pending.pop(future)
            try:
                end = future.result()
            except Exception as error:  # noqa: BLE001 - a run's own errors are ends: its process was lost
                deaths[job.cell.spec_id] += 1
                if deaths[job.cell.spec_id] < DEATHS:
                    queue.append(job)
                    continue
                end = CellFailed(job.cell, f"{DIED} ({' '.join(str(error).split())[:300]})")
            yield job, end
        if not ended:
            time.sleep(executor.poll_seconds)
