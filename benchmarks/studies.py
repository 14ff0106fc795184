"""Optuna's studies of a results directory: they hand points out, and keep what came of them. Only here is it used."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from benchmarks.errors import UserError
from benchmarks.plain import JSON, digest
from benchmarks.trials import Outcome, Tried, Tuning
from benchmarks.tuning import Range, Space, Values
from fedsim.files import MissingFileError, open_file
from fedsim.leases import held

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

Direction = Literal["maximize", "minimize"]
ORDER_SEED = 0  # of the order in which a grid's points are handed out
SAMPLER = "sampler"  # a trial's attribute: who drew it, "grid" or "tpe"


class Studies:
    """Optuna's studies in one journal, which processes share: whoever asks again gets the same trials.

    A study is extended by whatever is asked of it, and none of its trials is replaced. A trial that is not told, since
    its process was killed or its cells failed, stays open for the next start. Two processes may work on one trial: a
    cell's lease lets one of them compute it and the other find its record.
    """

    def __init__(self, results_dir: Path) -> None:
        self.results_dir = results_dir
        self.path = results_dir / "sweeps" / "journal.log"

    def ask(
        self, study: str, space: Space, count: int, higher_is_better: bool = True, pareto: bool = False
    ) -> dict[int, Values]:
        """Values of `count` trials by number: the first points of a grid in a seeded order, or as many drawn by TPE.

        Those that the study has already are handed out as they are. A drawn point depends on the trials before it and
        on its number alone.
        """
        with self._opened(study, directions(higher_is_better, pareto)) as opened:
            if any(isinstance(values, Range) for values in space.values()):
                return self._drawn(opened, space, count)
            known = {
                _key(trial.params): trial.number for trial in reversed(opened.trials) if set(trial.params) == {*space}
            }
            found: dict[int, Values] = {}
            for point in _in_order(space)[:count]:
                kept = {name: _kept(value) for name, value in point.items()}
                number = known.get(_key(kept))
                found[self._added(opened, space, kept, "grid") if number is None else number] = point
            return found

    def earlier(self, study: str, space: Space, higher_is_better: bool = True, pareto: bool = False) -> dict[int, Any]:
        """Values of the trials that came to an end, and after which rung or 0: number -> (values, rounds)."""
        from optuna.trial import TrialState

        ends = {TrialState.COMPLETE: lambda _: 0, TrialState.PRUNED: lambda trial: trial.last_step}
        with self._opened(study, directions(higher_is_better, pareto)) as opened:
            return {
                trial.number: ({name: _read(trial.params[name]) for name in space}, ends[trial.state](trial))
                for trial in opened.trials
                if trial.state in ends and set(trial.params) == {*space}
            }

    def tell(self, tried: Tried) -> None:
        """Keep the finished trials' mean scores; a trial whose score is undefined has failed."""
        for tuning, results in tried:
            with self._opened(tuning.study, directions(tuning.metric.higher_is_better, tuning.pareto)) as opened:
                known = opened.get_trials(deepcopy=False)
                for one in results:
                    if one.finished and not known[one.trial.number].state.is_finished():
                        self._tell(opened, tuning, one)

    @staticmethod
    def _tell(opened: optuna.Study, tuning: Tuning, one: Outcome) -> None:
        from optuna.trial import Trial as OptunaTrial
        from optuna.trial import TrialState

        if one.mean is None:
            opened.tell(one.trial.number, state=TrialState.FAIL)
        elif one.rung is None:
            opened.tell(one.trial.number, [one.mean, one.uplink] if tuning.pareto else one.mean)  # type: ignore[list-item]
        else:
            trial = opened.get_trials(deepcopy=False)[one.trial.number]
            OptunaTrial(opened, trial._trial_id).report(one.mean, one.rung)
            opened.tell(one.trial.number, state=TrialState.PRUNED)

    @staticmethod
    def _added(opened: optuna.Study, space: Space, kept: Values, sampler: str) -> int:
        """The number of a new trial, which is in the journal with all its values or not at all."""
        from optuna.trial import TrialState, create_trial

        number = len(opened.get_trials(deepcopy=False))
        opened.add_trial(
            create_trial(
                state=TrialState.RUNNING,
                params=dict(kept),
                distributions={name: _distribution(space[name]) for name in kept},
                user_attrs={SAMPLER: sampler},
            )
        )
        return number

    def _drawn(self, opened: optuna.Study, space: Space, count: int) -> dict[int, Values]:
        own = [trial for trial in opened.trials if trial.user_attrs.get(SAMPLER) == "tpe" and _is_in(trial, space)]
        found: dict[int, Values] = {trial.number: _values(trial.params, space) for trial in own[:count]}
        while len(found) < count:
            kept = _proposed(opened, space)
            found[self._added(opened, space, kept, "tpe")] = _values(kept, space)
        return found

    @contextmanager
    def _opened(self, name: str, toward: Sequence[Direction]) -> Iterator[optuna.Study]:
        import optuna
        from optuna.storages.journal import JournalFileBackend, JournalStorage

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.results_dir):
            try:
                with suppress(MissingFileError):
                    open_file(self.path, "Optuna's journal").close()  # which Optuna would wait for, if it is a pipe
                storage = JournalStorage(JournalFileBackend(str(self.path)))
                study = optuna.create_study(
                    storage=storage, study_name=name, directions=list(toward), load_if_exists=True
                )
            except OSError as error:
                raise UserError(
                    f"{self.path}: Optuna's journal cannot be used ({error.strerror}). Mend that, or move it away."
                ) from None
            except Exception as error:  # noqa: BLE001 - whatever Optuna makes of a line that it did not write
                raise UserError(
                    f"{self.path}: expected Optuna's journal, found a damaged one ({type(error).__name__}: {error}). "
                    f"Move it away: finished cells are kept as records, and a sweep finds them there."
                ) from None
            yield study


