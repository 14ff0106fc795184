"""A trial in a worker's process: its cells are run, and Optuna's pruner is asked at each rung."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optuna.trial import Trial, TrialState

from benchmarks.errors import UserError
from benchmarks.events import CellFailed, CellPruned, CellStarted, Event, RoundFinished
from benchmarks.measures import metric
from benchmarks.record import POOLED, RoundRecord, RunRecord
from benchmarks.settings import Settings
from benchmarks.spec import Cell
from benchmarks.sweeps.journal import Journal
from benchmarks.sweeps.pool import tell
from benchmarks.tuning import KEPT
from fedsim.leases import TakenError


@dataclass(frozen=True)
class Job:
    """A trial of a study, as a worker is told of it: a cell for each seed.

    score, scored_at: what is optimised, and at which round. rungs: rounds after which it may be pruned. pareto: whether
    uplink bytes are an objective too.
    """

    study: str
    number: int
    cells: tuple[Cell, ...]
    score: str
    scored_at: str
    rungs: tuple[int, ...]
    pareto: bool
    settings: Settings
    keeps_weights: bool = False


class _PausedError(Exception):
    """A cell has reached a rung before those of other seeds."""


class _PrunedError(Exception):
    """The trial is among the worse ones at a rung."""


def run_trial(job: Job) -> str:
    """Compute a trial, or find its records, and tell Optuna what came of it.

    A trial that fails stays open in the study, for the next start.

    Returns:
        Who computes one of its cells, where another process does; "" otherwise.
    """
    from fedsim.errors import FederationError
    from partitions import PartitionError

    running = _Running(job)
    try:
        running.run()
    except TakenError as holder:
        return str(holder)
    except (UserError, FederationError, PartitionError) as error:
        for cell in running.left():
            tell(CellFailed(cell, str(error)))
    return ""


class _Running:
    """The cells of a trial: each pauses at a rung until all are there, then the trial goes on or is pruned."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.study = Journal(job.settings.results_dir).study(job.study, job.score, job.pareto, job.rungs)
        self.frozen = self.study.get_trials(deepcopy=False)[job.number]
        self.trial = Trial(self.study, self.frozen._trial_id)
        self.ids: dict[int, str] = {}  # by the cell's place
        self.records: dict[int, RunRecord] = {}
        self.scores: dict[
            tuple[int, int], tuple[float | None, int]
        ] = {}  # (rung, cell's place) -> score, bytes sent up
        self.passed: set[int] = set()  # rungs

    def left(self) -> list[Cell]:
        """The cells without a record."""
        return [cell for place, cell in enumerate(self.job.cells) if place not in self.records]

    def run(self) -> None:
        """Run the cells to their end, or to the rung at which the trial is pruned."""
        from benchmarks.runner import run_cell

        if self.frozen.state.is_finished():  # by another invocation, a moment ago
            return None
        while self.left():
            for place, cell in enumerate(self.job.cells):
                if place in self.records:
                    continue
                try:
                    listener = self._listener(place, cell)
                    record = run_cell(cell, self.job.settings, listener, self.job.keeps_weights, wait=False)
                    self.records[place] = record
                    if record.diverged:
                        return self._tell()
                    self._arrive(place, record.rounds)
                except _PausedError:
                    continue
                except _PrunedError:
                    return None
        return self._tell()

    def _listener(self, place: int, cell: Cell) -> Callable[[Event], None]:
        """A sink that follows the cell's rounds; those of a cell from which it begins are not its own."""
        rounds: list[RoundRecord] = []

        def listen(event: Event) -> None:
            tell(event)
            match event:
                case CellStarted(started, cell_id, finished) if started.spec_id == cell.spec_id:
                    self.ids[place] = cell_id
                    rounds[:] = finished
                case RoundFinished(cell_id, entry) if cell_id == self.ids.get(place):
                    rounds.append(entry)
                case _:
                    return
            self._arrive(place, rounds)

        return listen

    def _arrive(self, place: int, rounds: Sequence[RoundRecord]) -> None:
        """Note a cell's scores at the rungs that it has reached; raises where it does not go on, for now or ever."""
        for rung in self.job.rungs:
            if len(rounds) < rung:
                return
            self.scores.setdefault((rung, place), (self._score(rounds[:rung]), sum(r.up_bytes for r in rounds[:rung])))
            reached = [self.scores[rung, other] for other in range(len(self.job.cells)) if (rung, other) in self.scores]
            if len(reached) < len(self.job.cells):
                raise _PausedError
            if rung not in self.passed:
                self.passed.add(rung)
                self._report(rung, reached)

    def _report(self, rung: int, reached: Sequence[tuple[float | None, int]]) -> None:
        scores = [score for score, _ in reached]
        mean = mean_of(scores)
        step = self.job.rungs[0] * KEPT ** self.job.rungs.index(rung)  # where Optuna's pruner has its rungs
        if step not in self.frozen.intermediate_values:  # as before a kill
            self.trial.report(float("nan") if mean is None else mean, step)
        if self.trial.should_prune() and self.left():
            outcome = {"pruned_after": rung, "scores": scores, "uplinks": [sent for _, sent in reached]}
            for name, value in {**outcome, "cells": [self.ids.get(place, "") for place in range(len(scores))]}.items():
                self.trial.set_user_attr(name, value)
            self.study.tell(self.job.number, state=TrialState.PRUNED, skip_if_finished=True)
            for cell in self.left():
                tell(CellPruned(cell, rung))
            raise _PrunedError

    def _score(self, rounds: Sequence[RoundRecord]) -> float | None:
        """The score of a cell that was stopped after these rounds, as its record would have it."""
        evaluation, name = self.job.score.split("/")
        scored = [{**entry.scores, POOLED: entry.pooled_scores.get("test", {})} for entry in rounds]
        values = [scores[evaluation][name] for scores in scored]
        return values[-1] if self.job.scored_at == "last" else metric(name).best(values)

    def _tell(self) -> None:
        """Tell the mean score; a trial whose score is undefined, or that diverged, has failed."""
        mean = mean_of([record.score(self.job.score, self.job.scored_at) for record in self.records.values()])
        if mean is None:
            self.study.tell(self.job.number, state=TrialState.FAIL, skip_if_finished=True)
            for cell in self.left():
                tell(CellFailed(cell, "another seed of the trial diverged"))
            return
        uplink = statistics.fmean(uplink_of(record) for record in self.records.values())
        self.study.tell(self.job.number, [mean, uplink] if self.job.pareto else mean, skip_if_finished=True)


def mean_of(scores: Sequence[float | None]) -> float | None:
    """The mean over seeds; None where one is undefined, or there is none."""
    defined = [score for score in scores if score is not None]
    return statistics.fmean(defined) if defined and len(defined) == len(scores) else None


def uplink_of(record: RunRecord) -> int:
    """Bytes that a cell's clients sent up in all rounds."""
    return sum(entry.up_bytes for entry in record.rounds)
