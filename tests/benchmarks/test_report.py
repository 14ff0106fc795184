"""`report` and `import`: what is printed, and records computed elsewhere."""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.cli import report
from benchmarks.cli.main import main
from benchmarks.registry import benchmark, benchmark_ids, folder_of
from benchmarks.results import RunResult, checksum, read_results
from benchmarks.run_config import digest
from benchmarks.tracking.store import connect, default_tracking_uri
from tests.benchmarks.conftest import TABLE, contents


def test_tables_without_the_scale_are_skipped(finished_results, tmp_path, refusal):
    places = ["--records", str(finished_results / "records"), "--results-dir", str(tmp_path)]
    assert "expected records of any table at scale literal in " in refusal(["report", "--scale", "literal", *places])
    assert "unknown scale 'huge'" in refusal(["report", "--scale", "huge", *places])


def test_only_the_named_seeds_are_reported(finished_results, tmp_path, refusal):
    places = ["--records", str(finished_results / "records"), "--results-dir", str(tmp_path)]
    assert f"expected records of {TABLE} with seeds 5 to 6 in " in refusal(["report", TABLE, "--seeds", "5-6", *places])


def test_records_that_no_named_table_shows_are_described(finished_results, tmp_path, refusal):
    """The run has another number of rounds than the table; other methods have no run."""
    places = ["--records", str(finished_results / "records"), "--results-dir", str(tmp_path)]
    for more in ([], ["--methods", "fedavg", "--set", "training.rounds=1"], ["--seeds", "5-6"]):
        message = refusal(["report", TABLE, *more, *places])
        assert (
            "found 1 other record (scale demo, mrpc by fedsplitbert, seed 0): repeat the --set, --backbone" in message
        )
    (tmp_path / "empty").mkdir()
    assert "found none: run the table" in refusal(["report", "--records", str(tmp_path / "empty"), *places[2:]])


@pytest.mark.slow
def test_tables_are_printed_if_they_are_asked_for(finished_results, tmp_path, capsys):
    places = ["--records", str(finished_results / "records"), "--results-dir", str(tmp_path)]
    arguments = ["report", TABLE, "--set", "training.rounds=1", *places]
    for more, is_printed in (([], False), (["--tables"], True)):
        assert main([*arguments, *more]) == 0
        assert ("Method" in capsys.readouterr().out) is is_printed


# ---- import ------------------------------------------------------------------------------------------------------


