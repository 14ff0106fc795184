"""`import`: records computed elsewhere are taken in under their names, inside the results folder and nowhere else.

Their predictions come with them.
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
from benchmarks.predictions import write_predictions
from benchmarks.results import CHECKSUM, checksum, read_result, read_results
from benchmarks.run_config import digest
from benchmarks.tracking.store import connect, default_tracking_uri

Refusal = Callable[..., str]


def forged(value: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A record whose cell was changed, with the id and the checksum that fit it."""
    value = {name: entry for name, entry in value.items() if name != "sha256"}
    value["cell"] = {**value["cell"], **changes}
    inputs = {name: entry["digest"] for name, entry in value["inputs"].items()}
    value["cell_id"] = digest({"cell": value["cell"], "inputs": inputs})
    return {**value, "sha256": checksum(value)}


@pytest.fixture
def given_folder(finished_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a record and its predictions; MLflow is left out."""
    monkeypatch.setattr(report, "_with_records", lambda *_: [])
    return Path(shutil.copytree(finished_results / "records", tmp_path / "given"))


def import_from(folder: Path, results: Path) -> int:
    return main(["import", str(folder), "--results-dir", str(results)])


@pytest.mark.parametrize("field", ["scale", "task", "algorithm", "seed"])
@pytest.mark.parametrize("name", ["../../outside", "{here}/outside", "..", "", "a\x00b", "x" * 300, 0.5, 10**300])
def test_a_name_that_leads_elsewhere_is_refused_and_nothing_is_written(
    field: str, name: Any, given_folder: Path, refusal: Refusal, tmp_path: Path
) -> None:
    (path,) = given_folder.glob("*.json")
    name = name.format(here=tmp_path) if isinstance(name, str) else name
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(forged(record, seed=7)), encoding="utf-8")
    (given_folder / "z.json").write_text(json.dumps(forged(record, **{field: name})), encoding="utf-8")
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    message = refusal(["import", str(given_folder), "--results-dir", str(tmp_path / "some" / "results")])
    assert f"{given_folder / 'z.json'}: expected a record of a finished cell" in message
    assert f"{field}: expected a " in message
    assert repr(name)[:20] in message
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


@pytest.mark.slow
def test_import_fills_mlflow_and_a_second_time_changes_nothing(tmp_path: Path) -> None:
    given, results, seen = tmp_path / "given", tmp_path / "results", []
    given.mkdir()
    committed = Path(report.__file__).parents[1] / "fedsplitbert" / "records"
    shutil.copy(min(committed.glob("lite-mrpc-fedavg-s0-*.json")), given)
    for _ in range(2):
        assert import_from(given, results) == 0
        client = connect(default_tracking_uri(results))
        (experiment,) = [found for found in client.search_experiments() if found.name != "Default"]
        runs = client.search_runs([experiment.experiment_id], "tags.`_kind` = 'run'")
        seen.append((experiment.tags, {run.info.run_id: run.to_dictionary() for run in runs}))
    assert seen[0] == seen[1]
    assert {run["data"]["tags"]["status"] for run in seen[0][1].values()} == {"finished"}
    artifacts = (results / "mlartifacts" / experiment.name).rglob("clients.csv")
    assert len(list(artifacts)) == len(seen[0][1]) > 0


def test_predictions_come_along_at_once_or_later(
    given_folder: Path, tmp_path: Path, contents: Callable[[Path], dict[str, bytes]], capsys: Any
) -> None:
    results, (path,) = tmp_path / "results", given_folder.glob("*.safetensors.xz")
    content = path.read_bytes()
    path.unlink()
    assert import_from(given_folder, results) == 0
    (record,) = read_results(results / "records")
    out = capsys.readouterr().out
    assert f"without predictions, which are not in {given_folder}: {record.file_name}" in out
    path.write_bytes(content)
    for _ in range(2):
        assert import_from(given_folder, results) == 0
        assert "without the predictions" not in capsys.readouterr().out
        assert contents(results / "records") == contents(given_folder)


def test_damaged_predictions_are_refused_and_nothing_is_taken_in(
    given_folder: Path, tmp_path: Path, refusal: Refusal
) -> None:
    (path,) = given_folder.glob("*.safetensors.xz")
    path.write_bytes(path.read_bytes()[:-1])
    message = refusal(["import", str(given_folder), "--results-dir", str(tmp_path / "results")])
    assert f"{path}: expected the predictions of" in message
    assert not list((tmp_path / "results").rglob("*.*"))


def test_a_record_that_is_there_stays_with_its_predictions(
    given_folder: Path, tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]
) -> None:
    """Another machine's run of the same cell has other predictions."""
    results = tmp_path / "results"
    assert import_from(given_folder, results) == 0
    kept = contents(results / "records")
    (path,) = given_folder.glob("*.json")
    record = read_result(path)
    other = b"of another machine"
    value = replace(record, predictions={"sha256": hashlib.sha256(other).hexdigest()}).to_json()
    path.write_text(json.dumps({**value, CHECKSUM: checksum(value)}))
    write_predictions(given_folder, record, other)
    assert import_from(given_folder, results) == 0
    assert contents(results / "records") == kept
