"""Tasks on a Ray cluster, one a run: on a cluster that runs, or on one that is started on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from benchmarks.errors import UserError
from benchmarks.executors.jobs import End, Executor, Job, compute_elsewhere
from benchmarks.executors.ray_cluster import connected, gpu_share, library
from benchmarks.executors.slots import threads
from benchmarks.running.run_options import RunOptions

# With "0" Ray takes HERE for this machine's address, and listens there alone; else it replaces it by one that is seen
# from outside. https://github.com/ray-project/ray/issues/18730


@contextmanager
def started(settings: RunOptions, count: int) -> Iterator[Tasks]:
    """Ray's tasks for so many runs; those that are left end with the block."""
    settings.results_dir.mkdir(parents=True, exist_ok=True)
    with connected(settings):
        tasks = Tasks(settings.absolute(), min(settings.workers, count))
        try:
            yield tasks
        finally:
            tasks.cancel()


class Tasks(Executor):
    """See `started`; progress within a run stays with its task."""

    poll_seconds = 0.2

    def __init__(self, settings: RunOptions, room: int) -> None:
        ray = library(settings)
        self.room = room
        self._settings = settings
        self._cancel = ray.cancel
        self._left: dict[Future[End], Any] = {}
        if (cpus := ray.cluster_resources().get("CPU", 0)) < settings.cores:
            raise UserError(f"expected {settings.cores} CPUs in the Ray cluster, found {cpus:g}")
        # A task that is lost with its node is not repeated by Ray, but submitted anew.
        options = {"num_cpus": settings.cores, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        self._task = ray.remote(compute_elsewhere).options(**options, num_gpus=gpu_share(settings, room))

    def submit(self, jobs: Sequence[Job], wait: bool) -> list[Future[End]]:
        """Submit a task for each run."""
        environment = threads(self._settings)
        tasks = [self._task.remote(job, self._settings, wait, environment) for job in jobs]
        futures = [task.future() for task in tasks]
        self._left = {future: task for future, task in self._left.items() if not future.done()}
        self._left.update(zip(futures, tasks, strict=True))
        return futures

    def cancel(self) -> None:
        """End what is left."""
        for future, task in self._left.items():
            if not future.done():
                self._cancel(task, force=True)
