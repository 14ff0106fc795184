"""The trials of a sweep, side by side: hand out what is open, and ask Optuna for more until the budgets are spent."""

from __future__ import annotations

import itertools
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

from optuna.trial import TrialState

from benchmarks.errors import UserError
from benchmarks.executors import run_cells
from benchmarks.experiment import Column, Row
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellFailed, CellWaits, Event, Sink
from benchmarks.running.found import Found
from benchmarks.running.run_options import ELSEWHERE, RunOptions
from benchmarks.sweeps.journal import Journal, add_grid, draw, trials_of
from benchmarks.sweeps.plan import Tuning
from benchmarks.sweeps.pool import workers
from benchmarks.sweeps.trial import Job, run_trial
from benchmarks.sweeps.tuning import Values
from fedsim.locks import POLL_SECONDS

Place = tuple[str, int]  # a study's name and a trial's number


def run_trials(trials: Trials, sink: Sink) -> None:
    """Run what is left of a sweep's trials, as many side by side as there are workers; the studies tell the rest.

    Raises:
        UserError: a worker was killed.
    """
    if trials.settings.executor in ELSEWHERE:
        run_whole(trials, sink)
        return
    running: dict[Future[str], Job] = {}
    with workers(trials.settings, sink) as submit:
        while True:
            while len(running) < trials.settings.workers and (job := trials.next()):
                running[submit(run_trial, job)] = job
            if running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    for event in trials.end(running.pop(future), future):
                        sink(event)
            elif trials.resting:
                time.sleep(POLL_SECONDS)
            else:
                return


def run_whole(trials: Trials, sink: Sink) -> None:
    """Run the trials on a cluster, as whole cells that nothing prunes; of drawn ones as many at once as workers."""
    settings = trials.settings
    at_once = None if all(tuning.is_grid for tuning in trials.tunings) else settings.workers
    while jobs := list(itertools.islice(iter(trials.next, None), at_once)):
        run_cells([cell for job in jobs for cell in job.cells], settings, sink, jobs[0].keeps_weights)
        with workers(replace(settings, executor="serial"), lambda event: None) as submit:
            for job in jobs:
                if all(Found(settings)(cell, with_weights=False) for cell in job.cells):
                    submit(run_trial, job).result()


class Trials:
    """The trials of a sweep: each that is open is handed out once; one that another invocation computes is tried again.

    names: spec_id -> how people call the cell.
    """

    def __init__(self, tunings: Sequence[Tuning], settings: RunOptions) -> None:
        self.tunings, self.settings = tunings, settings
        self.names: dict[str, str] = {}
        self.journal = Journal(settings.results_dir)
        self.handed_out: set[Place] = set()
        self.resting: dict[Place, float] = {}  # trials that another invocation computes: when they are tried again
        self.announced: set[Place] = set()
        self.studies = {tuning.study: self.journal.study(tuning) for tuning in tunings}
        with self.journal.locked():
            for tuning in tunings:
                if tuning.is_grid:
                    add_grid(self.studies[tuning.study], tuning)

    def cells(self) -> list[tuple[Row, Column, RunConfig]]:
        """The cells of all trials so far, each with its row and column."""
        return [
            (tuning.named(values), tuning.column, cell)
            for tuning in self.tunings
            for values in trials_of(self.studies[tuning.study], tuning).values()
            for cell in tuning.cells(values)
        ]

    def left(self) -> list[RunConfig]:
        """The cells of open trials, and those of the default settings in place of trials that are still to be drawn."""
        cells: list[RunConfig] = []
        for tuning in self.tunings:
            study = self.studies[tuning.study]
            known = trials_of(study, tuning)
            for values in [*self._open(tuning).values(), *[{}] * (tuning.budget - len(known))]:
                cells += tuning.cells(values)
        return cells

    def next(self) -> Job | None:
        """The next open trial; None where none is left, or all that are left are at work."""
        now = time.monotonic()
        self.resting = {place: until for place, until in self.resting.items() if until > now}
        for tuning in self.tunings:
            if not self._open(tuning) and not tuning.is_grid:
                self._draw(tuning)
            for number, values in sorted(self._open(tuning).items())[:1]:
                self.handed_out.add((tuning.study, number))
                return self._job(tuning, number, values)
        return None

    def _open(self, tuning: Tuning) -> dict[int, Values]:
        """The trials that nobody has finished, and that are not handed out here."""
        study = self.studies[tuning.study]
        trials, out = study.get_trials(deepcopy=False), {*self.handed_out, *self.resting}
        return {
            number: values
            for number, values in trials_of(study, tuning).items()
            if trials[number].state == TrialState.RUNNING and (tuning.study, number) not in out
        }

    def _draw(self, tuning: Tuning) -> None:
        study = self.studies[tuning.study]
        with self.journal.locked():
            if len(trials_of(study, tuning)) < tuning.budget:
                draw(study, tuning.space)

    def _job(self, tuning: Tuning, number: int, values: Values) -> Job:
        cells, name = tuning.cells(values), f"{tuning.column.name} · {tuning.named(values).name}"
        self.names |= {cell.spec_id: f"{name} · seed {cell.seed}" for cell in cells}
        score, keeps_weights = tuning.column.averaged, tuning.benchmark.keeps_weights
        return Job(tuning.study, number, cells, score, tuning.rungs, self.settings, keeps_weights)

    def end(self, job: Job, future: Future[str]) -> list[Event]:
        """Note that a trial was returned, and say what is to be told of it: it may have failed, or be another's."""
        error, place = future.exception(), (job.study, job.number)
        if isinstance(error, BrokenProcessPool):
            raise UserError(
                "a worker process was killed, possibly out of memory; finished rounds are kept. Start the same "
                "command again, with fewer WORKERS"
            )
        if error is not None:
            traceback.print_exception(error, file=sys.stderr)
            return [CellFailed(cell, f"{type(error).__name__}: {error}") for cell in job.cells]
        if not (holder := future.result()):
            return []
        self.handed_out.discard(place)
        self.resting[place] = time.monotonic() + POLL_SECONDS
        is_new = place not in self.announced
        self.announced.add(place)
        return [CellWaits(job.cells[0], holder)] * is_new
