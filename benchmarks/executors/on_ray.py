"""Tasks on a Ray cluster, each a worker that drains the queue: on one that runs, or one that is started here."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import UserError
from benchmarks.events import Sink
from benchmarks.executors.board import Board
from benchmarks.executors.queue import Queue
from benchmarks.executors.slots import threads
from benchmarks.executors.workers import watch, work
from benchmarks.settings import Settings

RETRIES = 100  # of a task whose node or process is lost: it goes on where the other was
HERE = "127.0.0.1"
# With "0" Ray takes HERE for this machine's address, and listens there alone; else it replaces it by one that is seen
# from outside. https://github.com/ray-project/ray/issues/18730
ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
ANSWER_SECONDS = 10.0
MAX_PORT = 65535


def run(board: Board, settings: Settings, sink: Sink) -> None:
    """Have tasks compute what is open; a node that is lost costs no more than the round that it was in."""
    if not settings.ray_address:
        os.environ.setdefault(ALONE, "0")  # read by Ray when it is loaded
    try:
        import ray
    except ImportError:
        raise UserError("--executor ray needs Ray: pip install -e '.[ray]'") from None

    ours = not ray.is_initialized()
    if ours:
        _connect(ray, settings)
    try:
        watch(board, settings, sink, lambda queue: _Tasks(ray, queue, settings))
    finally:
        if ours:
            ray.shutdown()


def _connect(ray: Any, settings: Settings) -> None:
    if settings.ray_address and "://" not in settings.ray_address:
        _require_answer(settings.ray_address)
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    try:
        if settings.ray_address:
            ray.init(address=settings.ray_address, log_to_driver=False, logging_level="error")
        else:
            ray.init("local", num_cpus=settings.workers * settings.cores, _node_ip_address=HERE, **quiet)
    except (RuntimeError, ValueError, OSError, AssertionError) as error:
        raise _no_answer(settings.ray_address or "this machine", error) from None


def _require_answer(address: str) -> None:
    """Ask the cluster's port first: Ray's own patience with a cluster that is not there is minutes."""
    host, _, port = address.rpartition(":")
    if address == "auto":
        return
    if not host or not port.isdecimal() or int(port) > MAX_PORT:
        raise UserError(f"--ray-address: expected auto or a host and port, such as head-node:6379, found {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except OSError as error:
        raise _no_answer(address, error) from None


def _no_answer(address: str, error: Exception) -> UserError:
    return UserError(
        f"no Ray cluster answers at {address} ({' '.join(str(error).split())[:300]}). Expected the address of one that "
        "runs, such as head-node:6379, in --ray-address (make: RAY_ADDRESS); without it one is started here."
    )


class _Tasks:
    """A task for each worker."""

    def __init__(self, ray: Any, queue: Queue, settings: Settings) -> None:
        self.ray = ray
        cluster = ray.cluster_resources()
        gpus = 0 if (settings.device or "cuda") == "cpu" else cluster.get("GPU", 0)
        workers = min(settings.workers, len(queue.jobs))
        options = {
            "num_cpus": settings.cores,
            "num_gpus": min(1, gpus / workers) if gpus else 0,
            "max_retries": RETRIES,
            "scheduling_strategy": "SPREAD",
        }
        if cluster.get("CPU", 0) < settings.cores:
            raise UserError(f"expected {settings.cores} CPUs in the Ray cluster, found {cluster.get('CPU', 0):g}")
        task = ray.remote(_drain).options(**options)
        environment = threads(settings)
        self.left = [task.remote(str(queue.folder), environment) for _ in range(workers)]
        self.ended: list[Any] = []

    def running(self) -> bool:
        """Whether a task waits for its turn, or runs."""
        ended, self.left = self.ray.wait(self.left, num_returns=len(self.left), timeout=0) if self.left else ([], [])
        self.ended += ended
        return bool(self.left)

    def problems(self) -> Sequence[str]:
        """The last line of what each failed task said."""
        said = []
        for task in self.ended:
            try:
                self.ray.get(task)
            except Exception as error:  # noqa: BLE001 - whatever the task raised
                said.append(str(error).strip().splitlines()[-1])
        return said

    def stop(self) -> None:
        """Take back the tasks that are left: those that run have nothing more to do."""
        for task in self.left:
            self.ray.cancel(task, force=True)


def _drain(folder: str, environment: Mapping[str, str]) -> None:
    work(Path(folder), environment)
