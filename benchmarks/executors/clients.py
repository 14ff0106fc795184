"""Clients of one round side by side: tasks of Ray that each train a client, while the run's own process sums in order.

A task's process builds the run's federation once, as the runner does, and keeps it for further clients.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.encoders.fetched import use
from benchmarks.errors import UserError
from benchmarks.executors.ray_cluster import connected, gpu_share, library
from benchmarks.executors.slots import threads
from benchmarks.run_config import RunConfig
from benchmarks.running.run_options import RunOptions

if TYPE_CHECKING:  # torch is loaded once the environment says with how many threads
    from benchmarks.running.completed import Outcome
    from fedsim.engine import ClientUpdate, ComputeUpdate, UpdateOutcome
    from fedsim.wire import Params

Trained = tuple["UpdateOutcome", int, str, int]  # its outcome, examples, process, and that process's peak of memory


@dataclass(frozen=True)
class Work:
    """What a process needs of its run. initial: the outcome from which the run begins."""

    cell: RunConfig
    cell_id: str
    settings: RunOptions
    initial: Outcome | None


@contextmanager
def spread_of(work: Work, on_batch: Callable[[int], None]) -> Iterator[ClientTasks | None]:
    """Where the clients of a run train, if not in this process. on_batch: receives the numbers of trained examples."""
    if work.settings.client_workers == 1:
        yield None
        return
    with connected(work.settings):
        yield ClientTasks(work, on_batch)


class ClientTasks:
    """Trains as many clients at once as the settings say, in tasks of Ray; a `MapClients`."""

    def __init__(self, work: Work, on_batch: Callable[[int], None]) -> None:
        self._ray = library(work.settings)
        self._work, self._on_batch = self._ray.put(work), on_batch
        self.label, self.count = work.cell.label, work.settings.client_workers
        self.processes: dict[str, int] = {}  # those that trained clients, with each one's peak of memory in bytes
        options = {"num_cpus": work.settings.threads, "num_gpus": gpu_share(work.settings, self.count)}
        self._task = self._ray.remote(_trained).options(**options)

    @property
    def peak_bytes(self) -> int:
        """The peaks of memory of all processes together."""
        return sum(self.processes.values())

    def __call__(self, compute: ComputeUpdate, updates: Iterable[ClientUpdate]) -> Iterator[UpdateOutcome]:
        """The outcomes of client updates, in their order. compute: what the tasks do, each with a model of its own."""
        pending: deque[Any] = deque()  # at most twice as many as train at once: an early outcome waits here
        for update in updates:
            if len(pending) >= self.count:
                self._ray.wait(list(pending), num_returns=len(pending) - self.count + 1)
            tensors = [_plain(group) for group in (update.shared, update.private, update.received)]
            pending.append(self._task.remote(self._work, update.round, update.client.id, *tensors))
            if len(pending) == 2 * self.count:
                yield self._outcome(pending.popleft())
        while pending:
            yield self._outcome(pending.popleft())

    def _outcome(self, task: Any) -> UpdateOutcome:
        try:
            outcome, examples, process, peak_bytes = self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None  # as it is raised if clients train in one process
        except self._ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())[:300]
            message = f"{self.label}: a client could not be trained ({reason}); finished rounds are saved"
            raise UserError(message) from None
        self.processes[process] = peak_bytes
        self._on_batch(examples)
        return outcome


_trainers: dict[str, Callable[..., Trained]] = {}  # in a task's process: cell_id -> trains a client of that run


def _trained(work: Work, *arguments: Any) -> Trained:
    """A task: train a client by its round, id and tensors."""
    if work.cell_id not in _trainers:
        _trainers.clear()
        _trainers[work.cell_id] = _trainer(work)
    return _trainers[work.cell_id](*arguments)


def _trainer(work: Work) -> Callable[..., Trained]:
    os.environ.update(threads(work.settings))
    use(work.settings.data_dir)
    import torch

    from benchmarks.running.federation import build_clients, build_federation, load_inputs
    from benchmarks.running.process import hold_freed_memory, peak_memory_bytes, quiet_libraries
    from fedsim.engine import ClientUpdate, UpdateOutcome
    from fedsim.store import same_device

    cell, settings = work.cell, work.settings
    examples: list[int] = []  # of the current client, step by step
    quiet_libraries()
    torch.set_num_threads(settings.threads)
    inputs = load_inputs(cell, settings, work.initial)
    if cell.cell_id(inputs.digests) != work.cell_id:
        raise UserError(f"{cell.label}: its data or its encoder have changed since it began. Start it again.")
    clients = {client.id: client for client in build_clients(cell, inputs, settings)[0]}
    federation = build_federation(cell, inputs, settings, examples.append)
    compute, device = federation.algorithm.client_update, federation.precision.device
    assert compute is not None
    if not federation.workload.objective.own_words:
        hold_freed_memory()

    def train(round: int, client: int, *tensors: Params) -> Trained:
        examples.clear()
        outcome = compute(ClientUpdate(round, clients[client], *(same_device(group, device) for group in tensors)))
        plain = UpdateOutcome(_plain(outcome.uploaded), _plain(outcome.kept), outcome.loss)
        return plain, sum(examples), f"{os.uname().nodename} {os.getpid()}", peak_memory_bytes()

    return train


def _plain(tensors: Params) -> Params:
    """Copies of tensors on the CPU: a view would be sent with the whole tensor behind it."""
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}
