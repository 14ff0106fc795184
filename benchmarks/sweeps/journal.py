"""Optuna's studies of a results directory, in one journal that processes share."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
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
UPLINK = "uplink bytes"

optuna.logging.set_verbosity(optuna.logging.WARNING)
warnings.filterwarnings("ignore", "Choices for a categorical distribution")  # lists and groups of options are some too


class Journal:
    """The journal of a results directory. UserError where it cannot be used."""

    def __init__(self, results_dir: Path) -> None:
        self.results_dir = results_dir
        self.path = results_dir / "sweeps" / "journal.log"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._storage = JournalStorage(JournalFileBackend(str(self.path)))
        except OSError as error:
            raise UserError(
                f"{self.path}: Optuna's journal cannot be used ({error.strerror}). Mend that, or move it away."
            ) from None
        except Exception as error:  # noqa: BLE001 - whatever Optuna makes of a line that it did not write
            raise UserError(
                f"{self.path}: expected Optuna's journal, found a damaged one ({type(error).__name__}: {error}). "
                f"Move it away: finished cells are kept as records, and a sweep finds them there."
            ) from None

    def study(self, tuning: Tuning) -> optuna.Study:
        """The study of a method on a task, which is made where there is none yet."""
        with suppress(KeyError):
            return self.load(tuning.study, tuning.rungs)
        score = StudyDirection.MAXIMIZE if tuning.metric.higher_is_better else StudyDirection.MINIMIZE
        study = optuna.create_study(
            storage=self._storage,
            study_name=tuning.study,
            directions=[score, *[StudyDirection.MINIMIZE] * tuning.pareto],
            load_if_exists=True,
        )
        with warnings.catch_warnings(action="ignore"):  # it is experimental
            study.set_metric_names([tuning.column.averaged.partition("/")[2], *[UPLINK] * tuning.pareto])
        return self.load(tuning.study, tuning.rungs)

    def load(self, name: str, rungs: Sequence[int]) -> optuna.Study:
        """The study of that name, whose trials may be pruned after these rounds; KeyError where there is none."""
        pruner = SuccessiveHalvingPruner(min_resource=min(rungs, default=1), reduction_factor=KEPT)
        return optuna.load_study(study_name=name, storage=self._storage, pruner=pruner)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold what the sweeps of a results directory share."""
        with held(self.results_dir / "locks" / "sweeps.lock"):
            yield


def trials_of(study: optuna.Study, tuning: Tuning) -> dict[int, Values]:
    """A sweep's trials in the study, by number: in the grid's order, or as they were drawn."""
    trials = study.get_trials(deepcopy=False)
    if not tuning.is_grid:
        drawn = [trial for trial in trials if _is_in(trial, tuning.space)][: tuning.budget]
        return {trial.number: values_of(trial, tuning.space) for trial in drawn}
    numbers = {_key(trial.params): trial.number for trial in reversed(trials)}
    chosen = {_key(point) for point in in_order(tuning.space)[: tuning.budget]}
    points = [point for point in _points(tuning.space) if _key(point) in chosen]
    return {numbers[_key(point)]: point for point in points if _key(point) in numbers}


def add_grid(study: optuna.Study, tuning: Tuning) -> None:
    """Add the points of a sweep's grid that the study lacks, open for whoever computes them first."""
    known = {_key(trial.params) for trial in study.get_trials(deepcopy=False)}
    distributions = {name: _distribution(values) for name, values in tuning.space.items()}
    for point in in_order(tuning.space)[: tuning.budget]:
        if _key(point) not in known:
            study.add_trial(create_trial(state=TrialState.RUNNING, params=dict(point), distributions=distributions))


def draw(study: optuna.Study, space: Space) -> None:
    """Add a trial that TPE draws from the trials so far; seeded by how many there are."""
    study.sampler = TPESampler(seed=len(study.get_trials(deepcopy=False)), constant_liar=True)
    study.ask({name: _distribution(values) for name, values in space.items()})


def in_order(space: Space) -> list[Values]:
    """A grid's points in a seeded order: that of Optuna's own grid sampler."""
    points = _points(dict(sorted(space.items())))
    np.random.RandomState(ORDER_SEED).shuffle(points)  # type: ignore[arg-type]
    return [{name: point[name] for name in space} for point in points]


def _points(space: Space) -> list[Values]:
    listed: Mapping[str, Any] = space
    return [dict(zip(space, values, strict=True)) for values in itertools.product(*listed.values())]


def values_of(trial: FrozenTrial, space: Space) -> Values:
    """A trial's values as --set has them; three digits of a number that was drawn are enough."""
    values = {name: trial.params[name] for name in space}
    for name, within in space.items():
        if isinstance(within, Range) and isinstance(values[name], float):
            values[name] = min(max(float(f"{values[name]:.3g}"), float(within.low)), float(within.high))
    return values


def importances(points: Sequence[tuple[Values, float]]) -> dict[str, float]:
    """The share of the scores' variance that each field explains, by fANOVA (Hutter et al. 2014); they sum to 1.

    Empty where there is nothing to explain: fewer than two fields or four trials, or the same score in all.
    """
    fields = list(points[0][0]) if points else []
    if len(fields) < 2 or len(points) < 4 or len({score for _, score in points}) == 1:
        return {}
    tried = {name: [values[name] for values, _ in points] for name in fields}
    distributions = {name: _numbers(values) or _distribution(values) for name, values in tried.items()}
    study = optuna.create_study(direction="maximize")
    for values, score in points:
        study.add_trial(create_trial(value=score, params=dict(values), distributions=distributions))
    shares = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=ORDER_SEED))
    return {name: float(shares[name]) for name in fields}


def _numbers(values: Sequence[JSON]) -> BaseDistribution | None:
    """The range of numbers; None where they are not all numbers."""
    if {type(value) for value in values} <= {int, float}:
        return FloatDistribution(min(values), max(values))
    return None


def _distribution(values: Sequence[JSON] | Range) -> BaseDistribution:
    """How Optuna describes a field: a range of whole or other numbers, or a choice."""
    if not isinstance(values, Range):
        with warnings.catch_warnings(action="ignore"):  # as above
            return CategoricalDistribution([value for place, value in enumerate(values) if value not in values[:place]])
    if values.whole:
        return IntDistribution(int(values.low), int(values.high), log=values.log)
    return FloatDistribution(float(values.low), float(values.high), log=values.log)


def _is_in(trial: FrozenTrial, space: Space) -> bool:
    return {*trial.params} == {*space} and all(trial.params[name] in values for name, values in space.items())


def _key(params: Values) -> str:
    """What two points have in common that are the same one; 1 and 1.0 are."""
    return json.dumps({name: float(v) if type(v) is int else v for name, v in params.items()}, sort_keys=True)
