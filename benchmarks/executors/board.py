"""What is to be computed, what may begin, and what became of it, as far as one process knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from benchmarks.events import CellFailed, CellFinished, CellStarted, CellWaits, Event, Sink
from benchmarks.settings import Settings
from benchmarks.spec import Cell
from benchmarks.stages import IsFinished, by_stage, chain_of, initial_of, stopped_by


@dataclass(frozen=True)
class Job:
    """A cell to compute."""

    cell: Cell
    keeps_weights: bool
    needs_weights: bool = False  # as another job begins from them

    @cached_property
    def after(self) -> str:
        """The spec_id of the cell from whose outcome it begins, or ""."""
        before = initial_of(self.cell)
        return before.spec_id if before else ""


class Board:
    """Jobs in the order in which they are begun; those whose first stage is not done yet have to wait.

    open: the jobs that are not done, by their cells' spec_id.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = tuple(jobs)
        ids = [job.cell.spec_id for job in jobs]
        self._asked = Counter(ids)  # a cell that is asked for twice is computed once, and told twice
        self.open = dict(zip(ids, jobs, strict=True))
        self._begun: set[str] = set()
        self._awaited: set[str] = set()

    @classmethod
    def of(cls, cells: Sequence[Cell], keeps_weights: bool, is_finished: IsFinished) -> Board:
        """The cells, and before them what those that are not finished begin from; keeps_weights: all keep theirs."""
        begun_from = {before.spec_id for cell in cells for before in chain_of(cell, is_finished)[:-1]}
        ordered = (cell for stage in by_stage(cells, is_finished) for cell in stage)
        needed = ((cell, cell.spec_id in begun_from) for cell in ordered)
        return cls([Job(cell, keeps_weights or is_needed, is_needed) for cell, is_needed in needed])

    def ready(self) -> list[Job]:
        """The open jobs whose first stage is done."""
        return [job for job in self.open.values() if job.after not in self.open]

    def note(self, event: Event) -> list[Event]:
        """Take note of an event; what is to be said: it and what follows from it, or nothing where it is known."""
        match event:
            case CellFinished(record):
                spec_id = record.cell.spec_id
                if spec_id not in self.open:
                    return []
                again = [replace(event, reused=True)] * (self._asked[spec_id] - 1)
                return [event, *again, *self.close(spec_id, stopped_by(record) if record.diverged else "")]
            case CellFailed(cell):
                if cell.spec_id not in self.open:
                    return []
                return [event, *self.close(cell.spec_id, failed_before(cell))]
            case CellWaits(cell):
                if cell.spec_id in self._begun | self._awaited or cell.spec_id not in self.open:
                    return []  # by another of our own workers
                self._awaited.add(cell.spec_id)
            case CellStarted(cell):
                self._begun.add(cell.spec_id)
        return [event]

    def noting(self, sink: Sink) -> Sink:
        """A sink that notes each event, and passes on what is to be said."""

        def tell(event: Event) -> None:
            for said in self.note(event):
                sink(said)

        return tell

    def close(self, spec_id: str, stops: str = "") -> list[Event]:
        """A job is done; stops: why nothing begins from it, or "". Returns the failures that follow from that."""
        self.open.pop(spec_id, None)
        said: list[Event] = []
        for job in [job for job in self.open.values() if stops and job.after == spec_id]:
            said += [CellFailed(job.cell, stops), *self.close(job.cell.spec_id, failed_before(job.cell))]
        return said


def failed_before(cell: Cell) -> str:
    """Why nothing begins from a cell that failed, in words."""
    return f"{cell.label}, from which it begins, could not be computed"


def attempt(job: Job, settings: Settings, sink: Sink) -> None:
    """Compute a job's cell, or find it; what the user can mend is told to the sink. TakenError: another computes it."""
    from benchmarks.errors import UserError
    from benchmarks.runner import run_cell
    from fedsim.errors import FederationError
    from partitions import PartitionError

    try:
        run_cell(job.cell, settings, sink, job.keeps_weights, job.needs_weights, wait=False)
    except (UserError, FederationError, PartitionError) as error:
        sink(CellFailed(job.cell, str(error)))
