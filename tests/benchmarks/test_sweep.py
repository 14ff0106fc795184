"""Sweeps: whole grids, chosen on validation data, never computed twice, and shared by processes."""

from __future__ import annotations

import dataclasses
import json
import shlex
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import optuna
import pytest
from optuna.storages.journal import JournalFileBackend, JournalStorage

from benchmarks.changes import field_value, with_changes, with_option
from benchmarks.cli.arguments import build_parser
from benchmarks.cli.main import main
from benchmarks.cli.select import selection
from benchmarks.cli.sweep import SweepSelection, commands, print_sweep
from benchmarks.customise import with_settings
from benchmarks.errors import UserError
from benchmarks.federation import build_clients, load_inputs
from benchmarks.fedsplitbert import table3
from benchmarks.measures import METRICS
from benchmarks.record import RunRecord, read_records
from benchmarks.registry import columns_of, rows_of, scale_of
from benchmarks.runner import run_cell
from benchmarks.settings import Settings
from benchmarks.spec import Benchmark, Cell, Column, Row
from benchmarks.studies import Studies
from benchmarks.sweep import in_rounds, plan_tuning, trial_cell, write_sweep
from benchmarks.trials import Outcome, Trial, Tuning, best
from benchmarks.tuning import Grid, Wanted, read_sweep

TABLE = table3.BENCHMARK
DEMO, LITE, PAPER = (scale_of(TABLE, name) for name in ("demo", "lite", "paper"))
(MRPC,) = columns_of(TABLE, ["mrpc"])
FEDAVG, FEDPROX, FEDADAM, FEDSPLITBERT = rows_of(TABLE, ["fedavg", "fedprox", "fedadam", "fedsplitbert"])
LAYER = "options.critical_layer"
LAYERS = ("--methods", "fedsplitbert", "--grid", f"{LAYER}=0,4,6,8")
CellsOf = Callable[..., list[Cell]]
SHORT = ("training.rounds=1", "training.max_length=16", "training.batch_size=32")


def sweep(results_dir: Path, *words: str) -> int:
    """`python -m benchmarks sweep` of the demo's MRPC, as short as it can be."""
    changes = [part for change in SHORT for part in ("--set", change)]
    places = ["--results-dir", str(results_dir), "--workers", "1", "--no-tracking"]
    return main(["sweep", TABLE.id, "--tasks", "mrpc", *changes, *places, *words])


def entry(results_dir: Path, method: str) -> dict:
    """What the sweep's file says of a method."""
    path = results_dir / "sweeps" / f"{TABLE.id}-demo.json"
    return {one["method"]: one for one in read_sweep(path)}[method]


def trials(results_dir: Path, study: str) -> list[optuna.trial.FrozenTrial]:
    """What another process finds in the journal."""
    storage = JournalStorage(JournalFileBackend(str(results_dir / "sweeps" / "journal.log")))
    return optuna.load_study(study_name=study, storage=storage).trials


