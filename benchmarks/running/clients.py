"""Trains a round's clients in parallel, in tasks on a Ray cluster: a running one, or one started here."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.encoders.fetched import use
from benchmarks.errors import UserError
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import KeptWeights
from benchmarks.running.included import load_once
from benchmarks.running.run_options import RunOptions, thread_limits

if TYPE_CHECKING:
    from benchmarks.running.federation import TaskOutcome
    from fedsim.engine import ClientUpdate, ComputeUpdate, UpdateOutcome
    from fedsim.wire import Params

# With "0" Ray listens only at this address; otherwise it replaces it with a public one.
# https://github.com/ray-project/ray/issues/18730
HERE, ALONE = "127.0.0.1", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
ANSWER_SECONDS = 10.0
RUN_PART = 0.1  # of a GPU, for a run that is itself a task; its clients' tasks get the rest


@dataclass(frozen=True)
class Work:
    """A process's inputs for a run. initial: the weights that it starts from. note: a remark for the user."""

    cell: RunConfig
    cell_id: str
    settings: RunOptions
    initial: KeptWeights | None
    note: str = ""


@contextmanager
def client_tasks(work: Work, on_batch: Callable[[int], None]) -> Iterator[ClientTasks | None]:
    """The tasks that train a run's clients; None for this process. on_batch: receives numbers of trained examples."""
    if work.settings.client_workers == 1:
        yield None
        return
    with connected(work.settings):
        yield ClientTasks(work, on_batch)


class ClientTasks:
    """Trains the number of clients in the options in parallel, in Ray tasks; a `MapClients`."""

    def __init__(self, work: Work, on_batch: Callable[[int], None]) -> None:
        self._ray, settings = library(work.settings), work.settings
        self._work, self._on_batch = self._ray.put(work), on_batch
        self.label, self.count = work.cell.label, settings.client_workers
        self.processes: dict[str, int] = {}  # process that trained clients -> its peak memory in bytes
        self.micro_batches: set[int] = set()  # sizes, if batches were split
        part = 1.0 - RUN_PART if settings.executor == "ray" else 1.0
        options = {"num_cpus": settings.threads, "num_gpus": gpu_share(settings, self.count, part)}
        self._task = self._ray.remote(_train).options(**options)

    @property
    def peak_bytes(self) -> int:
        """The sum of all processes' peak memory, in bytes."""
        return sum(self.processes.values())

    def __call__(self, compute: ComputeUpdate, updates: Iterable[ClientUpdate]) -> Iterator[UpdateOutcome]:
        """The outcomes of client updates, in order. compute: run by each task with a separate model."""
        pending: deque[Any] = deque()  # at most two per worker: early outcomes wait here
        for update in updates:
            if len(pending) >= self.count:
                self._ray.wait(list(pending), num_returns=len(pending) - self.count + 1)
            tensors = [on_cpu(group) for group in (update.shared, update.private, update.received)]
            pending.append(self._task.remote(self._work, update.round, update.client.id, *tensors))
            if len(pending) == 2 * self.count:
                yield self._outcome(pending.popleft())
        while pending:
            yield self._outcome(pending.popleft())

    def _outcome(self, task: Any) -> UpdateOutcome:
        try:
            outcome, process = self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None  # as in training in one process
        except self._ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())[:300]
            message = f"{self.label}: training a client failed ({reason}); finished rounds are saved"
            raise UserError(message) from None
        self.processes[process] = outcome.peak_bytes
        self.micro_batches |= {outcome.micro_batch} - {None}
        self._on_batch(outcome.examples)
        return outcome.update


_trainers: dict[str, Callable[..., TaskOutcome]] = {}  # in a task's process: cell_id -> trains a client of it


def _train(work: Work, *client: Any) -> tuple[TaskOutcome, str]:
    """A task: train a client, given its round, id and tensors; returns the outcome and this process."""
    if work.cell_id not in _trainers:  # each process builds its run's federation once
        os.environ.update(thread_limits(work.settings.threads))
        use(work.settings.data_dir)
        load_once(work.settings.include)
        from benchmarks.running.federation import client_trainer  # loads torch, which reads the environment

        _trainers.clear()
        _trainers[work.cell_id] = client_trainer(work.cell, work.cell_id, work.settings, work.initial)
    outcome = _trainers[work.cell_id](*client)
    update = replace(outcome.update, uploaded=on_cpu(outcome.update.uploaded), kept=on_cpu(outcome.update.kept))
    return outcome._replace(update=update), f"{os.uname().nodename} {os.getpid()}"


def on_cpu(tensors: Params) -> Params:
    """Copies of tensors on the CPU, as sending a view would send its whole tensor."""
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}


# ---- the cluster -------------------------------------------------------------------------------------------------


def library(settings: RunOptions) -> Any:
    """Ray; UserError if it is not installed."""
    if not settings.ray_address:
        os.environ.setdefault(ALONE, "0")  # Ray reads it at import
    try:
        import ray
    except ImportError:
        raise UserError("--executor ray needs Ray: .venv/bin/pip install -e '.[ray]'") from None
    return ray


def gpu_share(settings: RunOptions, tasks: int, part: float = 1.0) -> float:
    """GPUs per task, for so many parallel tasks: one, or a share if the cluster has fewer, times `part`."""
    gpus = 0 if settings.device == "cpu" else library(settings).cluster_resources().get("GPU", 0)
    return part * min(1.0, gpus / tasks)


@contextmanager
def connected(settings: RunOptions) -> Iterator[str]:
    """A context connected to the options' Ray cluster, or to one started here; gives its address."""
    ray = library(settings)
    is_first = not ray.is_initialized()
    if is_first:
        handler = signal.getsignal(signal.SIGTERM)
        _connect(ray, settings)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray replaced it
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        if is_first:
            ray.shutdown()


def _connect(ray: Any, settings: RunOptions) -> None:
    address, quiet = settings.ray_address, {"log_to_driver": False, "logging_level": "error"}
    try:
        if not address:
            cpus = settings.workers * settings.cores
            ray.init("local", num_cpus=cpus, include_dashboard=False, _node_ip_address=HERE, **quiet)
            return
        if "://" not in address and address != "auto":  # Ray waits minutes for a cluster that does not answer
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
        ray.init(address=address, **quiet)
    except (RuntimeError, ValueError, OSError, AssertionError, OverflowError) as error:
        raise UserError(
            f"no Ray cluster answers at {address or 'this machine'} ({' '.join(str(error).split())[:300]}). Expected "
            "a running one's address, such as head-node:6379, in --ray-address (make: RAY_ADDRESS); without it "
            "one starts here. A cluster with token authentication needs RAY_AUTH_MODE=token."
        ) from None
