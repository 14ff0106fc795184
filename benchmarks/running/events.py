"""A running cell's events, for the progress display, tracking and sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.results import RoundRecord, RunResult
from benchmarks.run_config import RunConfig


@dataclass(frozen=True)
class CellStarted:
    """A cell started, or resumed after the `finished` rounds.

    train_examples: per round, summed over its cohort and epochs. note: a remark for the user.
    """

    cell: RunConfig
    cell_id: str
    finished: tuple[RoundRecord, ...]
    train_examples: tuple[int, ...]
    note: str = ""


@dataclass(frozen=True)
class CellWaits:
    """A cell waits for the process that computes it. holder: a description of that process."""

    cell: RunConfig
    holder: str


@dataclass(frozen=True)
class Trained:
    """The optimiser processed some examples."""

    cell_id: str
    examples: int


@dataclass(frozen=True)
class RoundFinished:
    """A round was aggregated, scored and saved."""

    cell_id: str
    round: RoundRecord


@dataclass(frozen=True)
class CellFinished:
    """A cell's record was written, or already existed (`reused`)."""

    record: RunResult
    reused: bool = False


@dataclass(frozen=True)
class CellFailed:
    """A cell ended without a record, for a reason that the user can fix."""

    cell: RunConfig
    message: str


@dataclass(frozen=True)
class CellPruned:
    """A sweep stopped a cell early, as other trials are better; its checkpoint stays."""

    cell: RunConfig
    rounds: int


Event = CellStarted | CellWaits | Trained | RoundFinished | CellFinished | CellFailed | CellPruned
Sink = Callable[[Event], None]
