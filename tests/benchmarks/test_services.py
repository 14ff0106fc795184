"""Commands around the runs: doctor, import, bench; and encoders in the hub's cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.encoders.loading import locate
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.results import read_results
from benchmarks.tasks import tasks


def test_doctor_says_what_is_there_and_downloads_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    words = ["doctor", "--results-dir", str(tmp_path / "results"), "--data-dir", str(tmp_path / "data")]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "ok   encoder tiny: built in" in lines
    assert any(line.startswith("ok   results: ") and line.endswith("GiB free") for line in lines)
    (missing,) = (line for line in lines if line.startswith("none encoders: "))
    assert "bert-base-uncased" in missing
    assert sum(line.startswith("none task ") for line in lines) == len(tasks())


@pytest.mark.slow
def test_import_takes_in_records_and_mirrors_them(
    finished_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mlflow import MlflowClient

    words = ["import", str(finished_results / "records"), "--results-dir", str(tmp_path)]
    for said in ("1 records taken in, 0 were there already", "0 records taken in, 1 were there already"):
        assert main(words) == 0
        assert said in capsys.readouterr().out
    # The cell was run with other rounds than the table's, so it is kept but belongs to no table's run.
    assert len(list(read_results(tmp_path / "records"))) == 1
    table = tmp_path / "table"
    run = ["run", "fedsplitbert-table3", "--tasks", "mrpc", "--methods", "local-majority", "--results-dir", str(table)]
    assert main([*run, "--no-tracking"]) == 0
    assert main(["import", str(table / "records"), "--results-dir", str(tmp_path)]) == 0
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("fedsplitbert")
    assert experiment is not None
    (record,) = read_results(table / "records")
    children = client.search_runs([experiment.experiment_id], f"tags.`_cell_id` = '{record.cell_id}'")
    # a child in the run of each table and figure that shows the local majority on MRPC
    demos = ((table, table.scale("demo")) for table in map(benchmark, benchmark_ids()))
    shows = [t.id for t, demo in demos if record.cell.spec_id in {cell.spec_id for *_, cell in t.cells(demo, [0])}]
    assert {"fedsplitbert-table3", "fedsplitbert-table4"} < set(shows)
    assert len(children) == len(shows)
    assert children[0].data.metrics["test/accuracy"] == record.score("test/accuracy")


@pytest.fixture
def hub_cache(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A hub's cache that holds one encoder at one commit, in the hub client's own layout."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--somebody--my-encoder"
    shutil.copytree(tiny_encoder, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    return commit


def test_an_encoder_of_the_hub_is_recorded_with_its_resolved_commit(hub_cache: str, tiny_encoder: Path) -> None:
    found = locate("somebody/my-encoder", local_only=True)
    assert dict(found.origin) == {"from": "hub somebody/my-encoder", "revision": hub_cache}
    assert found.digest == locate(str(tiny_encoder)).digest  # the same content from a folder is the same encoder


def test_an_encoder_that_behaves_differently_is_another(tiny_encoder: Path, tmp_path: Path) -> None:
    digests = {locate(str(tiny_encoder)).digest}
    for name, file, old, new in [
        ("dropout", "config.json", '"hidden_dropout_prob": 0.0', '"hidden_dropout_prob": 0.5'),
        ("tokenizer", "tokenizer.json", "[UNK]", "[HUH]"),
    ]:
        folder = shutil.copytree(tiny_encoder, tmp_path / name)
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new))
        digests.add(locate(str(folder)).digest)
    assert len(digests) == 3