def records(results_dir: Path) -> dict[str, RunRecord]:
    return {record.cell_id: record for record in read_records(results_dir / "records")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results directory after a sweep of FedSplitBERT that a kill had stopped right after its trials were asked."""
    folder = tmp_path_factory.mktemp("results")
    changed = with_settings(TABLE, SHORT)
    asked = Wanted({LAYER: (0, 4, 6, 8)})
    plan_tuning(changed, scale_of(changed, "demo"), FEDSPLITBERT, MRPC, [0], Settings(folder), asked)
    assert sweep(folder, *LAYERS) == 0
    return folder


def test_whole_grid_is_tried_on_validation_data(finished: Path) -> None:
    found, done = entry(finished, "fedsplitbert"), records(finished)
    assert [one["values"]["options.critical_layer"] for one in found["trials"]] == [0, 4, 6, 8]
    assert found["budget"] == 4
    assert {cell for one in found["trials"] for cell in one["cells"]} == set(done)
    assert {record.cell.holdout for record in done.values()} == {"validation"}


def test_best_has_the_highest_recorded_validation_score(finished: Path) -> None:
    found, done = entry(finished, "fedsplitbert"), records(finished)
    scores = {}
    for one in found["trials"]:
        (cell_id,) = one["cells"]
        assert one["mean"] == done[cell_id].rounds[-1].scores["test"]["f1"]
        scores[one["values"]["options.critical_layer"]] = one["mean"]
    assert found["best"]["mean"] == max(scores.values())
    assert scores[found["best"]["values"]["options.critical_layer"]] == max(scores.values())


def test_test_part_is_never_seen() -> None:
    tried = trial_cell(TABLE, FEDPROX, MRPC, DEMO, 0, {"options.proximal": 0.1})
    settings = Settings()
    inputs = load_inputs(tried, settings)
    table, _ = build_clients(dataclasses.replace(tried, holdout="test"), inputs, settings)
    tuning, _ = build_clients(tried, inputs, settings)
    for one, other in zip(table, tuning, strict=True):
        test, train = set(one.evaluation["test"].indices), set(one.train.indices)
        validation, fitted = set(other.evaluation["test"].indices), set(other.train.indices)
        assert validation
        assert not test & (validation | fitted)
        assert validation | fitted == train
        assert not validation & fitted


def test_trials_left_open_by_a_kill_are_taken_up(finished: Path) -> None:
    told = trials(finished, entry(finished, "fedsplitbert")["study"])
    assert [trial.state for trial in told] == [optuna.trial.TrialState.COMPLETE] * 4
    means = {one["values"]["options.critical_layer"]: one["mean"] for one in entry(finished, "fedsplitbert")["trials"]}
    assert {trial.params["options.critical_layer"]: trial.value for trial in told} == means


def test_second_start_computes_and_adds_nothing(finished: Path) -> None:
    def state() -> list[object]:
        files = sorted((finished / "records").iterdir())
        study = entry(finished, "fedsplitbert")["study"]
        return [[(file.name, file.stat().st_mtime_ns) for file in files], trials(finished, study)]

    before = state()
    assert sweep(finished, *LAYERS) == 0
    assert state() == before


def test_fewer_trials_are_distinct_and_extended_by_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def tried() -> list[float]:
        return [one["values"]["options.proximal"] for one in entry(tmp_path, "fedprox")["trials"]]

    assert sweep(tmp_path, "--methods", "fedprox", "--trials", "1") == 0
    (first,) = tried()
    assert entry(tmp_path, "fedprox")["budget"] == len(records(tmp_path)) == 1
    assert sweep(tmp_path, "--methods", "fedprox", "--trials", "2") == 0
    assert first in tried()
    assert len(set(tried())) == len(records(tmp_path)) == 2
    assert set(tried()) <= set(TABLE.tuned["fedprox"]["options.proximal"])
    assert "FedProx proximal=" in capsys.readouterr().err


def test_budget_is_the_grid_or_less() -> None:
    grid = {"options.proximal": (0.1, 1.0), "training.learning_rate": (1e-5, 2e-5, 3e-5)}
    assert [Wanted(grid, trials).budget for trials in (None, 4, 100)] == [6, 4, 6]


def test_printed_commands_run_the_tried_cell_on_test_data(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(finished, *LAYERS) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    (command,) = (line for line in lines if line.startswith("python -m benchmarks"))
    ((_, _, cell),) = selection(build_parser().parse_args(shlex.split(command)[3:])).cells()
    (chosen,) = entry(finished, "fedsplitbert")["best"]["cells"]
    assert dataclasses.replace(cell, holdout="validation").spec_id == records(finished)[chosen].cell.spec_id
    assert cell.holdout == "test"
    settings = " ".join(f"--set {change}" for change in SHORT)
    layer = entry(finished, "fedsplitbert")["best"]["values"]["options.critical_layer"]  # of the paper's 12
    assert (
        f"make {TABLE.id} SCALE=demo TASKS=mrpc METHODS=fedsplitbert RESULTS_DIR={finished} "
        f"ARGS='{settings} --set options.critical_layer={layer}'"
    ) in lines


def patched(monkeypatch: pytest.MonkeyPatch, grid: Grid) -> Benchmark:
    benchmark = dataclasses.replace(TABLE, tuned={"fedsplitbert": grid})
    monkeypatch.setattr(table3, "BENCHMARK", benchmark)
    return benchmark


def test_equal_layers_run_once_and_a_failing_value_stops_no_other(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(finished, tmp_path / "results")
    # Of 12: 2 and 2 of the demo's 4 layers.
    patched(monkeypatch, {"options.critical_layer": (5, 6), "training.padding": ("longest", "sideways")})
    assert sweep(folder, "--methods", "fedsplitbert") == 0
    found = entry(folder, "fedsplitbert")
    assert set(records(folder)) == set(records(finished))
    assert [one["settings"]["options.critical_layer"] for one in found["trials"]] == [2, 2, 2, 2]
    assert found["trials"][0]["cells"] == found["trials"][2]["cells"]
    assert found["trials"][1]["mean"] is found["trials"][3]["mean"] is None
    assert found["best"]["values"] == {"options.critical_layer": 5, "training.padding": "longest"}
    captured = capsys.readouterr()
    assert "1 of 2 cells could not be computed" in captured.err
    states = {tuple(trial.params.values()): trial.state.name for trial in trials(folder, found["study"])}
    assert {values: state for values, state in states.items() if "longest" in values} == {
        (5, "longest"): "COMPLETE",
        (6, "longest"): "COMPLETE",
    }
    assert [state for values, state in states.items() if "sideways" in values] == ["RUNNING"] * 2
    assert "c = 5 of 12 (2 of 4 layers), padding=longest" in captured.out.replace("\n", " ")


def test_nothing_but_failures_is_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    patched(monkeypatch, {"training.padding": ("sideways",)})
    assert sweep(tmp_path) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert "sideways" in error
    assert not (tmp_path / "sweeps" / f"{TABLE.id}-demo.json").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--methods", "fedavg-fp16,fedprox"], "nothing to tune in fedavg-fp16; it tunes fedavg, fedprox, fedadam"),
        (["--methods", "fedprox", "--set", "options.proximal=1"], "this sweep decides options.proximal"),
        (["--methods", "fedadam", "--set", "options.server={}"], "decides options.server.learning_rate"),
        (["--methods", "fedprox", "--set", "holdout=test"], "decides holdout"),
        (["--trials", "0"], "expected a whole number above 0"),
    ],
)
def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: str) -> None:
    assert sweep(tmp_path, *words) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize("name", ["journal.log", f"{TABLE.id}-demo.json"])
def test_damaged_files_are_named_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    path = tmp_path / "sweeps" / name
    path.parent.mkdir()
    path.write_text("no json\n{}\n", encoding="utf-8")
    assert sweep(tmp_path, "--methods", "fedprox") == 2
    assert f"{path}: expected" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "no json\n{}\n"


def test_sweep_file_keeps_other_methods(finished: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(finished, tmp_path / "results")
    path = folder / "sweeps" / f"{TABLE.id}-demo.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    value["tunings"].append({"task": "rte", "method": "fedprox", "best": None})
    path.write_text(json.dumps(value), encoding="utf-8")
    assert sweep(folder, *LAYERS) == 0
    assert [(one["task"], one["method"]) for one in read_sweep(path)] == [("mrpc", "fedsplitbert"), ("rte", "fedprox")]


# ---- cells of trials ---------------------------------------------------------------------------------------------


def test_critical_layers_are_scaled_as_the_definition_does() -> None:
    def layers(scale: str) -> list[int]:
        at = scale_of(TABLE, scale)
        tried = [trial_cell(TABLE, FEDSPLITBERT, MRPC, at, 0, {"options.critical_layer": c}) for c in (0, 4, 6, 8)]
        return [cell.options["critical_layer"] for cell in tried]

    assert layers("paper") == [0, 4, 6, 8]  # of 12
    assert layers("lite") == [0, 2, 3, 4]  # of 6
    assert layers("demo") == [0, 1, 2, 3]  # of 4: 4/3 and 8/3 to the nearest


def test_nested_option_changes_nothing_beside_it() -> None:
    cell = trial_cell(TABLE, FEDADAM, MRPC, PAPER, 3, {"options.server.learning_rate": 0.032})
    assert cell.options == {"server": {"name": "adam", "learning_rate": 0.032}}
    assert FEDADAM.options == {"server": {"name": "adam", "learning_rate": 0.01}}
    original = TABLE.cell(FEDADAM, MRPC, PAPER, 3)
    assert dataclasses.replace(cell, options=original.options, holdout="test") == original


def test_training_fields_are_tuned_too() -> None:
    cell = trial_cell(TABLE, FEDAVG, MRPC, LITE, 0, {"training.learning_rate": 2e-5})
    original = TABLE.cell(FEDAVG, MRPC, LITE, 0)
    assert cell.training == dataclasses.replace(original.training, learning_rate=2e-5)


def test_set_reaches_into_nested_options() -> None:
    changed = with_settings(TABLE, ["options.server.learning_rate=0.5", "options.server.beta1=0.8"])
    cell = changed.cell(FEDADAM, MRPC, DEMO, 0)
    assert cell.options == {"server": {"name": "adam", "learning_rate": 0.5, "beta1": 0.8}}
    assert field_value(cell, "options.server.beta1") == 0.8
    assert with_option({}, "server.name", "adam") == {"server": {"name": "adam"}}
    with pytest.raises(UserError, match=r"expected a group of options at proximal, found 0\.01"):
        with_changes(TABLE.cell(FEDPROX, MRPC, DEMO, 0), [("options.proximal.weight", 1.0)])


# ---- choosing, and the journal -----------------------------------------------------------------------------------


def outcome(number: int, scores: Sequence[float | None], value: float = 0.0, seeds: int = 2) -> Outcome:
    """What came of a made-up trial."""
    cells: tuple[Cell, ...] = tuple(TABLE.cell(FEDPROX, MRPC, DEMO, seed) for seed in range(seeds))
    return Outcome(Trial(number, {"x": value}, FEDPROX, cells), tuple("ab"[: len(scores)]), tuple(scores))


def test_mean_and_deviation_over_seeds() -> None:
    assert (outcome(0, (0.5, 0.7)).mean, outcome(0, (0.5, 0.7)).deviation) == (0.6, pytest.approx(0.02**0.5))
    assert outcome(0, (0.5,), seeds=1).deviation is None
    for undecided in (outcome(0, (0.5, None)), outcome(0, (0.5,))):
        assert (undecided.mean, undecided.deviation) == (None, None)


def test_best_is_the_first_of_the_highest_and_may_be_negative() -> None:
    tried = [outcome(0, (None, 1.0)), outcome(1, (-0.2, -0.2)), outcome(2, (-0.1, -0.1)), outcome(3, (-0.1, -0.1))]
    assert best(tried, METRICS["f1"]) is tried[2]
    assert best(tried[:1], METRICS["f1"]) is None


def test_processes_share_trials(tmp_path: Path) -> None:
    grid = {"x": (1, 2, 3), "y": ("a", "b")}
    with ThreadPoolExecutor(4) as pool:
        asked = list(pool.map(lambda _: Studies(tmp_path).ask("study", grid, 6), range(4)))
    assert asked == [asked[0]] * 4
    assert {tuple(values.values()) for values in asked[0].values()} == {(x, y) for x in (1, 2, 3) for y in "ab"}
    assert len(trials(tmp_path, "study")) == 6


def test_a_kill_while_trials_are_asked_leaves_whole_ones_and_the_rest_is_asked_again(tmp_path: Path) -> None:
    grid = {"x": (1, 2, 3)}
    studies = Studies(tmp_path)
    studies.ask("study", grid, 2)
    assert sorted(values["x"] for values in studies.ask("study", grid, 3).values()) == [1, 2, 3]
    assert len(trials(tmp_path, "study")) == 3


def test_undefined_scores_are_failed_trials_and_missing_ones_stay_open(tmp_path: Path) -> None:
    grid = {"x": (1.0, 2.0, 3.0)}
    studies = Studies(tmp_path)
    asked = studies.ask("study", grid, 3)
    scores = {1.0: (0.5, 0.7), 2.0: (0.5, None), 3.0: (0.5,)}
    tried = [outcome(number, scores[values["x"]], values["x"]) for number, values in asked.items()]
    tuning = Tuning(FEDPROX, MRPC, grid, "study", tuple(one.trial for one in tried))
    studies.tell([(tuning, tried)])
    studies.tell([(tuning, tried)])  # as another process does that had the same trials
    told = {trial.params["x"]: (trial.state.name, trial.value) for trial in trials(tmp_path, "study")}
    assert told == {1.0: ("COMPLETE", 0.6), 2.0: ("FAIL", None), 3.0: ("RUNNING", None)}


# ---- a metric that is better where it is lower -------------------------------------------------------------------

PERPLEXITY = Column("mrpc", "Texts", ("test/perplexity",), "test/perplexity")


def test_a_lower_perplexity_is_the_better_one_and_is_no_percentage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = plan_tuning(TABLE, DEMO, FEDPROX, PERPLEXITY, [0, 1], Settings(tmp_path))
    means = {0.001: 30.5, 0.01: 12.25, 0.1: 12.5, 1.0: 400.0}
    tried = [
        Outcome(trial, ("a", "b"), (means[value] - 0.25, means[value] + 0.25))
        for trial in planned.trials
        for value in trial.values.values()
    ]
    chosen = best(tried, planned.metric)
    assert chosen is not None
    assert chosen.trial.values == {"options.proximal": 0.01}
    Studies(tmp_path).tell([(planned, tried)])
    storage = JournalStorage(JournalFileBackend(str(tmp_path / "sweeps" / "journal.log")))
    study = optuna.load_study(study_name=planned.study, storage=storage)
    assert study.direction == optuna.study.StudyDirection.MINIMIZE
    assert study.best_params == {"options.proximal": 0.01}
    path = tmp_path / "sweeps" / "made-up.json"
    write_sweep(path, TABLE, DEMO, [0, 1], [(planned, tried)], tmp_path)
    before = path.read_bytes()
    write_sweep(path, TABLE, DEMO, [0, 1], [], tmp_path)
    assert path.read_bytes() == before  # what a sweep adds is all that differs
    (written,) = read_sweep(path)
    assert (written["best"]["mean"], written["best"]["values"]) == (12.25, {"options.proximal": 0.01})
    asked = SweepSelection(TABLE, DEMO, [FEDPROX], [PERPLEXITY], [0, 1], [planned])
    print_sweep(asked, [(planned, tried)])
    lines = [line.split("│") for line in capsys.readouterr().out.splitlines() if "│" in line]
    shown = {line[3].strip(): [cell.strip() for cell in (line[1], line[4], line[5], line[7])] for line in lines}
    assert shown["proximal=0.01"] == ["Texts (Perplexity)", "12.25", "0.35", "best"]
    assert shown["proximal=1.0"] == ["Texts (Perplexity)", "400.00", "0.35", ""]
    words = build_parser().parse_args(["sweep", TABLE.id])
    assert "--set options.proximal=0.01" in commands(words, asked, [(planned, tried)])[0]


def test_commands_that_a_sweep_proposes_run_the_seeds_that_it_was_given(tmp_path: Path) -> None:
    planned = plan_tuning(TABLE, DEMO, FEDPROX, MRPC, [0], Settings(tmp_path))
    tried = [(planned, [Outcome(trial, ("a",), (0.5,)) for trial in planned.trials])]
    for text in ("3", "5-10", "5-5", "0-2"):
        words = build_parser().parse_args(["sweep", TABLE.id, "--seeds", text])
        lines = commands(words, SweepSelection(TABLE, DEMO, [FEDPROX], [MRPC], [0], [planned]), tried)
        for given in (lines[0].split("--seeds ")[1], lines[1].split("SEEDS=")[1]):
            assert build_parser().parse_args(["run", TABLE.id, "--seeds", given.split()[0]]).seeds == words.seeds


def test_a_rung_below_one_is_a_share_of_a_rows_own_rounds() -> None:
    assert in_rounds((0.25, 2), 16) == (4, 2)
    assert in_rounds((0.25,), 1) == (1,)


def test_a_trial_stopped_at_a_rung_is_the_beginning_of_the_whole_one(cells_of: CellsOf, settings: Settings) -> None:
    """Also under a schedule, which is that of the whole run."""
    scheduled = ("training.rounds=3", "training.schedule=linear", "training.local_epochs=1", "training.max_length=16")
    (whole,) = cells_of(("fedavg",), *scheduled)
    (stopped,) = Trial(0, {}, Row("fedavg", "FedAvg", {}), (whole,)).cells_at(1)
    assert stopped.spec_id != whole.spec_id
    begun, done = (run_cell(cell, settings, lambda _: None) for cell in (stopped, whole))
    assert [entry.scores for entry in begun.rounds] == [entry.scores for entry in done.rounds[:1]]
    assert begun.rounds[0].train_loss == done.rounds[0].train_loss
    assert stopped.to_json()["training"] == whole.to_json()["training"] | {"stop": 1}
    assert Cell.from_json(stopped.to_json()).spec_id == stopped.spec_id
