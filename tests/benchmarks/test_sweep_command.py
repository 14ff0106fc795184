"""The sweep command on every executor, its table of trials and its figures."""

import csv
import dataclasses
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from benchmarks.campaign.protocol import RESULTS
from benchmarks.cli.arguments import build_parser, selection
from benchmarks.cli.main import main
from benchmarks.cli.report import sweep_sections as sections
from benchmarks.cli.trials import write_sweeps
from benchmarks.registry import benchmark, folder_of
from benchmarks.results import RunResult, read_results
from benchmarks.sweeps.space import Tuning
from benchmarks.sweeps.tuning import read_sweep
from benchmarks.tracking.store import default_tracking_uri
from tests.conftest import ROOT

TABLE = benchmark("fedsplitbert-table3")
LITE = TABLE.scale("lite")
LAYER, RATE = "options.critical_layer", "training.learning_rate"
SHORT = ("training.rounds=2", "training.max_length=16", "training.batch_size=32", "training.local_epochs=1")


def command(folder: Path, *args: str) -> int:
    changes = [part for change in SHORT for part in ("--set", change)]
    places = ["--results-dir", str(folder), "--no-tracking"]
    return main(["sweep", TABLE.id, "--tasks", "mrpc", "--methods", "fedsplitbert", *changes, *places, *args])


GRID = ("--grid", f"{LAYER}=0,12", "--grid", f"{RATE}=1e-3,2e-3", "--rungs", "1")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    assert command(folder, *GRID, "--workers", "1") == 0
    return folder


def entry(folder: Path) -> dict[str, Any]:
    (study,) = read_sweep(folder / "sweeps" / f"{TABLE.id}-demo.json")
    return study


def records(folder: Path) -> dict[str, RunResult]:
    return {record.cell_id: record for record in read_results(folder / "records")}


@pytest.mark.slow
def test_a_second_start_computes_nothing_and_its_command_runs_the_tried_cell_on_test_data(swept, capsys):
    def state() -> list[object]:
        files = [(path.name, path.stat().st_mtime_ns) for path in sorted((swept / "records").iterdir())]
        return [files, (swept / "sweeps" / "journal.log").read_bytes()]

    before = state()
    assert command(swept, *GRID, "--workers", "1") == 0
    assert state() == before
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    (python,) = (line for line in lines if line.startswith("python -m benchmarks"))
    ((_, _, cell),) = selection(build_parser().parse_args(shlex.split(python)[3:])).cells()
    (chosen,) = entry(swept)["best"]["cells"]
    assert dataclasses.replace(cell, holdout="validation").spec_id == records(swept)[chosen].cell.spec_id
    assert cell.holdout == "test"


@pytest.mark.slow
def test_mlflow_shows_the_scores_that_decide(tmp_path, monkeypatch):
    from mlflow import MlflowClient

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(Tuning, "last_rounds", 3)
    changes = [f"--set={change}" for change in (*SHORT, "training.rounds=3")]
    only = ["--tasks", "mrpc", "--methods", "fedsplitbert", *changes, "--results-dir", str(tmp_path)]
    assert main(["sweep", TABLE.id, *only, "--grid", f"{RATE}=5e-3,1e-2", "--workers", "1"]) == 0
    client = MlflowClient(default_tracking_uri(tmp_path))
    (number,) = [one.experiment_id for one in client.search_experiments() if one.name == "fedsplitbert"]
    runs = client.search_runs([number], "tags.`_kind` = 'run'")
    means = {one["cells"][0]: one["mean"] for one in entry(tmp_path)["trials"]}
    assert means == {run.data.tags["_cell_id"]: run.data.metrics["score"] for run in runs}
    last = {cell_id: record.score("test/f1") for cell_id, record in records(tmp_path).items()}
    assert means != last


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "slurm", "ray"])
def test_every_executor_finds_the_same_scores_and_may_prune(executor, swept, tmp_path, monkeypatch):
    if executor != "processes":
        pytest.importorskip({"slurm": "submitit", "ray": "ray"}[executor])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    args = ["--executor", executor, *(["--slurm", "cluster=local"] if executor == "slurm" else [])]
    assert command(tmp_path, *GRID, "--workers", "2", *args) == 0
    trials = entry(tmp_path)["trials"]
    assert [len(one["scores"]) for one in trials] == [1] * 4
    means = {(json.dumps(one["values"]), one.get("given_up_after")): one["mean"] for one in trials}
    expected = {(json.dumps(one["values"]), one.get("given_up_after")): one["mean"] for one in entry(swept)["trials"]}
    assert means.keys() & expected.keys()
    assert all(means[key] == expected[key] for key in means.keys() & expected.keys())
    assert command(tmp_path, *GRID, "--workers", "2", *args) == 0  # nothing is left
    assert entry(tmp_path)["trials"] == trials


def trial(number: int, layer: int, rate: float, mean: float | None, **more: Any) -> dict[str, Any]:
    trial = {"number": number, "values": {LAYER: layer, RATE: rate}, "mean": mean, "sd": None, "scores": [mean]}
    return trial | {"uplink_bytes": 1e6 * layer} | more


def study() -> dict[str, Any]:
    trials = [trial(0, 6, 1e-4, 0.75), trial(1, 12, 1e-4, 0.75), trial(2, 0, 1e-4, 0.5, given_up_after=1)]
    entry: dict[str, Any] = {"task": "mrpc", "method": "fedsplitbert", "scale": LITE.label, "seeds": [1000]}
    entry |= {"score": "f1 on validation data after the best round", "metric": "f1", "study": "a/b"}
    entry |= {"grid": {LAYER: [0, 6, 12], RATE: [1e-4]}, "budget": 3, "trials": trials, "best": trials[0]}
    return entry | {"ties": [0, 1]}


def test_files_hold_every_trial_and_the_pictures(tmp_path):
    paths = write_sweeps([study()], TABLE, LITE, tmp_path)
    assert {path.name for path in paths} == {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "trials.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader((tmp_path / "trials.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["state"] for row in rows] == ["best, tie of 2", "tie of 2", "pruned after round 1"]
    assert [row[LAYER] for row in rows] == ["6", "12", "0"]


def test_the_committed_sweep_has_a_section():
    (text,) = sections([TABLE.id, "fedbert-table6"], "lite")
    entries = read_sweep(folder_of("fedsplitbert") / "sweeps" / TABLE.id / "lite" / "study.json")
    assert text.count("make sweep-") == len(entries) >= 2
    assert sections([TABLE.id], "demo") == []


def test_the_campaigns_sweeps_have_a_table_of_all_trials():
    (text,) = sections(["fedpeft-scores"], "lite")
    studies = read_sweep(RESULTS / "sweeps" / "fedpeft-scores-lite.json")
    lines = [line for line in text.splitlines() if line.startswith("| SST-2 |")]
    assert len(lines) == len(studies) >= 15
    assert all(line.count("**") == 2 for line in lines)
    (line,) = [line for line in lines if "FedEx-LoRA (factored)" in line]
    assert line.count("; ") == 8
    assert line.count("learning") == 1
    assert "(2 tie; chosen: the first tried of those with the fewest uplink bytes)" in line
