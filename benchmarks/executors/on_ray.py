"""Tasks on a Ray cluster, one per job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from benchmarks.errors import UserError
from benchmarks.executors.jobs import End, Executor, Job, compute_elsewhere
from benchmarks.running.clients import RUN_PART, connected, gpu_share, library
from benchmarks.running.run_options import RunOptions, thread_limits
from fedsim.errors import plural


@contextmanager
def started(settings: RunOptions, count: int) -> Iterator[RayTasks]:
    """Ray tasks for `count` jobs; unfinished tasks end with the block."""
    settings.results_dir.mkdir(parents=True, exist_ok=True)
    with connected(settings):
        tasks = RayTasks(settings.absolute(), min(settings.workers, count))
        try:
            yield tasks
        finally:
            for future, task in tasks.submitted.items():
                if not future.done():
                    library(settings).cancel(task, force=True)


class RayTasks(Executor):
    """See `started`; it reports no progress within runs."""

    poll_seconds = 0.2

    def __init__(self, settings: RunOptions, room: int) -> None:
        ray = library(settings)
        self.room, self._settings = room, settings
        self.submitted: dict[Future[End], Any] = {}
        if (cpus := ray.cluster_resources().get("CPU", 0)) < settings.cores:
            raise UserError(
                f"Ray cluster: expected at least {plural(settings.cores, 'CPU')}, found {cpus:g}; lower --threads"
            )
        # The caller, not Ray, resubmits tasks that are lost with their node.
        options = {"num_cpus": settings.cores, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        gpus = gpu_share(settings, room, RUN_PART if settings.client_workers > 1 else 1.0)
        self._task = ray.remote(compute_elsewhere).options(**options, num_gpus=gpus)

    def submit(self, jobs: Sequence[Job], wait: bool) -> list[Future[End]]:
        environment = thread_limits(self._settings.threads)
        tasks = [self._task.remote(job, self._settings, wait, environment) for job in jobs]
        futures = [task.future() for task in tasks]
        self.submitted |= dict(zip(futures, tasks, strict=True))
        return futures
