"""Optuna studies in a results folder: processes share one journal, and any executor computes trials."""

from __future__ import annotations

import itertools
import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.pruners import SuccessiveHalvingPruner
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from benchmarks.errors import UserError
from benchmarks.executors import executor_for, run_jobs
from benchmarks.executors.jobs import Job
from benchmarks.measures import metric
from benchmarks.results import RoundRecord, stage_bytes
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellPruned, CellStarted, Event, RoundFinished, Sink
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.space import Tuning
from benchmarks.sweeps.tuning import KEPT, Grid, Values
from fedsim.locks import held

ORDER_SEED = 0  # for the order of a grid's points
optuna.logging.set_verbosity(optuna.logging.WARNING)


def journal(results_dir: Path) -> JournalStorage:
    """A results folder's journal; UserError if it is unusable."""
    path = results_dir / "sweeps" / "journal.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return JournalStorage(JournalFileBackend(str(path)))
    except Exception as error:  # noqa: BLE001 - Optuna raises many kinds for foreign lines
        raise UserError(
            f"{path}: expected Optuna's journal, found a damaged one ({type(error).__name__}: {error}). "
            f"Move it away: finished cells have records, which a sweep finds."
        ) from None


def load_study(storage: JournalStorage, name: str, rungs: Sequence[int]) -> optuna.Study:
    """The study with that name, which may prune trials after these rounds; KeyError if there is none."""
    pruner = SuccessiveHalvingPruner(min_resource=min(rungs, default=1), reduction_factor=KEPT)
    return optuna.load_study(study_name=name, storage=storage, pruner=pruner)


class TunedStudy:
    """A tuning's study, created if necessary, with the tuning's trials, which are open until they end."""

    def __init__(self, tuning: Tuning, results_dir: Path) -> None:
        self.tuning, self._lock = tuning, results_dir / "locks" / "sweeps.lock"
        storage = journal(results_dir)
        direction = StudyDirection.MAXIMIZE if tuning.metric.higher_is_better else StudyDirection.MINIMIZE
        with held(self._lock), warnings.catch_warnings(action="ignore"):  # metric names are experimental
            if tuning.study not in optuna.get_all_study_names(storage):
                new = optuna.create_study(storage=storage, study_name=tuning.study, direction=direction)
                new.set_metric_names([tuning.column.averaged.partition("/")[2]])
        self.study = load_study(storage, tuning.study, tuning.rungs)

    def frozen(self) -> list[FrozenTrial]:
        """All trials of the study, including other sweeps' trials."""
        return self.study.get_trials(deepcopy=False)

    def trials(self) -> dict[int, Values]:
        """The tuning's trials by number, ordered like the grid's points."""
        points = in_order(self.tuning.space)[: self.tuning.budget]
        return {trial.number: point for point in points for trial in self.frozen() if trial.params == point}

    def open(self) -> dict[int, Values]:
        """The trials that have started but not ended."""
        states = [trial.state for trial in self.frozen()]
        return {number: values for number, values in self.trials().items() if states[number] == TrialState.RUNNING}

    def left(self) -> list[Values]:
        """The values of the trials that have not ended."""
        return [*self.open().values(), *self._untried()]

    def begin(self, given: set[int]) -> int | None:
        """The number of the first open trial outside `given`, or of a new one; None if no trial is left."""
        with held(self._lock):
            if left := self.open().keys() - given:
                return min(left)
            if not (points := self._untried()):
                return None
            with warnings.catch_warnings(action="ignore"):  # lists and groups of options are choices, too
                choices: dict[str, BaseDistribution] = {
                    name: CategoricalDistribution(list(values)) for name, values in self.tuning.space.items()
                }
            self.study.add_trial(create_trial(state=TrialState.RUNNING, params=dict(points[0]), distributions=choices))
            return len(self.frozen()) - 1

    def _untried(self) -> list[Values]:
        tried = [trial.params for trial in self.frozen()]
        return [point for point in in_order(self.tuning.space)[: self.tuning.budget] if point not in tried]


def in_order(space: Grid) -> list[Values]:
    """A grid's points in the seeded order of Optuna's grid sampler, which cannot extend a study."""
    listed: Mapping[str, Any] = dict(sorted(space.items()))
    points = [dict(zip(listed, values, strict=True)) for values in itertools.product(*listed.values())]
    np.random.RandomState(ORDER_SEED).shuffle(points)  # type: ignore[arg-type]
    return [{name: point[name] for name in space} for point in points]


# ---- trials ------------------------------------------------------------------------------------------------------


class _PrunedError(Exception):
    """Ends a run from its sink, with the rung: the lock is released, the checkpoint kept."""


