"""Sweeps: Optuna's journal prunes, resumes and shares trials; validation data choose the best."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest

from benchmarks.errors import UserError
from benchmarks.experiment import Column
from benchmarks.fedpeft.tables import SCORES
from benchmarks.fedsplitbert import tables
from benchmarks.measures import metric
from benchmarks.registry import columns_of, rows_of, scale_of
from benchmarks.results import RoundRecord
from benchmarks.run_config import RunConfig
from benchmarks.running import runner
from benchmarks.running.events import CellFailed, CellFinished, CellPruned, CellStarted, Event, RoundFinished
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.results import choose, keep, result_of
from benchmarks.sweeps.space import Tuning
from benchmarks.sweeps.study import TunedStudy, in_order, journal, load_study, run_trials
from benchmarks.sweeps.tuning import Grid, read_sweep
from reports.evidence.scores import LATE_ROUNDS

TABLE = tables.TABLE3
DEMO, LITE, PAPER = (scale_of(TABLE, name) for name in ("demo", "lite", "paper"))
(MRPC,) = columns_of(TABLE, ["mrpc"])
FEDAVG, FEDPROX, FEDADAM, SPLIT = rows_of(TABLE, ["fedavg", "fedprox", "fedadam", "fedsplitbert"])
LAYER, RATE = "options.critical_layer", "training.learning_rate"


# ---- trials on made-up runs ----------------------------------------------------------------------------------------


class Runs:
    """Fake runs: each rate's scores by round, and a failure that happens once."""

    def __init__(self, scores: Callable[[float], Sequence[float | None]]) -> None:
        self.scores = scores
        self.instead: dict[float, BaseException] = {}
        self.begun: list[float] = []

    def __call__(self, cell: RunConfig, settings: RunOptions, sink: Any, keeps: bool, needs: bool, wait: bool) -> Any:
        rate, name = cell.training.learning_rate, cell.spec_id
        if error := self.instead.pop(rate, None):
            raise error
        self.begun.append(rate)
        done: list[Any] = []
        sink(CellStarted(cell, name, (), (1,)))
        for score in self.scores(rate):
            done.append(
                RoundRecord(len(done) + 1, (), None, (), {"test": {"f1": score}}, (), up_bytes=10, down_bytes=0)
            )
            sink(RoundFinished(name, done[-1]))
        record = self.record(cell, done)
        sink(CellFinished(record))
        return record

    def record(self, cell: RunConfig, rounds: Sequence[Any]) -> Any:
        return SimpleNamespace(cell=cell, cell_id=cell.spec_id, rounds=tuple(rounds), diverged=False)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    runs = Runs(lambda rate: (rate, rate))
    monkeypatch.setattr(runner, "run_cell", runs)
    return runs


def tuned(space: Grid, trials: int | None = None, rungs: tuple[int, ...] = (), column: Column = MRPC) -> Tuning:
    return Tuning(TABLE, DEMO, FEDAVG, column, (0,), space, trials, rungs, study="study")


def ended(folder: Path, tuning: Tuning) -> list[dict[str, Any]]:
    trials: list[dict[str, Any]] = result_of(TunedStudy(tuning, folder))["trials"]
    return trials


def sweep(folder: Path, tuning: Tuning) -> list[Event]:
    events: list[Event] = []
    run_trials([TunedStudy(tuning, folder)], RunOptions(folder), events.append, {})
    return events


def states(folder: Path) -> dict[float, str]:
    study = load_study(journal(folder), "study", ())
    return {trial.params[RATE]: trial.state.name for trial in study.trials}


