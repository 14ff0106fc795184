"""Jobs, their ends, and the executor interface."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from benchmarks.errors import UserError
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import IsFinished, by_stage, chain_of, initial_of
from benchmarks.running.events import CellFailed, CellFinished, CellPruned, CellWaits, Event, Sink
from benchmarks.running.included import load_once
from benchmarks.running.run_options import RunOptions
from fedsim.errors import FederationError
from fedsim.locks import TakenError

End: TypeAlias = CellFinished | CellFailed | CellPruned | CellWaits  # CellWaits: another process computes it


@dataclass(frozen=True)
class Job:
    """A run, and whether it keeps its weights. needs_weights: whether another job starts from them."""

    cell: RunConfig
    keeps_weights: bool = False
    needs_weights: bool = False

    @cached_property
    def after(self) -> str:
        """The spec_id of the earlier run, or ""."""
        before = initial_of(self.cell)
        return before.spec_id if before else ""

    def run(self, settings: RunOptions, sink: Sink, wait: bool) -> None:
        """Compute the job, or find its result; its last event is its end. Raises like `run_cell`."""
        self.record(self.cell, settings, sink, wait)

    def record(self, cell: RunConfig, settings: RunOptions, sink: Sink, wait: bool) -> RunResult:
        """A cell's record, computed if necessary."""
        from benchmarks.running.runner import run_cell  # loads torch, after a worker has set its environment

        return run_cell(cell, settings, sink, self.keeps_weights, self.needs_weights, wait)


def staged_jobs(cells: Sequence[RunConfig], keeps_weights: bool, is_finished: IsFinished) -> list[list[Job]]:
    """The distinct jobs for cells and the earlier runs of unfinished ones, in lists to run in sequence."""
    cells = list({cell.spec_id: cell for cell in cells}.values())
    needed = {before.spec_id for cell in cells for before in chain_of(cell, is_finished)[:-1]}
    return [
        [Job(cell, keeps_weights or cell.spec_id in needed, cell.spec_id in needed) for cell in stage]
        for stage in by_stage(cells, is_finished)
    ]


class Executor:
    """Computes jobs.

    room: the number of parallel jobs. poll_seconds: the pause between two checks on them.
    """

    room = 1
    poll_seconds = 0.0

    def submit(self, jobs: Sequence[Job], wait: bool) -> Sequence[Future[End]]:
        """Start jobs; a future raises if its job's process was killed. wait: as in `compute`."""
        raise NotImplementedError

    def events(self) -> Iterable[Event]:
        """The jobs' events since the last call, if this executor has them."""
        return ()


class Serial(Executor):
    """Computes jobs in sequence in this process; events reach the sink at once."""

    def __init__(self, settings: RunOptions, sink: Sink) -> None:
        self._settings, self._sink = settings, sink

    def submit(self, jobs: Sequence[Job], wait: bool) -> list[Future[End]]:
        futures: list[Future[End]] = [Future() for _ in jobs]
        for job, future in zip(jobs, futures, strict=True):
            future.set_result(compute(job, self._settings, self._sink, wait))
        return futures


def compute(job: Job, settings: RunOptions, sink: Sink, wait: bool) -> End:
    """Compute a job, or find its result; returns its end, and passes all other events to the sink.

    wait: whether to wait if another process computes the job; if False, its end is CellWaits.
    """
    from partitions import PartitionError  # loads numpy

    ends: list[End] = []

    def tell(event: Event) -> None:
        cell = event.record.cell if isinstance(event, CellFinished) else getattr(event, "cell", None)
        if isinstance(event, CellFinished | CellPruned) and cell and cell.spec_id == job.cell.spec_id:
            ends.append(event)
        elif not isinstance(event, CellWaits):  # the waiting caller sends it
            sink(event)

    try:
        load_once(settings.include)
        job.run(settings, tell, wait)
        return ends[-1]
    except TakenError as holder:
        return CellWaits(job.cell, str(holder))
    except (UserError, FederationError, PartitionError) as error:
        return CellFailed(job.cell, str(error))
    except Exception as error:  # noqa: BLE001 - other jobs still run
        if isinstance(error, OSError) and error.filename:
            reason = f"{error.filename} cannot be used ({error.strerror}); finished rounds are saved"
            return CellFailed(job.cell, reason)
        with suppress(OSError, ValueError):  # stderr may be full, or closed
            traceback.print_exception(error, file=sys.stderr)
        return CellFailed(job.cell, f"{type(error).__name__}: {error}")


def compute_elsewhere(job: Job, settings: RunOptions, wait: bool, environment: Mapping[str, str]) -> End:
    """Compute a job in a process, possibly on another machine. environment: set before loading libraries."""
    from benchmarks.encoders.fetched import use  # loads numpy, which reads the environment

    os.environ.update(environment)
    if not settings.results_dir.is_dir():
        return CellFailed(
            job.cell,
            f"{os.uname().nodename}: expected the results folder {settings.results_dir}, found none. Machines share "
            "one results folder: set RESULTS_DIR to a folder with the same path on all of them.",
        )
    use(settings.data_dir)
    return compute(job, settings, lambda event: None, wait)
