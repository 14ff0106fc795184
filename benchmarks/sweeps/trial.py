"""A trial in a worker's process: its cells are run, and Optuna's pruner is asked at each rung."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import optuna
from optuna.trial import TrialState

from benchmarks.errors import UserError
from benchmarks.measures import metric
from benchmarks.results import POOLED, RoundRecord, RunResult
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellFailed, CellPruned, CellStarted, Event, RoundFinished
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.journal import Journal
from benchmarks.sweeps.plan import scored_at
from benchmarks.sweeps.pool import tell
from benchmarks.sweeps.tuning import KEPT
from fedsim.locks import TakenError


@dataclass(frozen=True)
class Job:
    """A trial of a study, as a worker is told of it: a cell for each seed.

    score: the metric that is optimised, "test/f1". rungs: rounds after which the trial may be pruned.
    """

    study: str
    number: int
    cells: tuple[RunConfig, ...]
    score: str
    rungs: tuple[int, ...]
    settings: RunOptions
    keeps_weights: bool = False


class _PrunedError(Exception):
    """Ends a run from its sink: the lock is released, the checkpoint kept."""


def run_trial(job: Job) -> str:
    """Compute a trial, or find its records, and tell Optuna what came of it.

    It may be pruned by the scores of its first seed. One that fails stays open in the study, for the next start.

    Returns:
        Who computes one of its cells, where another process does; "" otherwise.
    """
    from benchmarks.running.runner import run_cell
    from fedsim.errors import FederationError
    from partitions import PartitionError

    study = Journal(job.settings.results_dir).load(job.study, job.rungs)
    if study.get_trials(deepcopy=False)[job.number].state.is_finished():  # by another invocation, a moment ago
        return ""
    rungs, records = _Rungs(job, study), list[RunResult]()
    try:
        for cell in job.cells:
            records.append(run_cell(cell, job.settings, tell if records else rungs, job.keeps_weights, wait=False))
            if len(records) == 1:
                rungs.pass_by(records[0].rounds)
    except TakenError as holder:
        return str(holder)
    except _PrunedError:
        study.tell(job.number, state=TrialState.PRUNED, skip_if_finished=True)
        return ""
    except (UserError, FederationError, PartitionError) as error:
        for cell in job.cells[len(records) :]:
            tell(CellFailed(cell, str(error)))
        return ""
    mean = mean_of([record.score(job.score, scored_at(record.cell)) for record in records])
    if mean is None:  # undefined, or diverged
        study.tell(job.number, state=TrialState.FAIL, skip_if_finished=True)
    else:
        uplink = statistics.fmean(map(uplink_of, records))
        study.tell(job.number, [mean, uplink][: len(study.directions)], skip_if_finished=True)
    return ""


class _Rungs:
    """A sink that follows the rounds of a trial's first cell, and asks Optuna's pruner at each rung."""

    def __init__(self, job: Job, study: optuna.Study) -> None:
        self.job = job
        frozen = study.get_trials(deepcopy=False)[job.number]
        self.trial = optuna.trial.Trial(study, frozen._trial_id)
        self.passed = len(frozen.intermediate_values)  # rungs, before a kill
        self.cell_id = ""
        self.rounds: list[RoundRecord] = []

    def __call__(self, event: Event) -> None:
        """Follow the cell; rounds of one from which it begins are not its own."""
        tell(event)
        match event:
            case CellStarted(cell, cell_id, finished) if cell.spec_id == self.job.cells[0].spec_id:
                self.cell_id, self.rounds = cell_id, list(finished)
            case RoundFinished(cell_id, entry) if cell_id == self.cell_id:
                self.rounds.append(entry)
            case _:
                return
        if rung := self.pass_by(self.rounds):
            outcome = {"pruned_after": rung, "cells": [self.cell_id], "scores": [self._score(rung)]}
            for name, value in (outcome | {"uplinks": [sum(entry.up_bytes for entry in self.rounds[:rung])]}).items():
                self.trial.set_user_attr(name, value)
            tell(CellPruned(self.job.cells[0], rung))
            for cell in self.job.cells[1:]:
                tell(CellPruned(cell, 0))
            raise _PrunedError

    def pass_by(self, rounds: Sequence[RoundRecord]) -> int:
        """Report the scores at the rungs that are reached; the rung at which the trial is to be pruned, or 0."""
        self.rounds = list(rounds)
        for place, rung in enumerate(self.job.rungs):
            if self.passed <= place and len(rounds) >= rung:
                self.passed += 1
                score = self._score(rung)
                step = self.job.rungs[0] * KEPT**place  # where Optuna's successive halving has its rungs
                self.trial.report(float("nan") if score is None else score, step)
                if self.trial.should_prune():
                    return rung
        return 0

    def _score(self, rung: int) -> float | None:
        """The score of a cell that is stopped after so many rounds, as its record would have it."""
        evaluation, name = self.job.score.split("/")
        scored = [{**entry.scores, POOLED: entry.pooled_scores.get("test", {})} for entry in self.rounds[:rung]]
        values = [scores[evaluation][name] for scores in scored]
        return values[-1] if scored_at(self.job.cells[0]) == "last" else metric(name).best(values)


def mean_of(scores: Sequence[float | None]) -> float | None:
    """The mean over seeds; None where one is undefined, or there is none."""
    defined = [score for score in scores if score is not None]
    return statistics.fmean(defined) if defined and len(defined) == len(scores) else None


def uplink_of(record: RunResult) -> int:
    """Bytes that a cell's clients sent up in all rounds."""
    return sum(entry.up_bytes for entry in record.rounds)