def directions(higher_is_better: bool, pareto: bool) -> tuple[Direction, ...]:
    """Optuna's directions of the score, and of uplink bytes where they count."""
    return ("maximize" if higher_is_better else "minimize", *(("minimize",) if pareto else ()))


def importances(points: Sequence[tuple[Values, float]]) -> dict[str, float]:
    """The share of the scores' variance that each field explains, by fANOVA (Hutter et al. 2014); they sum to 1.

    Empty where there is nothing to explain: fewer than two fields or four trials, or the same score in all.
    """
    fields = list(points[0][0]) if points else []
    if len(fields) < 2 or len(points) < 4 or len({score for _, score in points}) == 1:
        return {}
    import optuna
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances
    from optuna.trial import create_trial

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    tried = {name: sorted({_kept(values[name]) for values, _ in points}, key=repr) for name in fields}
    seen = {name: _distribution(values) for name, values in tried.items() if len(values) > 1}
    study = optuna.create_study(direction="maximize")
    for values, score in points:
        params = {name: _kept(values[name]) for name in seen}
        study.add_trial(create_trial(value=score, params=params, distributions=seen))
    found = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=ORDER_SEED)) if seen else {}
    return {name: float(found.get(name, 0.0)) for name in fields}


def _proposed(opened: optuna.Study, space: Space) -> dict[str, JSON]:
    """What TPE draws next, out of what came of the trials in the space; seeded by how many trials there are."""
    import optuna
    from optuna.distributions import CategoricalDistribution
    from optuna.trial import create_trial

    trials = opened.trials
    distributions = {
        name: _distribution(values) if isinstance(values, Range) else CategoricalDistribution(list(map(_kept, values)))
        for name, values in space.items()
    }
    sampler = optuna.samplers.TPESampler(seed=int(digest(["tpe", len(trials)], 8), 16))
    copied = optuna.create_study(directions=opened.directions, sampler=sampler)
    for trial in trials:
        if _is_in(trial, space):
            copied.add_trial(
                create_trial(
                    state=trial.state,
                    values=trial.values,
                    params={name: trial.params[name] for name in space},
                    distributions=distributions,
                    intermediate_values=trial.intermediate_values,
                )
            )
    drawn = copied.ask(distributions).params
    return {name: _rounded(value, space[name]) for name, value in drawn.items()}


def _rounded(value: JSON, values: Sequence[JSON] | Range) -> JSON:
    """Three digits are enough of a number, and can be read; the ends of the range stay what they are."""
    if not isinstance(values, Range) or values.whole:
        return value
    return min(max(float(f"{value:.3g}"), float(values.low)), float(values.high))


def _is_in(trial: FrozenTrial, space: Space) -> bool:
    def has(name: str, values: Sequence[JSON] | Range) -> bool:
        allowed = values if isinstance(values, Range) else [_kept(value) for value in values]
        return trial.params[name] in allowed

    return set(trial.params) == {*space} and all(has(name, values) for name, values in space.items())


def _in_order(space: Space) -> list[Values]:
    """A grid's points in a seeded order: that of Optuna's own grid sampler."""
    import numpy as np

    names = sorted(space)
    points = list(itertools.product(*(_listed(space[name]) for name in names)))
    np.random.RandomState(ORDER_SEED).shuffle(points)
    return [{name: dict(zip(names, point, strict=True))[name] for name in space} for point in points]


def _listed(values: Sequence[JSON] | Range) -> Sequence[JSON]:
    assert not isinstance(values, Range)
    return values


def _distribution(values: Sequence[JSON] | Range) -> BaseDistribution:
    """How Optuna describes a field: a range of whole or other numbers, or a choice."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(values, Range):
        if values.whole:
            return IntDistribution(int(values.low), int(values.high), log=values.log)
        return FloatDistribution(float(values.low), float(values.high), log=values.log)
    kinds = {type(value) for value in values}
    if kinds == {int}:
        return IntDistribution(min(values), max(values))
    if kinds <= {int, float}:
        return FloatDistribution(min(values), max(values))
    return CategoricalDistribution([_kept(value) for value in values])


def _kept(value: JSON) -> JSON:
    """A value as the journal has it: lists and groups of options as JSON."""
    return value if value is None or isinstance(value, bool | int | float | str) else json.dumps(value, sort_keys=True)


def _read(kept: JSON) -> JSON:
    if isinstance(kept, str) and kept[:1] in ("[", "{"):
        return json.loads(kept)
    return kept


def _values(kept: Mapping[str, JSON], space: Space) -> Values:
    return {name: _read(kept[name]) for name in space}


def _key(kept: Mapping[str, JSON]) -> str:
    """What two points have in common that are the same one; 1 and 1.0 are."""
    return json.dumps({name: float(v) if type(v) is int else v for name, v in kept.items()}, sort_keys=True)


@contextmanager
def locked(results_dir: Path) -> Iterator[None]:
    """Hold what the sweeps of a results directory share; a kill lets go."""
    with held(results_dir / "locks" / "sweeps.lock"):
        yield
