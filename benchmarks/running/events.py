"""What a running cell says, and who listens: the progress display and the tracking mirror."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.results import RoundRecord, RunResult
from benchmarks.run_config import RunConfig


@dataclass(frozen=True)
class CellStarted:
    """A cell began, or goes on after `finished` rounds of an earlier start."""

    cell: RunConfig
    cell_id: str
    finished: tuple[RoundRecord, ...]
    train_examples: tuple[int, ...]  # of each round, all of its cohort's epochs together
    note: str = ""  # what is to be said of how it runs


@dataclass(frozen=True)
class CellWaits:
    """A cell is computed by another process, which is waited for."""

    cell: RunConfig
    holder: str  # in words


@dataclass(frozen=True)
class Trained:
    """Some examples went through the optimiser."""

    cell_id: str
    examples: int


@dataclass(frozen=True)
class RoundFinished:
    """A round was aggregated, scored and saved."""

    cell_id: str
    round: RoundRecord


@dataclass(frozen=True)
class CellFinished:
    """A cell's record was written, or was there already."""

    record: RunResult
    reused: bool = False


@dataclass(frozen=True)
class CellFailed:
    """A cell ended without a record, for a reason that the user can mend."""

    cell: RunConfig
    message: str


@dataclass(frozen=True)
class CellPruned:
    """A cell of a sweep was stopped after some rounds, as other trials are better; its checkpoint is kept."""

    cell: RunConfig
    rounds: int


Event = CellStarted | CellWaits | Trained | RoundFinished | CellFinished | CellFailed | CellPruned
Sink = Callable[[Event], None]
