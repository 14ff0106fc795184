"""A run to compute, how it ends, and what an executor is."""

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
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellFailed, CellFinished, CellWaits, Event, Sink
from benchmarks.running.run_options import RunOptions
from benchmarks.running.stages import IsFinished, by_stage, chain_of, initial_of
from fedsim.locks import TakenError

End: TypeAlias = CellFinished | CellFailed | CellWaits  # the last: another process computes the run


@dataclass(frozen=True)
class Job:
    """A run, and whether it keeps its weights; needs_weights: another job begins from them."""

    cell: RunConfig
    keeps_weights: bool
    needs_weights: bool = False

    @cached_property
    def after(self) -> str:
        """The spec_id of the run from whose outcome this one begins, or ""."""
        before = initial_of(self.cell)
        return before.spec_id if before else ""


def staged_jobs(cells: Sequence[RunConfig], keeps_weights: bool, is_finished: IsFinished) -> list[list[Job]]:
    """The runs of some cells and of what the unfinished ones begin from, each once, in lists to compute in order."""
    cells = list({cell.spec_id: cell for cell in cells}.values())
    needed = {before.spec_id for cell in cells for before in chain_of(cell, is_finished)[:-1]}
    return [
        [Job(cell, keeps_weights or cell.spec_id in needed, cell.spec_id in needed) for cell in stage]
        for stage in by_stage(cells, is_finished)
    ]


class Executor:
    """Computes runs somewhere.

    room: How many runs it takes at once. poll_seconds: The pause between two looks at them.
    """

    room = 1
    poll_seconds = 0.0

    def submit(self, jobs: Sequence[Job], wait: bool) -> Sequence[Future[End]]:
        """Begin runs; a future raises where the process of its run was killed. wait: as in `compute`."""
        raise NotImplementedError

    def events(self) -> Iterable[Event]:
        """The progress of runs since the last call, where this executor knows it."""
        return ()


class Serial(Executor):
    """Computes one run after the other in this process; events reach the sink at once."""

    def __init__(self, settings: RunOptions, sink: Sink) -> None:
        self._settings, self._sink = settings, sink

    def submit(self, jobs: Sequence[Job], wait: bool) -> list[Future[End]]:
        """Compute runs."""
        futures: list[Future[End]] = [Future() for _ in jobs]
        for job, future in zip(jobs, futures, strict=True):
            future.set_result(compute(job, self._settings, self._sink, wait))
        return futures


def compute(job: Job, settings: RunOptions, sink: Sink, wait: bool) -> End:
    """Compute a run, or find its result; returns its end, and tells the sink everything else.

    Args:
        job: The run.
        settings: Where results are.
        sink: Told the progress of the run.
        wait: Whether to wait where another process computes the run, rather than to return CellWaits.
    """
    from benchmarks.running.runner import run_cell  # loads torch, after a worker has set its environment
    from fedsim.errors import FederationError
    from partitions import PartitionError

    ends: list[End] = []

    def tell(event: Event) -> None:
        if isinstance(event, CellFinished) and event.record.cell.spec_id == job.cell.spec_id:
            ends.append(event)
        elif not isinstance(event, CellWaits):  # told where the run is waited for
            sink(event)

    try:
        run_cell(job.cell, settings, tell, job.keeps_weights, job.needs_weights, wait)
        return ends[-1]
    except TakenError as holder:
        return CellWaits(job.cell, str(holder))
    except (UserError, FederationError, PartitionError) as error:
        return CellFailed(job.cell, str(error))
    except Exception as error:  # noqa: BLE001 - a run that fails keeps no other from running
        return CellFailed(job.cell, _unexpected(error))


def compute_elsewhere(job: Job, settings: RunOptions, wait: bool, environment: Mapping[str, str]) -> End:
    """Compute a run in a process that may be on another machine. environment: set before libraries are loaded."""
    from benchmarks.encoders.fetched import use  # loads numpy, which `list` does without

    os.environ.update(environment)
    if not settings.results_dir.is_dir():
        return CellFailed(
            job.cell,
            f"{os.uname().nodename}: expected the results folder {settings.results_dir}, found none. Machines share "
            "one results folder: set RESULTS_DIR to a folder that all of them see under the same name.",
        )
    use(settings.data_dir)
    return compute(job, settings, lambda event: None, wait)


def _unexpected(error: Exception) -> str:
    """What to say of an error that nobody foresaw; its traceback goes to stderr."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename} cannot be used ({error.strerror}); finished rounds are saved"
    with suppress(OSError, ValueError):  # stderr may be full, or closed
        traceback.print_exception(error, file=sys.stderr)
    return f"{type(error).__name__}: {error}"
