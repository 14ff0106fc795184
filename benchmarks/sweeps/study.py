"""Optuna's studies of a results folder, in one journal that processes share."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.pruners import SuccessiveHalvingPruner
from optuna.samplers import TPESampler
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from benchmarks.errors import UserError
from benchmarks.run_config import JSON
from benchmarks.sweeps.plan import Tuning
from benchmarks.sweeps.tuning import KEPT, Range, Space, Values
from fedsim.locks import held

ORDER_SEED = 0  # of the order in which a grid's points are tried
optuna.logging.set_verbosity(optuna.logging.WARNING)


def journal(results_dir: Path) -> JournalStorage:
    """The journal of a results folder; UserError if it cannot be used."""
    path = results_dir / "sweeps" / "journal.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return JournalStorage(JournalFileBackend(str(path)))
    except Exception as error:  # noqa: BLE001 - whatever Optuna makes of a line that it did not write
        raise UserError(
            f"{path}: expected Optuna's journal, found a damaged one ({type(error).__name__}: {error}). "
            f"Move it away: finished cells are kept as records, and a sweep finds them there."
        ) from None


def load_study(storage: JournalStorage, name: str, rungs: Sequence[int]) -> optuna.Study:
    """The study of that name, whose trials may be pruned after these rounds; KeyError if there is none."""
    pruner = SuccessiveHalvingPruner(min_resource=min(rungs, default=1), reduction_factor=KEPT)
    return optuna.load_study(study_name=name, storage=storage, pruner=pruner)


class TunedStudy:
    """The study of a tuning, which is created if necessary, with the tuning's trials. They are open until they end."""

    def __init__(self, tuning: Tuning, results_dir: Path) -> None:
        self.tuning, self._lock = tuning, results_dir / "locks" / "sweeps.lock"
        storage = journal(results_dir)
        try:
            self.study = load_study(storage, tuning.study, tuning.rungs)
        except KeyError:
            score = StudyDirection.MAXIMIZE if tuning.metric.higher_is_better else StudyDirection.MINIMIZE
            directions = [score, *[StudyDirection.MINIMIZE] * tuning.pareto]
            study = optuna.create_study(
                storage=storage, study_name=tuning.study, directions=directions, load_if_exists=True
            )
            with warnings.catch_warnings(action="ignore"):  # it is experimental
                study.set_metric_names([tuning.column.averaged.partition("/")[2], *["uplink bytes"] * tuning.pareto])
            self.study = load_study(storage, tuning.study, tuning.rungs)
        if tuning.is_grid:
            with held(self._lock):
                self._add_grid()

    def frozen(self) -> list[FrozenTrial]:
        """All trials of the study, also those of other sweeps."""
        return self.study.get_trials(deepcopy=False)

    def trials(self) -> dict[int, Values]:
        """The tuning's trials by number: in the order of the grid's points, or as they were drawn."""
        trials, space = self.frozen(), self.tuning.space
        if self.tuning.is_grid:
            points = in_order(space)[: self.tuning.budget]
            return {trial.number: point for point in points for trial in trials if trial.params == point}
        drawn = [trial for trial in trials if _is_in(trial, space)][: self.tuning.budget]
        return {trial.number: values_of(trial, space) for trial in drawn}

    def open(self) -> dict[int, Values]:
        """The trials that nobody has finished."""
        states = [trial.state for trial in self.frozen()]
        return {number: values for number, values in self.trials().items() if states[number] == TrialState.RUNNING}

    def left(self) -> list[Values]:
        """The values of the open trials, and empty ones for each trial that is still to be drawn."""
        return [*self.open().values(), *[{}] * (self.tuning.budget - len(self.trials()))]

    def draw(self) -> bool:
        """Have TPE draw a trial from the trials so far, seeded by their number; False if the budget is spent."""
        with held(self._lock):
            is_left = not self.tuning.is_grid and len(self.trials()) < self.tuning.budget
            if is_left:
                self.study.sampler = TPESampler(seed=len(self.frozen()), constant_liar=True)
                self.study.ask(_distributions(self.tuning.space))
        return is_left

    def _add_grid(self) -> None:
        tried, distributions = [trial.params for trial in self.frozen()], _distributions(self.tuning.space)
        for point in in_order(self.tuning.space)[: self.tuning.budget]:
            if point not in tried:
                trial = create_trial(state=TrialState.RUNNING, params=dict(point), distributions=distributions)
                self.study.add_trial(trial)


def in_order(space: Space) -> list[Values]:
    """A grid's points in a seeded order: that of Optuna's own grid sampler, which cannot extend a study."""
    listed: Mapping[str, Any] = dict(sorted(space.items()))
    points = [dict(zip(listed, values, strict=True)) for values in itertools.product(*listed.values())]
    np.random.RandomState(ORDER_SEED).shuffle(points)  # type: ignore[arg-type]
    return [{name: point[name] for name in space} for point in points]


def values_of(trial: FrozenTrial, space: Space) -> Values:
    """A trial's values as --set has them; a drawn number keeps three digits."""
    values = {name: trial.params[name] for name in space}
    for name, within in space.items():
        if isinstance(within, Range) and isinstance(values[name], float):
            values[name] = min(max(float(f"{values[name]:.3g}"), float(within.low)), float(within.high))
    return values


def _distributions(space: Space) -> dict[str, BaseDistribution]:
    def distribution(values: Sequence[JSON] | Range) -> BaseDistribution:
        if not isinstance(values, Range):
            with warnings.catch_warnings(action="ignore"):  # lists and groups of options are choices too
                return CategoricalDistribution(list(values))
        if values.whole:
            return IntDistribution(int(values.low), int(values.high), log=values.log)
        return FloatDistribution(float(values.low), float(values.high), log=values.log)

    return {name: distribution(values) for name, values in space.items()}


def _is_in(trial: FrozenTrial, space: Space) -> bool:
    return {*trial.params} == {*space} and all(trial.params[name] in values for name, values in space.items())