@dataclass(frozen=True)
class TrialJob(Job):
    """A trial: one cell per seed; the first cell decides whether the trial is pruned.

    score: the optimised metric, "test/f1". rungs: rounds after which the trial may be pruned. last_rounds: how many
    rounds the score averages; 0: the best round counts.
    """

    cells: tuple[RunConfig, ...] = ()
    study: str = ""
    number: int = 0
    score: str = ""
    rungs: tuple[int, ...] = ()
    last_rounds: int = 1

    def run(self, settings: RunOptions, sink: Sink, wait: bool) -> None:
        """Compute the trial, or find its records, and report its scores to Optuna. A failed trial stays open."""
        study = load_study(journal(settings.results_dir), self.study, self.rungs)
        rungs = _Rungs(self, study, sink)
        try:
            if study.get_trials(deepcopy=False)[self.number].state == TrialState.PRUNED:  # by another invocation
                raise _PrunedError(0)
            first = self.record(self.cell, settings, rungs, wait)
        except _PrunedError as pruned:
            study.tell(self.number, state=TrialState.PRUNED, skip_if_finished=True)
            for cell, rounds in [*((cell, 0) for cell in self.cells[1:]), (self.cell, pruned.args[0])]:
                sink(CellPruned(cell, rounds))
            return
        records = [first, *(self.record(cell, settings, sink, wait) for cell in self.cells[1:])]
        scores = [None if record.diverged else self.of_rounds(record.rounds) for record in records]
        uplinks, mean = [stage_bytes(record).up for record in records], mean_of(scores)
        with suppress(UpdateFinishedTrialError):  # by another invocation, while this one waited for its records
            rungs.report(first.rounds)
            rungs.keep([record.cell_id for record in records], scores, uplinks)
            study.tell(self.number, mean, TrialState.FAIL if mean is None else None)  # undefined, or diverged

    def of_rounds(self, rounds: Sequence[RoundRecord]) -> float | None:
        """The score of a cell that stops after these rounds; None if it is undefined."""
        return trial_score(rounds, self.score, self.last_rounds)


def trial_score(rounds: Sequence[RoundRecord], score: str, last_rounds: int) -> float | None:
    """The mean of a score over the last rounds, or for `last_rounds` 0 the best one; None if it is undefined."""
    values = [entry.score(score) for entry in rounds]
    return mean_of(values[-last_rounds:]) if last_rounds else metric(score).best(values)


class _Rungs:
    """Follows the rounds of a trial's first cell, and asks Optuna's pruner at each rung."""

    def __init__(self, job: TrialJob, study: optuna.Study, sink: Sink) -> None:
        self._job, self._sink = job, sink
        frozen = study.get_trials(deepcopy=False)[job.number]
        self._trial = optuna.trial.Trial(study, frozen._trial_id)
        self._passed = len(frozen.intermediate_values)  # rungs, before a kill
        self._cell_id, self._rounds = "", list[RoundRecord]()

    def __call__(self, event: Event) -> None:
        """Follow the cell; its earlier cell's rounds do not count."""
        self._sink(event)
        match event:
            case CellStarted(cell, cell_id, finished) if cell.spec_id == self._job.cell.spec_id:
                self._cell_id, self._rounds = cell_id, list(finished)
            case RoundFinished(cell_id, entry) if cell_id == self._cell_id:
                self._rounds.append(entry)
            case _:
                return
        if rung := self.report(self._rounds):
            sent = sum(entry.up_bytes for entry in self._rounds[:rung])
            self.keep([self._cell_id], [self._job.of_rounds(self._rounds[:rung])], [sent])
            raise _PrunedError(rung)

    def keep(self, cells: Sequence[str], scores: Sequence[float | None], uplinks: Sequence[int]) -> None:
        """Store a trial's cell ids, scores and uplink bytes in the study."""
        for name, values in {"cells": cells, "scores": scores, "uplinks": uplinks}.items():
            self._trial.set_user_attr(name, list(values))

    def report(self, rounds: Sequence[RoundRecord]) -> int:
        """Report the scores at the reached rungs; returns the rung to prune the trial at, or 0."""
        for place, rung in enumerate(self._job.rungs):
            if self._passed <= place and len(rounds) >= rung:
                self._passed += 1
                score = self._job.of_rounds(rounds[:rung])
                step = self._job.rungs[0] * KEPT**place  # the rungs of Optuna's successive halving
                self._trial.report(float("nan") if score is None else score, step)
                if self._trial.should_prune():
                    return rung
        return 0


def run_trials(studies: Sequence[TunedStudy], settings: RunOptions, sink: Sink, names: dict[str, str]) -> None:
    """Run the remaining trials, in parallel on all workers; the studies store their scores.

    sink: receives each event. names: receives the names of starting cells: spec_id -> name.
    """

    def jobs() -> Iterator[TrialJob]:
        for study in studies:
            given: set[int] = set()
            while (number := study.begin(given)) is not None:
                given.add(number)
                yield job(study.tuning, number, study.trials()[number])

    def job(tuning: Tuning, number: int, values: Values) -> TrialJob:
        cells, name = tuning.cells(values), f"{tuning.column.name} · {tuning.named(values).name}"
        names.update({cell.spec_id: f"{name} · seed {cell.seed}" for cell in cells})
        keeps = tuning.benchmark.keeps_weights
        return TrialJob(
            cells[0],
            keeps,
            False,
            cells,
            tuning.study,
            number,
            tuning.column.averaged,
            tuning.rungs,
            tuning.last_rounds,
        )

    with executor_for(settings, sink, sum(len(study.left()) for study in studies)) as executor:
        for _, end in run_jobs(executor, jobs(), sink):
            sink(end)


def mean_of(scores: Sequence[float | None]) -> float | None:
    """The mean over seeds; None if a score is undefined, or without scores."""
    defined = [score for score in scores if score is not None]
    return statistics.fmean(defined) if defined and len(defined) == len(scores) else None
