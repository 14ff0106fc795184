"""The trials of a sweep as jobs: any executor computes them, and Optuna's pruner is asked at each rung."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import optuna
from optuna.trial import TrialState

from benchmarks.executors import executor_for, run_jobs
from benchmarks.executors.jobs import Job
from benchmarks.measures import metric
from benchmarks.results import POOLED, RoundRecord, RunResult
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellPruned, CellStarted, Event, RoundFinished, Sink
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.plan import Tuning, scored_at
from benchmarks.sweeps.study import TunedStudy, journal, load_study
from benchmarks.sweeps.tuning import KEPT, Values


class _PrunedError(Exception):
    """Ends a run from its sink, with the rung: the lock is released, the checkpoint kept."""


@dataclass(frozen=True)
class TrialJob(Job):
    """A trial of a study: a cell for each seed, of which the first one decides whether the trial is pruned.

    score: the metric that is optimised, "test/f1". rungs: rounds after which the trial may be pruned.
    """

    cells: tuple[RunConfig, ...] = ()
    study: str = ""
    number: int = 0
    score: str = ""
    rungs: tuple[int, ...] = ()

    def run(self, settings: RunOptions, sink: Sink, wait: bool) -> None:
        """Compute the trial, or find its records, and tell Optuna its scores. If it fails, it stays open."""
        study = load_study(journal(settings.results_dir), self.study, self.rungs)
        state = study.get_trials(deepcopy=False)[self.number].state
        rungs = _Rungs(self, study, sink)
        try:
            if state == TrialState.PRUNED:  # by another invocation, a moment ago
                raise _PrunedError(0)
            first = self.record(self.cell, settings, rungs, wait)
            if not state.is_finished():
                rungs.report(first.rounds)
        except _PrunedError as pruned:
            study.tell(self.number, state=TrialState.PRUNED, skip_if_finished=True)
            for cell in self.cells[1:]:
                sink(CellPruned(cell, 0))
            sink(CellPruned(self.cell, pruned.args[0]))
            return
        rest = [self.record(cell, settings, sink, wait) for cell in self.cells[1:]]
        mean = mean_of([record.score(self.score, scored_at(record.cell)) for record in (first, *rest)])
        if mean is None:  # undefined, or diverged
            study.tell(self.number, state=TrialState.FAIL, skip_if_finished=True)
        else:
            uplink = statistics.fmean(map(uplink_of, (first, *rest)))
            study.tell(self.number, [mean, uplink][: len(study.directions)], skip_if_finished=True)


class _Rungs:
    """A listener that follows the rounds of a trial's first cell, and asks Optuna's pruner at each rung."""

    def __init__(self, job: TrialJob, study: optuna.Study, sink: Sink) -> None:
        self._job, self._sink = job, sink
        frozen = study.get_trials(deepcopy=False)[job.number]
        self._trial = optuna.trial.Trial(study, frozen._trial_id)
        self._passed = len(frozen.intermediate_values)  # rungs, before a kill
        self._cell_id, self._rounds = "", list[RoundRecord]()

    def __call__(self, event: Event) -> None:
        """Follow the cell; rounds of one from which it begins do not count."""
        self._sink(event)
        match event:
            case CellStarted(cell, cell_id, finished) if cell.spec_id == self._job.cell.spec_id:
                self._cell_id, self._rounds = cell_id, list(finished)
            case RoundFinished(cell_id, entry) if cell_id == self._cell_id:
                self._rounds.append(entry)
            case _:
                return
        if rung := self.report(self._rounds):
            outcome = {"pruned_after": rung, "cells": [self._cell_id], "scores": [self._score(self._rounds[:rung])]}
            for name, value in {**outcome, "uplinks": [sum(e.up_bytes for e in self._rounds[:rung])]}.items():
                self._trial.set_user_attr(name, value)
            raise _PrunedError(rung)

    def report(self, rounds: Sequence[RoundRecord]) -> int:
        """Report the scores at the rungs that are reached; the rung at which the trial is to be pruned, or 0."""
        for place, rung in enumerate(self._job.rungs):
            if self._passed <= place and len(rounds) >= rung:
                self._passed += 1
                score = self._score(rounds[:rung])
                step = self._job.rungs[0] * KEPT**place  # where Optuna's successive halving has its rungs
                self._trial.report(float("nan") if score is None else score, step)
                if self._trial.should_prune():
                    return rung
        return 0

    def _score(self, rounds: Sequence[RoundRecord]) -> float | None:
        """The score of a cell that is stopped after these rounds, as its record would have it."""
        evaluation, name = self._job.score.split("/")
        scored = [{**entry.scores, POOLED: entry.pooled_scores.get("test", {})} for entry in rounds]
        values = [scores[evaluation][name] for scores in scored]
        return values[-1] if scored_at(self._job.cell) == "last" else metric(name).best(values)


def run_trials(studies: Sequence[TunedStudy], settings: RunOptions, sink: Sink, names: dict[str, str]) -> None:
    """Run the open trials, as many side by side as there are workers; the studies keep their scores.

    Args:
        studies: The studies.
        settings: Where results are, and which executor runs the trials.
        sink: Receives each event as it happens.
        names: Receives what people call the cells that begin: spec_id -> name.
    """

    def jobs() -> Iterator[TrialJob]:
        for study in studies:
            given: set[int] = set()
            while (left := {*study.open()} - given) or study.draw():
                for number in sorted(left)[:1]:
                    given.add(number)
                    yield job(study.tuning, number, study.trials()[number])

    def job(tuning: Tuning, number: int, values: Values) -> TrialJob:
        cells, name = tuning.cells(values), f"{tuning.column.name} · {tuning.named(values).name}"
        names.update({cell.spec_id: f"{name} · seed {cell.seed}" for cell in cells})
        keeps = tuning.benchmark.keeps_weights
        return TrialJob(cells[0], keeps, False, cells, tuning.study, number, tuning.column.averaged, tuning.rungs)

    at_once = 0 if all(study.tuning.is_grid for study in studies) else settings.workers
    with executor_for(settings, sink, sum(len(study.left()) for study in studies)) as executor:
        for _, end in run_jobs(executor, jobs(), sink, at_once):
            sink(end)


def mean_of(scores: Sequence[float | None]) -> float | None:
    """The mean over seeds; None if one is undefined, or there is none."""
    defined = [score for score in scores if score is not None]
    return statistics.fmean(defined) if defined and len(defined) == len(scores) else None


def uplink_of(record: RunResult) -> int:
    """Bytes that a cell's clients sent up in all rounds."""
    return sum(entry.up_bytes for entry in record.rounds)
