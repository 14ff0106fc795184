"""`import`: records computed elsewhere are taken in under their names, inside the results folder and nowhere else.

What their cells answered comes with them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cli import report
from benchmarks.cli.main import main
from benchmarks.predictions import Predictions, read_predictions, write_predictions
from benchmarks.results import CHECKSUM, checksum, read_result, read_results
from benchmarks.run_config import RunConfig, digest
from benchmarks.tracking import default_tracking_uri
from benchmarks.tracking.store import connect

Refusal = Callable[..., str]


def forged(value: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A record whose cell was changed, with the id and the checksum that fit it."""
    value = {name: entry for name, entry in value.items() if name != "sha256"}
    value["cell"] = {**value["cell"], **changes}
    inputs = {name: entry["digest"] for name, entry in value["inputs"].items()}
    value["cell_id"] = digest({"cell": value["cell"], "inputs": inputs})
    return {**value, "sha256": checksum(value)}


@pytest.fixture
def record(finished_results: Path) -> dict[str, Any]:
    (path,) = (finished_results / "records").glob("*.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_a_record_of_another_cell_is_taken_in(record: dict[str, Any], tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    value = forged(record, seed=7)
    (given / "any name.json").write_text(json.dumps(value), encoding="utf-8")
    assert main(["import", str(given), "--results-dir", str(tmp_path / "results")]) == 0
    (kept,) = (tmp_path / "results" / "records").iterdir()
    assert kept.name == f"demo-mrpc-fedsplitbert-s7-{value['cell_id']}.json"


NAMES = ["../../outside", "{here}/outside", "in/side", "..", "", "a\x00b", "x" * 300, 0.5, 10**300]


@pytest.mark.parametrize("field", ["scale", "task", "algorithm", "seed"])
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_name_that_leads_elsewhere_is_refused_and_nothing_is_written(
    field: str, name: Any, record: dict[str, Any], refusal: Refusal, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    name = name.format(here=tmp_path) if isinstance(name, str) else name
    (given / "a.json").write_text(json.dumps(forged(record, seed=7)), encoding="utf-8")
    (given / "b.json").write_text(json.dumps(forged(record, **{field: name})), encoding="utf-8")
    message = refusal(["import", str(given), "--results-dir", str(tmp_path / "some" / "results")])
    assert f"{given / 'b.json'}: expected a record of a finished cell" in message
    assert f"{field}: expected a " in message
    assert repr(name)[:20] in message
    assert "move it away" in message
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(files) == [given / "a.json", given / "b.json"]


def test_no_cell_has_such_a_name(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"task: expected a name of at most 64 .*, found '\.\./mrpc'"):
        RunConfig.from_json({**record["cell"], "task": "../mrpc"})


@pytest.mark.slow
def test_import_fills_mlflow_and_a_second_time_changes_nothing(tmp_path: Path) -> None:
    given, results, seen = tmp_path / "given", tmp_path / "results", []
    given.mkdir()
    committed = Path(report.__file__).parents[1] / "fedsplitbert" / "records"
    shutil.copy(min(committed.glob("lite-mrpc-fedavg-s0-*.json")), given)
    for _ in range(2):
        assert main(["import", str(given), "--results-dir", str(results)]) == 0
        client = connect(default_tracking_uri(results))
        (experiment,) = [found for found in client.search_experiments() if found.name != "Default"]
        runs = client.search_runs([experiment.experiment_id], "tags.`_kind` = 'run'")
        seen.append((experiment.tags, {run.info.run_id: run.to_dictionary() for run in runs}))
    assert seen[0] == seen[1]
    assert {run["data"]["tags"]["status"] for run in seen[0][1].values()} == {"finished"}
    artifacts = (results / "mlartifacts" / experiment.name).rglob("clients.csv")
    assert len(list(artifacts)) == len(seen[0][1]) > 0


# ---- what a record's cell answered comes along ---------------------------------------------------------------------


@pytest.fixture
def given_folder(finished_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record with its predictions; MLflow is not told of them."""
    monkeypatch.setattr(report, "_with_records", lambda *_: [])
    return Path(shutil.copytree(finished_results / "records", tmp_path / "given"))


def taken_in(folder: Path, results: Path) -> int:
    return main(["import", str(folder), "--results-dir", str(results)])


def test_import_brings_the_file_along_twice_without_harm(
    given_folder: Path, tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]
) -> None:
    results = tmp_path / "results"
    for _ in range(2):
        assert taken_in(given_folder, results) == 0
        assert contents(results / "records") == contents(given_folder)
    (record,) = read_results(results / "records")
    assert all(isinstance(own, Predictions) for own in read_predictions(results / "records", record).values())


def test_a_record_without_its_file_is_taken_in_and_named_and_the_file_may_come_later(
    given_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    (path,) = given_folder.glob("*.safetensors.xz")
    content = path.read_bytes()
    path.unlink()
    assert taken_in(given_folder, results) == 0
    (record,) = read_results(results / "records")
    out = capsys.readouterr().out
    assert f"without the predictions beside them, which were not found in {given_folder}: {record.file_name}" in out
    path.write_bytes(content)
    assert taken_in(given_folder, results) == 0
    assert "without the predictions" not in capsys.readouterr().out
    assert (results / "records" / path.name).read_bytes() == content


def test_a_damaged_file_is_refused_and_nothing_is_taken_in(
    given_folder: Path, tmp_path: Path, refusal: Callable[[list[str]], str]
) -> None:
    (path,) = given_folder.glob("*.safetensors.xz")
    path.write_bytes(path.read_bytes()[:-1])
    message = refusal(["import", str(given_folder), "--results-dir", str(tmp_path / "results")])
    assert f"{path}: expected the predictions of" in message
    assert not list((tmp_path / "results").rglob("*.*"))


def test_import_leaves_what_another_run_of_the_cell_answered(given_folder: Path, tmp_path: Path) -> None:
    """As on another machine: the record that is there stays, and so does its file."""
    results = tmp_path / "results"
    assert taken_in(given_folder, results) == 0
    kept = {path.name: path.read_bytes() for path in (results / "records").iterdir()}
    (path,) = given_folder.glob("*.json")
    record = read_result(path)
    other = b"of another machine"
    value = replace(record, predictions={"sha256": hashlib.sha256(other).hexdigest()}).to_json()
    path.write_text(json.dumps({**value, CHECKSUM: checksum(value)}))
    write_predictions(given_folder, record, other)
    assert taken_in(given_folder, results) == 0
    assert {path.name: path.read_bytes() for path in (results / "records").iterdir()} == kept


def test_a_report_needs_no_predictions(finished_results: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished_results / "records", tmp_path / "given"))
    next(folder.glob("*.safetensors.xz")).unlink()
    words = ["report", "fedsplitbert-table3", "--records", str(folder)]
    assert main([*words, "--results-dir", str(tmp_path / "results"), "--set", "training.rounds=1"]) == 0