def forged(value: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A record with a changed cell, and the matching id and checksum."""
    value = {name: entry for name, entry in value.items() if name != "sha256"}
    value["cell"] = {**value["cell"], **changes}
    inputs = {name: entry["digest"] for name, entry in value["inputs"].items()}
    value["cell_id"] = digest({"cell": value["cell"], "inputs": inputs})
    return {**value, "sha256": checksum(value)}


@pytest.fixture
def given_folder(finished_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a record and its predictions, without MLflow."""
    monkeypatch.setattr(report, "_with_records", lambda *_: [])
    return Path(shutil.copytree(finished_results / "records", tmp_path / "given"))


def import_from(folder: Path, results: Path, *more: str) -> int:
    return main(["import", str(folder), "--results-dir", str(results), *more])


@pytest.mark.parametrize("field", ["scale", "seed"])
@pytest.mark.parametrize("name", ["../../outside", "{here}/outside", "", "a\x00b", "x" * 300, 0.5, 10**300])
def test_a_name_outside_the_folder_is_refused_and_nothing_is_written(field, name, given_folder, refusal, tmp_path):
    (path,) = given_folder.glob("*.json")
    name = name.format(here=tmp_path) if isinstance(name, str) else name
    record = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    (given_folder / "z.json").write_text(json.dumps(forged(record, **{field: name})), encoding="utf-8")
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    message = refusal(["import", str(given_folder), "--results-dir", str(tmp_path / "some" / "results")])
    assert f"{given_folder / 'z.json'}: expected a record of a finished cell" in message
    assert f"{field}: expected a " in message
    assert repr(name)[:20] in message
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


@pytest.mark.slow
def test_import_shows_a_record_in_each_of_its_tables_and_a_second_one_changes_nothing(tmp_path):
    given, results, seen = tmp_path / "given", tmp_path / "results", []
    given.mkdir()
    shutil.copy(min((folder_of("fedsplitbert") / "records").glob("lite-mrpc-fedavg-s0-*.json")), given)
    (record,) = read_results(given)
    for _ in range(2):
        assert import_from(given, results) == 0
        client = connect(default_tracking_uri(results))
        (experiment,) = [each for each in client.search_experiments() if each.name != "Default"]
        runs = client.search_runs([experiment.experiment_id], "tags.`_kind` = 'run'")
        seen.append((experiment.tags, {run.info.run_id: run.to_dictionary() for run in runs}))
    assert seen[0] == seen[1]
    at_lite = [
        (table, scale) for table in map(benchmark, benchmark_ids()) for scale in table.scales if scale.id == "lite"
    ]
    ids = [{cell.definition_id for *_, cell in table.cells(lite, [0])} for table, lite in at_lite]
    assert len(seen[0][1]) == sum(record.cell.definition_id in of_table for of_table in ids) > 1
    for run in seen[0][1].values():
        assert run["data"]["tags"]["status"] == "finished"
        assert run["data"]["metrics"]["test/f1"] == record.score("test/f1")
    artifacts = (results / "mlartifacts" / experiment.name).rglob("clients.csv")
    assert len(list(artifacts)) == len(seen[0][1])


def test_predictions_are_imported_at_once_or_later(given_folder, tmp_path, capsys):
    results, (path,) = tmp_path / "results", given_folder.glob("*.safetensors.xz")
    content = path.read_bytes()
    path.unlink()
    assert import_from(given_folder, results) == 0
    (record,) = read_results(results / "records")
    out = capsys.readouterr().out
    assert "1 record imported, 0 already present" in out
    assert f"imported without predictions, as {given_folder} lacks them: {record.file_name}" in out
    path.write_bytes(content)
    for _ in range(2):
        assert import_from(given_folder, results) == 0
        out = capsys.readouterr().out
        assert "0 records imported, 1 already present" in out
        assert "without predictions" not in out
        assert contents(results / "records") == contents(given_folder)


def test_another_run_of_a_recorded_cell_is_named_and_yours_is_kept(finished_results, tmp_path, monkeypatch, capsys):
    mirrored: list[RunResult] = []
    monkeypatch.setattr(report, "open_mirror", lambda *_: nullcontext(SimpleNamespace(sync=mirrored.extend)))
    results, given = tmp_path / "results", Path(shutil.copytree(finished_results / "records", tmp_path / "given"))
    assert import_from(given, results) == 0
    before = contents(results / "records")
    (path,), (yours,) = given.glob("*.json"), read_results(given)
    value = json.loads(path.read_text(encoding="utf-8"))
    value["rounds"][0]["scores"]["test"]["f1"] = 0.125
    path.write_text(json.dumps(forged(value)), encoding="utf-8")
    capsys.readouterr()
    assert import_from(given, results, "--set", "training.rounds=1") == 0
    said = f"0 records imported, 0 already present, 1 different from yours, yours kept: {path.name}"
    assert said in capsys.readouterr().out
    assert contents(results / "records") == before
    assert mirrored
    assert all(record == yours for record in mirrored)


def test_import_names_what_mlflow_lacks(nothing_included, finished_results, tmp_path, monkeypatch, capsys):
    """A record with another number of rounds than Table III's, until a table of the user defines it."""
    mirrored: list[RunResult] = []
    mirror = SimpleNamespace(sync=mirrored.extend)
    monkeypatch.setattr(report, "open_mirror", lambda *_: nullcontext(mirror))
    given, own = finished_results / "records", tmp_path / "own"
    own.mkdir()
    text = "from dataclasses import replace\nfrom benchmarks.fedsplitbert.tables import TABLE3\n"
    changed = "id='mine-third', overrides=(('training.rounds', 1),)"
    (own / "table.py").write_text(f"{text}BENCHMARK = replace(TABLE3, {changed})\n", encoding="utf-8")
    assert import_from(given, tmp_path / "results") == 0
    assert "not in MLflow: 1 record with settings that no table defines" in capsys.readouterr().out
    assert mirrored == []
    assert import_from(given, tmp_path / "results", "--include", str(own)) == 0
    assert "not in MLflow" not in capsys.readouterr().out
    assert len(mirrored) == 1


def test_import_with_the_changes_of_a_run_tracks_it(finished_results, tmp_path, monkeypatch):
    mirrored: list[RunResult] = []
    monkeypatch.setattr(report, "open_mirror", lambda *_: nullcontext(SimpleNamespace(sync=mirrored.extend)))
    assert import_from(finished_results / "records", tmp_path / "results", "--set", "training.rounds=1") == 0
    tables = len(mirrored)
    assert tables >= 1
    changes = ["--set", "training.rounds=1", "--set", "options.critical_layer=2"]  # FedAvg has no such option
    assert import_from(finished_results / "records", tmp_path / "results", *changes) == 0
    assert len(mirrored) == tables


def test_an_import_that_mlflow_refuses_keeps_the_records_and_says_so(finished_results, tmp_path, refusal):
    results = tmp_path / "results"
    results.mkdir()
    (results / "mlflow.db").write_text("no database")
    arguments = ["--results-dir", str(results), "--set", "training.rounds=1"]
    message = refusal(["import", str(finished_results / "records"), *arguments])
    assert message.startswith(f"the records are in {results / 'records'}, but not in MLflow: MLflow tracking at ")
    assert f"{results / 'mlflow.db'} cannot be opened; if it is damaged, move it away" in message
    assert contents(results / "records") == contents(finished_results / "records")


def test_damaged_predictions_are_refused_and_nothing_is_taken_in(given_folder, tmp_path, refusal):
    (path,) = given_folder.glob("*.safetensors.xz")
    path.write_bytes(path.read_bytes()[:-1])
    message = refusal(["import", str(given_folder), "--results-dir", str(tmp_path / "results")])
    assert f"{path}: expected the predictions of" in message
    assert not list((tmp_path / "results").rglob("*.*"))
