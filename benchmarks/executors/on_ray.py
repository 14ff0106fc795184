"""Tasks on a Ray cluster, one a run: on a cluster that runs, or on one that is started on this machine."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from benchmarks.errors import UserError
from benchmarks.executors.jobs import End, Executor, Job, compute_elsewhere
from benchmarks.executors.slots import threads
from benchmarks.settings import Settings

HERE = "127.0.0.1"
# With "0" Ray takes HERE for this machine's address, and listens there alone; else it replaces it by one that is seen
# from outside. https://github.com/ray-project/ray/issues/18730
ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
ANSWER_SECONDS = 10.0


@contextmanager
def started(settings: Settings, count: int) -> Iterator[Tasks]:
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

    def __init__(self, settings: Settings, room: int) -> None:
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


def gpu_share(settings: Settings, tasks: int) -> float:
    """GPUs of one of so many tasks side by side: one, or its share where the cluster has fewer."""
    gpus = 0 if settings.device == "cpu" else library(settings).cluster_resources().get("GPU", 0)
    return min(1.0, gpus / tasks)


def library(settings: Settings) -> Any:
    """Ray; UserError where it is not installed."""
    if not settings.ray_address:
        os.environ.setdefault(ALONE, "0")  # read by Ray when it is loaded
    try:
        import ray
    except ImportError:
        raise UserError("--executor ray needs Ray: pip install 'fedbert-bench[ray]'") from None
    return ray


@contextmanager
def connected(settings: Settings) -> Iterator[str]:
    """Be connected to the Ray cluster that the settings name, or to one started here; gives its address."""
    ray = library(settings)
    ours = not ray.is_initialized()
    if ours:
        handler = signal.getsignal(signal.SIGTERM)
        _connect(ray, settings)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray has put one of its own in place
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        if ours:
            ray.shutdown()


def _connect(ray: Any, settings: Settings) -> None:
    if settings.ray_address and "://" not in settings.ray_address:
        _require_answer(settings.ray_address)
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if settings.ray_address:
            ray.init(address=settings.ray_address, **quiet)
        else:
            cpus = settings.workers * settings.cores
            ray.init("local", num_cpus=cpus, include_dashboard=False, _node_ip_address=HERE, **quiet)
    except (RuntimeError, ValueError, OSError, AssertionError) as error:
        raise _no_answer(settings.ray_address or "this machine", error) from None


def _require_answer(address: str) -> None:
    """Ask the cluster's port first: Ray's own patience with a cluster that is not there is minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _no_answer(address, error) from None


def _no_answer(address: str, error: Exception) -> UserError:
    return UserError(
        f"no Ray cluster answers at {address} ({' '.join(str(error).split())[:300]}). Expected the address of one that "
        "runs, such as head-node:6379, in --ray-address (make: RAY_ADDRESS); without it one is started here."
    )