def test_optuna_prunes_trials_outside_the_best_quarter_so_far(tmp_path, runs):
    tuning = tuned({RATE: (rates := tuple(n / 10 for n in range(1, 9)))}, rungs=(1,))
    events = sweep(tmp_path, tuning)
    order = [values[RATE] for values in in_order({RATE: rates})]
    assert runs.begun == order
    # one in four goes on, and at first the best so far
    kept = [rate for n, rate in enumerate(order, 1) if rate >= sorted(order[:n])[-max(1, n // 4)]]
    assert states(tmp_path) == {rate: "COMPLETE" if rate in kept else "PRUNED" for rate in order}
    assert 0 < len(kept) < 8
    assert [event.rounds for event in events if isinstance(event, CellPruned)] == [1] * (8 - len(kept))
    for one, rate in zip(ended(tmp_path, tuning), order, strict=True):
        assert (one["values"][RATE], one["mean"]) == (rate, rate)
        assert one.get("given_up_after") == (None if rate in kept else 1)
        assert one["uplink_bytes"] == (20 if rate in kept else 10)
    assert sweep(tmp_path, tuning) == []  # a second start computes and adds nothing


def test_ties_at_a_rung_continue_undefined_scores_do_not_and_a_second_rung_is_asked_too(tmp_path, runs):
    first, second, undefined = [values[RATE] for values in in_order({RATE: (0.1, 0.2, 0.3)})]
    runs.scores = {first: (0.5, 0.5, 0.9), second: (0.5, 0.4, 0.9), undefined: (None, 1.0, 1.0)}.__getitem__
    tuning = tuned({RATE: (0.1, 0.2, 0.3)}, rungs=(1, 2))
    sweep(tmp_path, tuning)
    assert [trial.get("given_up_after") for trial in ended(tmp_path, tuning)] == [None, 2, 1]


def test_a_search_scores_trials_by_their_last_rounds(tmp_path, runs, monkeypatch):
    """One round of an oscillating curve says little: 0.9 at the end counts less than 0.6 three times."""
    assert tuned({RATE: (0.1,)}).last_rounds == 1  # without validation texts the last round counts
    search = SCORES.search(SCORES.scale("lite"))
    assert search.last_rounds == LATE_ROUNDS
    monkeypatch.setattr(Tuning, "last_rounds", 3)
    runs.scores = {0.1: (1.0, 0.0, 0.0, 0.9), 0.2: (0.0, 0.6, 0.6, 0.6)}.__getitem__
    tuning = tuned({RATE: (0.1, 0.2)})
    sweep(tmp_path, tuning)
    means = {one["values"][RATE]: one["mean"] for one in ended(tmp_path, tuning)}
    assert means == {0.1: pytest.approx(0.3), 0.2: pytest.approx(0.6)}
    entry = result_of(TunedStudy(tuning, tmp_path))
    assert (entry["best"]["values"], entry["score"]) == (
        {RATE: 0.2},
        "f1 on validation data in the mean of the last 3 rounds",
    )


def test_a_killed_sweep_resumes_with_the_trial_that_was_stopped(tmp_path, runs):
    rates = (0.1, 0.2, 0.3, 0.4)
    third = in_order({RATE: rates})[2][RATE]
    runs.instead[third] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path, tuned({RATE: rates}))
    assert list(states(tmp_path).values()) == ["COMPLETE", "COMPLETE", "RUNNING"]
    sweep(tmp_path, tuned({RATE: rates}))
    assert runs.begun == [values[RATE] for values in in_order({RATE: rates})]  # each once
    assert set(states(tmp_path).values()) == {"COMPLETE"}


def test_a_failed_trial_stays_open_and_an_undefined_one_has_failed(tmp_path, runs):
    runs.scores = lambda rate: (None,) if rate == 0.2 else (0.5,)
    runs.instead |= {0.1: UserError("no such padding"), 0.4: ValueError("a bug")}
    tuning = tuned({RATE: (0.1, 0.2, 0.3, 0.4)})
    events = sweep(tmp_path, tuning)
    messages = {event.message for event in events if isinstance(event, CellFailed)}
    assert messages == {"no such padding", "ValueError: a bug"}
    assert states(tmp_path) == {0.1: "RUNNING", 0.2: "FAIL", 0.3: "COMPLETE", 0.4: "RUNNING"}
    scores = {one["values"][RATE]: (len(one["scores"]), one["mean"]) for one in ended(tmp_path, tuning)}
    assert scores == {0.1: (0, None), 0.2: (1, None), 0.3: (1, 0.5), 0.4: (0, None)}
    sweep(tmp_path, tuning)
    assert (states(tmp_path)[0.1], states(tmp_path)[0.2]) == ("COMPLETE", "FAIL")
    assert runs.begun.count(0.2) == 1


def test_a_perplexity_is_minimised_and_the_study_names_metric_and_choice(tmp_path, runs):
    column = Column("mrpc", "Texts", ("test/perplexity",), "test/perplexity")
    tuning = tuned({RATE: (0.1, 0.2)}, column=column)
    of_tuning = TunedStudy(tuning, tmp_path)
    study = of_tuning.study
    assert study.metric_names == ["perplexity"]
    assert study.direction == optuna.study.StudyDirection.MINIMIZE
    best = {"number": 9, "values": {RATE: 0.2}, "mean": 2.0}
    result = {"task": "mrpc", "method": "fedavg", "score": "perplexity …", "best": best}
    for adopted in (None, tmp_path / "adopted.json"):
        keep([of_tuning], [result], tmp_path, [tmp_path / "sweep.json", *([adopted] if adopted else [])])
        assert study.user_attrs["best_trial"] == 9
        assert study.user_attrs.get("adopted_trial") == (9 if adopted else None)
    (entry,) = read_sweep(tmp_path / "adopted.json")
    assert (entry["best"]["mean"], entry["best"]["values"]) == (2.0, {RATE: 0.2})


@pytest.mark.parametrize("text", ["no json\n{}\n", '{"op_code": 99}\n'])
def test_a_damaged_journal_is_named_and_kept(tmp_path, text):
    path = tmp_path / "sweeps" / "journal.log"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=f"{path}: expected Optuna's journal, found a damaged one"):
        journal(tmp_path)
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("scores", "sent", "default", "expected", "reason"),
    [
        ([0.5, 0.7, None], [1, 2, 3], 0, 1, ""),
        ([0.7, 0.7, 0.7], [0, 2, 1], 1, 1, "the definition's own setting"),
        ([0.7, 0.7, 0.7], [0, 2, 1], 9, 2, "fewest uplink bytes"),
        ([0.7, 0.7, 0.7], [2, 1, 1], 9, 1, "the first tried of those with the fewest uplink bytes"),
        ([0.5, 0.7, 0.7], [1, 0, 0], 9, 1, "the first tried, as nothing is exchanged"),
        ([None], [1], 9, None, ""),
    ],
)
def test_a_tie_is_won_by_the_definitions_value_or_else_by_the_fewest_bytes(scores, sent, default, expected, reason):
    trials = [
        {"number": n, "settings": {"x": n}, "mean": score, "uplink_bytes": size}
        for n, (score, size) in enumerate(zip(scores, sent, strict=True))
    ]
    best, ties, why = choose(trials, metric("f1"), {"x": default})
    assert (best and best["number"], why) == (expected, reason)
    assert len(ties) == scores.count(0.7)
