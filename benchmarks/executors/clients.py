"""Clients of a cell side by side: processes that each compute a client's turn, while the cell's own sums in order.

A process is started when there is a turn for it, makes the cell's federation as the runner does, and lives as long as
the cell. Tensors go through pipes as their bytes: on two cores 320 MB took 0.6 s there and back to a word, and 1.4 s
through shared memory, which has to be copied into at both ends and is small in many containers.
"""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from benchmarks.errors import UserError
from benchmarks.executors.processes import CONTEXT, MEMORY, end_with_parent
from benchmarks.executors.slots import environments
from benchmarks.settings import Settings
from benchmarks.spec import Cell

if TYPE_CHECKING:  # torch is loaded once the environment says with how many threads
    from torch import Tensor

    from benchmarks.stages import Outcome
    from fedsim.turns import ComputeTurn, Turn, TurnOutcome
    from fedsim.wire import Params

T = TypeVar("T")
R = TypeVar("R")
Told = TypeVar("Told", contravariant=True)
Found = TypeVar("Found", covariant=True)


@dataclass(frozen=True)
class Work:
    """What a process has to know of its cell. initial: the outcome from which the cell begins."""

    cell: Cell
    cell_id: str
    settings: Settings
    initial: Outcome | None


class Crew(Protocol[Told, Found]):
    """Those who work on turns."""

    def free(self) -> bool:
        """Whether one of them has nothing to do."""

    def begin(self, place: int, turn: Told) -> None:
        """Give one that is free a turn."""

    def heard(self) -> Iterable[tuple[int, Found | Exception]]:
        """Wait for news: what was computed, by the place of its turn, or why it cannot be."""


def in_order(crew: Crew[T, R], turns: Iterable[T], most_early: int) -> Iterator[R]:
    """What becomes of each turn, in the order of the turns, which are begun in order, too.

    At most `most_early` wait here for one before them: as long as so many do, no turn is begun. An error is raised at
    its own place, so that it is the one that is met where turns are computed one after the other.
    """
    early: dict[int, R | Exception] = {}
    left, begun, given = iter(turns), 0, 0
    is_last = False
    while True:
        while not is_last and begun - given <= most_early and crew.free():
            for turn in left:
                crew.begin(begun, turn)
                begun += 1
                break
            else:
                is_last = True
        if given in early:
            found = early.pop(given)
            given += 1
            if isinstance(found, Exception):
                raise found
            yield found
        elif given == begun and is_last:
            return
        else:
            early.update(crew.heard())


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    place: int | None = None  # of the turn that it is at
    peak_bytes: int = 0


class ClientWorkers:
    """Computes turns in as many processes as the settings say, no more than take part in a round; a `Spread`.

    on_batch: told the number of examples of each step, whoever takes it.
    """

    def __init__(self, work: Work, on_batch: Callable[[int], None]) -> None:
        self.work, self.on_batch = work, on_batch
        from fedsim.engine import drawn_places

        cell = work.cell
        cohort = drawn_places(cell.clients, cell.training.participation, cell.seed, round=1)
        self.environments = environments(work.settings, min(work.settings.client_workers, len(cohort)))
        self.workers: list[_Worker] = []
        self.peak_bytes = 0  # of the memory of all of them

    def __call__(self, compute: ComputeTurn, turns: Iterable[Turn]) -> Iterator[TurnOutcome]:
        """The outcomes of turns, in their order. compute: what the processes do, each with a model of its own."""
        try:
            if not self.workers:  # all at once: each takes seconds to load its libraries
                self.workers += [self._hired(environment) for environment in self.environments]
            yield from in_order(self, turns, len(self.workers))
        except BaseException:  # some of them are at turns that no one asks for any more
            self.close()
            raise

    def close(self) -> None:
        """End the processes, whatever they are at: they hold nothing that is not here."""
        for worker in self.workers:
            worker.process.kill()
        for worker in self.workers:
            worker.process.join()
            worker.pipe.close()
        self.workers.clear()

    def free(self) -> bool:
        """Whether a process is idle."""
        return any(worker.place is None for worker in self.workers)

    def begin(self, place: int, turn: Turn) -> None:
        """Send a turn to an idle process."""
        worker = next(worker for worker in self.workers if worker.place is None)
        worker.place = place
        try:
            _send(worker.pipe, (turn.round, turn.client.id), turn.shared, turn.private, turn.received)
        except OSError:
            raise self._lost() from None

    def heard(self) -> Iterator[tuple[int, TurnOutcome | Exception]]:
        """What the processes say, once one does; UserError where one is gone."""
        from fedsim.turns import TurnOutcome

        heard = wait([worker.pipe for worker in self.workers])
        for worker in [worker for worker in self.workers if worker.pipe in heard]:
            try:
                said, tensors = _receive(worker.pipe)
            except (EOFError, OSError):
                raise self._lost() from None
            if isinstance(said, int):
                self.on_batch(said)
                continue
            place, worker.place = worker.place, None
            assert place is not None
            if isinstance(said, Exception):
                yield place, said
            else:
                loss, worker.peak_bytes = said
                self.peak_bytes = max(self.peak_bytes, sum(other.peak_bytes for other in self.workers))
                uploaded, kept = tensors
                yield place, TurnOutcome(uploaded, kept, loss)

    def _hired(self, environment: Mapping[str, str]) -> _Worker:
        ours, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=_work, args=(theirs, self.work, environment), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _lost(self) -> UserError:
        label = self.work.cell.label
        return UserError(
            f"{label}: one of its {len(self.workers)} client workers was killed, {MEMORY} or --client-workers"
        )


