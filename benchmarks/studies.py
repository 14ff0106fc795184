"""Optuna's studies of a results directory: they hand points out, and keep what came of them. Only here is it used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.errors import UserError
from benchmarks.trials import Outcome, Tried
from benchmarks.tuning import Grid, Values

if TYPE_CHECKING:
    import optuna

ORDER_SEED = 0  # of the order in which a grid's points are handed out


class Studies:
    """Optuna's studies in one journal, which processes share: whoever asks again gets the same trials.

    A trial that is not told, since its process was killed or its cells failed, stays open for the next start. Two
    processes may work on one trial: a cell's lock lets one of them compute it and the other find its record.
    """

    def __init__(self, results_dir: Path) -> None:
        self.results_dir = results_dir
        self.path = results_dir / "sweeps" / "journal.log"

    def ask(self, study: str, grid: Grid, count: int, higher_is_better: bool = True) -> dict[int, Values]:
        """Values of the study's first `count` trials by number, each another point of the grid, in a seeded order."""
        from optuna.trial import Trial as OptunaTrial

        with self._opened(study, grid, higher_is_better) as opened:
            known = opened.get_trials(deepcopy=False)[:count]
            trials = [OptunaTrial(opened, trial._trial_id) for trial in known]
            trials += [opened.ask() for _ in range(count - len(trials))]
            return {
                trial.number: {field: trial.suggest_categorical(field, list(grid[field])) for field in grid}
                for trial in trials
            }

    def tell(self, tried: Tried) -> None:
        """Keep the finished trials' mean scores; a trial whose score is undefined has failed."""
        for tuning, results in tried:
            with self._opened(tuning.study, tuning.grid, tuning.metric.higher_is_better) as opened:
                known = opened.get_trials(deepcopy=False)
                for one in results:
                    if one.finished and not known[one.trial.number].state.is_finished():
                        self._tell(opened, one)

    @staticmethod
    def _tell(opened: optuna.Study, one: Outcome) -> None:
        from optuna.trial import Trial as OptunaTrial
        from optuna.trial import TrialState

        if one.mean is None:
            opened.tell(one.trial.number, state=TrialState.FAIL)
        elif one.rung is None:
            opened.tell(one.trial.number, one.mean)
        else:
            trial = opened.get_trials(deepcopy=False)[one.trial.number]
            OptunaTrial(opened, trial._trial_id).report(one.mean, one.rung)
            opened.tell(one.trial.number, state=TrialState.PRUNED)

    @contextmanager
    def _opened(self, name: str, grid: Grid, higher_is_better: bool = True) -> Iterator[optuna.Study]:
        import optuna
        from optuna.storages.journal import JournalFileBackend, JournalStorage

        class Points(optuna.samplers.GridSampler):
            """Trial n is point n of the shuffled grid."""

            def after_trial(self, *_: Any) -> None:
                """Do not stop the loop at the grid's end, as there is none: trials are asked for."""

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.results_dir):
            try:
                storage = JournalStorage(JournalFileBackend(str(self.path)))
            except (ValueError, KeyError, TypeError) as error:
                raise UserError(
                    f"{self.path}: expected Optuna's journal, found a damaged one ({type(error).__name__}: {error}). "
                    f"Move it away: finished cells are kept as records, and a sweep finds them there."
                ) from None
            sampler = Points({field: list(values) for field, values in grid.items()}, seed=ORDER_SEED)
            yield optuna.create_study(
                storage=storage,
                sampler=sampler,
                study_name=name,
                direction="maximize" if higher_is_better else "minimize",
                load_if_exists=True,
            )


@contextmanager
def locked(results_dir: Path) -> Iterator[None]:
    """Hold what the sweeps of a results directory share; a kill lets go."""
    from filelock import FileLock

    lock = results_dir / "locks" / "sweeps.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):
        yield
