"""Optuna's studies of a results directory, in one journal that processes share."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.pruners import SuccessiveHalvingPruner
from optuna.samplers import TPESampler
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from benchmarks.errors import UserError
from benchmarks.measures import metric
from benchmarks.plain import JSON
from benchmarks.tuning import KEPT, Range, Space, Values, Wanted
from fedsim.leases import held

ORDER_SEED = 0  # of the order in which a grid's points are handed out
UPLINK = "uplink bytes"

optuna.logging.set_verbosity(optuna.logging.WARNING)


class Journal:
    """The journal of a results directory. UserError where it cannot be used."""

    def __init__(self, results_dir: Path) -> None:
        self.results_dir = results_dir
        self.path = results_dir / "sweeps" / "journal.log"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._damage_named():
            self._storage = JournalStorage(JournalFileBackend(str(self.path)))

    def study(self, name: str, score: str, pareto: bool = False, rungs: Sequence[int] = ()) -> optuna.Study:
        """The study of a name, which is made where there is none yet.

        Args:
            name: as `Tuning.study` has it.
            score: the metric that it optimises, such as "test/f1".
            pareto: whether uplink bytes are a second objective.
            rungs: rounds after which a trial may be pruned.
        """
        directions = ["maximize" if metric(score).higher_is_better else "minimize", *["minimize"] * pareto]
        pruner = SuccessiveHalvingPruner(min_resource=min(rungs, default=1), reduction_factor=KEPT)
        with self._damage_named(), warnings.catch_warnings(action="ignore"):  # names of metrics are experimental
            with suppress(KeyError):
                return optuna.load_study(study_name=name, storage=self._storage, pruner=pruner)
            study = optuna.create_study(
                storage=self._storage, study_name=name, directions=directions, pruner=pruner, load_if_exists=True
            )
            study.set_metric_names([score.partition("/")[2], *[UPLINK] * pareto])
            return study

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold what the sweeps of a results directory share."""
        with held(self.results_dir / "locks" / "sweeps.lock"):
            yield

    @contextmanager
    def _damage_named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self.path}: Optuna's journal cannot be used ({error.strerror}). Mend that, or move it away."
            ) from None
        except Exception as error:  # noqa: BLE001 - whatever Optuna makes of a line that it did not write
            raise UserError(
                f"{self.path}: expected Optuna's journal, found a damaged one ({type(error).__name__}: {error}). "
                f"Move it away: finished cells are kept as records, and a sweep finds them there."
            ) from None


def trials_of(study: optuna.Study, wanted: Wanted) -> dict[int, Values]:
    """A sweep's trials in the study: number -> values, in the order in which they are run."""
    trials = study.get_trials(deepcopy=False)
    if wanted.is_grid:
        numbers = {_key(trial.params): trial.number for trial in reversed(trials)}
        points = in_order(wanted.space)[: wanted.budget]
        return {numbers[key]: point for point in points if (key := _key(_stored(point))) in numbers}
    drawn = [trial for trial in trials if _is_in(trial, wanted.space)][: wanted.budget]
    return {trial.number: values_of(trial, wanted.space) for trial in drawn}


def add_grid(study: optuna.Study, wanted: Wanted) -> None:
    """Add the points of a sweep's grid that the study lacks, open for whoever computes them first."""
    known = {_key(trial.params) for trial in study.get_trials(deepcopy=False)}
    for point in in_order(wanted.space)[: wanted.budget]:
        params = _stored(point)
        if _key(params) not in known:
            distributions = {name: _distribution(wanted.space[name]) for name in params}
            study.add_trial(create_trial(state=TrialState.RUNNING, params=params, distributions=distributions))


def draw(study: optuna.Study, space: Space) -> None:
    """Add a trial that TPE draws from the trials so far; seeded by how many there are."""
    study.sampler = TPESampler(seed=len(study.get_trials(deepcopy=False)), constant_liar=True)
    study.ask(
        {
            name: _distribution(values) if isinstance(values, Range) else _choices(values)
            for name, values in space.items()
        }
    )


def in_order(space: Space) -> list[Values]:
    """A grid's points in a seeded order: that of Optuna's own grid sampler."""
    names = sorted(space)
    points = list(itertools.product(*(cast("Sequence[JSON]", space[name]) for name in names)))
    np.random.RandomState(ORDER_SEED).shuffle(points)  # type: ignore[arg-type]
    return [{name: point[names.index(name)] for name in space} for point in points]


def values_of(trial: FrozenTrial, space: Space) -> Values:
    """A trial's values as --set has them; three digits of a number that was drawn are enough."""

    def value(name: str) -> JSON:
        stored, values = trial.params[name], space[name]
        if isinstance(values, Range) and isinstance(stored, float):
            return min(max(float(f"{stored:.3g}"), float(values.low)), float(values.high))
        if isinstance(stored, str) and stored[:1] in ("[", "{"):
            return json.loads(stored)
        return stored

    return {name: value(name) for name in space}


def importances(points: Sequence[tuple[Values, float]]) -> dict[str, float]:
    """The share of the scores' variance that each field explains, by fANOVA (Hutter et al. 2014); they sum to 1.

    Empty where there is nothing to explain: fewer than two fields or four trials, or the same score in all.
    """
    fields = list(points[0][0]) if points else []
    if len(fields) < 2 or len(points) < 4 or len({score for _, score in points}) == 1:
        return {}
    stored = [(_stored(values), score) for values, score in points]
    tried = {name: sorted({values[name] for values, _ in stored}, key=repr) for name in fields}
    varied = {name: _distribution(values) for name, values in tried.items() if len(values) > 1}
    study = optuna.create_study(direction="maximize")
    for values, score in stored:
        study.add_trial(create_trial(value=score, params={n: values[n] for n in varied}, distributions=varied))
    shares = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=ORDER_SEED)) if varied else {}
    return {name: float(shares.get(name, 0.0)) for name in fields}


def _is_in(trial: FrozenTrial, space: Space) -> bool:
    return {*trial.params} == {*space} and all(
        trial.params[name] in (values if isinstance(values, Range) else [_stored_value(value) for value in values])
        for name, values in space.items()
    )


def _distribution(values: Sequence[JSON] | Range) -> BaseDistribution:
    """How Optuna describes a field: a range of whole or other numbers, or a choice.

    Numbers of a grid are a range too, as a study's choices cannot be extended.
    """
    if isinstance(values, Range):
        if values.whole:
            return IntDistribution(int(values.low), int(values.high), log=values.log)
        return FloatDistribution(float(values.low), float(values.high), log=values.log)
    kinds = {type(value) for value in values}
    if kinds == {int}:
        return IntDistribution(min(values), max(values))
    if kinds <= {int, float}:
        return FloatDistribution(min(values), max(values))
    return _choices(values)


def _choices(values: Sequence[JSON]) -> CategoricalDistribution:
    return CategoricalDistribution([_stored_value(value) for value in values])


def _stored(values: Values) -> dict[str, JSON]:
    """Values as the journal has them."""
    return {name: _stored_value(value) for name, value in values.items()}


def _stored_value(value: JSON) -> JSON:
    """Lists and groups of options are JSON texts there."""
    return value if value is None or isinstance(value, bool | int | float | str) else json.dumps(value, sort_keys=True)


def _key(params: Values) -> str:
    """What two points have in common that are the same one; 1 and 1.0 are."""
    return json.dumps({name: float(v) if type(v) is int else v for name, v in params.items()}, sort_keys=True)
