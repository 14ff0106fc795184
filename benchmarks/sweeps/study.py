"""Optuna's studies of a results folder, in one journal that processes share."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.pruners import SuccessiveHalvingPruner
from optuna.samplers import TPESampler
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from benchmarks.errors import UserError
from benchmarks.run_config import JSON
from benchmarks.sweeps.plan import Tuning
from benchmarks.sweeps.tuning import KEPT, Range, Space, Values

ORDER_SEED = 0  # of the order in which a grid's points are tried

optuna.logging.set_verbosity(optuna.logging.WARNING)
warnings.filterwarnings("ignore", "Choices for a categorical distribution")  # lists and groups of options are some too


def journal(results_dir: Path) -> JournalStorage:
    """The journal of a results folder; UserError if it cannot be used."""
    path = results_dir / "sweeps" / "journal.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return JournalStorage(JournalFileBackend(str(path)))
    except OSError as error:
        raise UserError(f"{path}: cannot be used as Optuna's journal ({error.strerror}). Move it away.") from None
    except Exception as error:  # noqa: BLE001 - whatever Optuna makes of a line that it did not write
        raise UserError(
            f"{path}: expected Optuna's journal, found a damaged one ({type(error).__name__}: {error}). "
            f"Move it away: finished cells are kept as records, and a sweep finds them there."
        ) from None


def load_study(storage: JournalStorage, name: str, rungs: Sequence[int]) -> optuna.Study:
    """The study of that name, whose trials may be pruned after these rounds; KeyError if there is none."""
    pruner = SuccessiveHalvingPruner(min_resource=min(rungs, default=1), reduction_factor=KEPT)
    return optuna.load_study(study_name=name, storage=storage, pruner=pruner)


def study_of(tuning: Tuning, storage: JournalStorage) -> optuna.Study:
    """The study of a method on a task, which is created if there is none yet."""
    with suppress(KeyError):
        return load_study(storage, tuning.study, tuning.rungs)
    directions = ["maximize" if tuning.metric.higher_is_better else "minimize", *["minimize"] * tuning.pareto]
    study = optuna.create_study(storage=storage, study_name=tuning.study, directions=directions, load_if_exists=True)
    with warnings.catch_warnings(action="ignore"):  # it is experimental
        study.set_metric_names([tuning.column.averaged.partition("/")[2], *["uplink bytes"] * tuning.pareto])
    return load_study(storage, tuning.study, tuning.rungs)


def trials_of(study: optuna.Study, tuning: Tuning) -> dict[int, Values]:
    """A sweep's trials in the study, by number: in the order of the grid's points, or as they were drawn."""
    trials = study.get_trials(deepcopy=False)
    if tuning.is_grid:
        points = in_order(tuning.space)[: tuning.budget]
        return {trial.number: point for point in points for trial in trials if trial.params == point}
    drawn = [trial for trial in trials if _is_in(trial, tuning.space)][: tuning.budget]
    return {trial.number: values_of(trial, tuning.space) for trial in drawn}


def add_grid(study: optuna.Study, tuning: Tuning) -> None:
    """Add the missing points of a sweep's grid to the study, open for any process that computes them."""
    tried = [trial.params for trial in study.get_trials(deepcopy=False)]
    distributions = {name: _distribution(values) for name, values in tuning.space.items()}
    for point in in_order(tuning.space)[: tuning.budget]:
        if point not in tried:
            study.add_trial(create_trial(state=TrialState.RUNNING, params=dict(point), distributions=distributions))


def draw(study: optuna.Study, space: Space) -> None:
    """Add a trial that TPE draws from the trials so far; its seed is their number."""
    study.sampler = TPESampler(seed=len(study.get_trials(deepcopy=False)), constant_liar=True)
    study.ask({name: _distribution(values) for name, values in space.items()})


def in_order(space: Space) -> list[Values]:
    """A grid's points in a seeded order: that of Optuna's own grid sampler, which cannot extend a study."""
    listed: Mapping[str, Any] = dict(sorted(space.items()))
    points = list(itertools.product(*listed.values()))
    np.random.RandomState(ORDER_SEED).shuffle(points)  # type: ignore[arg-type]
    return [{name: dict(zip(listed, point, strict=True))[name] for name in space} for point in points]


def values_of(trial: FrozenTrial, space: Space) -> Values:
    """A trial's values as --set has them; a drawn number keeps three digits."""
    values = {name: trial.params[name] for name in space}
    for name, within in space.items():
        if isinstance(within, Range) and isinstance(values[name], float):
            values[name] = min(max(float(f"{values[name]:.3g}"), float(within.low)), float(within.high))
    return values


def _distribution(values: Sequence[JSON] | Range) -> BaseDistribution:
    if not isinstance(values, Range):
        with warnings.catch_warnings(action="ignore"):  # as above
            return CategoricalDistribution([value for place, value in enumerate(values) if value not in values[:place]])
    if values.whole:
        return IntDistribution(int(values.low), int(values.high), log=values.log)
    return FloatDistribution(float(values.low), float(values.high), log=values.log)


def _is_in(trial: FrozenTrial, space: Space) -> bool:
    return {*trial.params} == {*space} and all(trial.params[name] in values for name, values in space.items())