@contextmanager
def spread_of(work: Work, on_batch: Callable[[int], None]) -> Iterator[ClientWorkers | None]:
    """Where the turns of a cell's clients are computed, if not in this process."""
    if work.settings.client_workers == 1:
        yield None
        return
    workers = ClientWorkers(work, on_batch)
    try:
        yield workers
    finally:
        workers.close()


def _work(pipe: Connection, work: Work, environment: Mapping[str, str]) -> None:
    """A process: compute turns, as long as someone asks."""
    os.environ.update(environment)  # before torch is loaded
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the cell, and that ends this
    compute: Callable[..., tuple[TurnOutcome, int]] | None = None
    with suppress(EOFError, OSError):
        while True:
            (round, client), tensors = _receive(pipe)
            try:
                compute = compute or _computing(work, lambda examples: _send(pipe, examples))
                outcome, peak_bytes = compute(round, client, *tensors)
            except Exception as error:  # noqa: BLE001 - raised where the turn was asked for
                _send(pipe, _portable(error))
            else:
                _send(pipe, (outcome.loss, peak_bytes), outcome.uploaded, outcome.kept)


def _computing(work: Work, on_batch: Callable[[int], None]) -> Callable[..., tuple[TurnOutcome, int]]:
    """What computes a turn by its round, its client's id and its tensors; the memory that this took is told as well."""
    import torch

    from benchmarks.federation import build_clients, build_federation, load_inputs
    from benchmarks.runner import hold_freed_memory, peak_memory_bytes, quiet_libraries
    from fedsim.store import same_device
    from fedsim.turns import Turn

    cell, settings = work.cell, work.settings
    quiet_libraries()
    torch.set_num_threads(settings.threads)
    inputs = load_inputs(cell, settings, work.initial)
    if cell.cell_id(inputs.digests) != work.cell_id:
        raise UserError(f"{cell.label}: its data or its encoder have changed since it began. Start it again.")
    clients = {client.id: client for client in build_clients(cell, inputs, settings)[0]}
    federation = build_federation(cell, inputs, settings, on_batch)
    turn, device = federation.algorithm.turn, federation.precision.device
    if turn is None:
        raise UserError(f"{cell.algorithm}: its clients' turns belong to a larger round. Leave out --client-workers.")
    if not federation.setting.objective.own_words:
        hold_freed_memory()

    def compute(round: int, client: int, *tensors: Params) -> tuple[TurnOutcome, int]:
        given = (same_device(group, device) for group in tensors)
        return turn(Turn(round, clients[client], *given)), peak_memory_bytes()

    return compute


def _portable(error: Exception) -> Exception:
    """An error that can be raised in another process, which shows where it arose if nobody foresaw it."""
    with suppress(Exception):
        error.add_note(f"in a client worker:\n{''.join(traceback.format_exception(error))}")
        pickle.loads(pickle.dumps(error))
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")


def _send(pipe: Connection, said: Any, *groups: Params) -> None:
    """Send something small, and tensors."""
    held = [{name: tensor.detach().cpu().contiguous() for name, tensor in group.items()} for group in groups]
    kinds = [{name: (tensor.dtype, tensor.shape) for name, tensor in group.items()} for group in held]
    pipe.send((said, kinds))
    for tensor in (tensor for group in held for tensor in group.values() if tensor.numel()):
        pipe.send_bytes(_bytes_of(tensor))


def _receive(pipe: Connection) -> tuple[Any, list[Params]]:
    """What `_send` sent; EOFError or OSError where nobody is there."""
    said, kinds = pipe.recv()
    if not kinds:
        return said, []
    import torch

    groups = [{name: torch.empty(shape, dtype=dtype) for name, (dtype, shape) in group.items()} for group in kinds]
    for tensor in (tensor for group in groups for tensor in group.values() if tensor.numel()):
        pipe.recv_bytes_into(_bytes_of(tensor))
    return said, groups


def _bytes_of(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous tensor, where they are."""
    import torch

    return tensor.view(-1).view(torch.uint8).numpy().data
