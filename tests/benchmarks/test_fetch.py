"""What a benchmark needs is gathered beforehand; a node that reaches neither hub nor tracking runs from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest

from benchmarks.cli.main import main
from benchmarks.encoders import backbones
from benchmarks.encoders.backbones import KNOWN, locate
from benchmarks.encoders.fetched import FILE, OFFLINE, contents, note, places, source_of
from benchmarks.results import read_results
from benchmarks.running import federation
from benchmarks.tasks import task
from benchmarks.tasks.glue import REPOSITORY, REVISION

TABLE = "fedsplitbert-table3"
ENCODER = "all-MiniLM-L6-v2"


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is set of the hub's variables goes with the test, and what was located."""
    for name in (*places(Path()), *OFFLINE):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    locate.cache_clear()
    federation._task_data.cache_clear()
    monkeypatch.setattr(backbones, "_packaged", lambda _: None)


class Hub:
    """Keeps what it gives where the environment says, and gives only that when it is offline."""

    def __init__(self, encoder: Path) -> None:
        self.encoder = encoder
        self.reached: list[tuple[str, str | None]] = []

    def _kept(self, name: str, revision: str | None, place: str, there: bool = True) -> Path:
        kept = Path(os.environ[place]) / name.replace("/", "--")
        if os.environ.get("HF_HUB_OFFLINE") == os.environ.get("HF_DATASETS_OFFLINE") == "1":
            if not kept.is_dir():
                raise ConnectionError("offline, and not kept")
        elif not there:
            raise ConnectionError("no such repository")
        else:
            self.reached.append((name, revision))
            kept.mkdir(parents=True, exist_ok=True)
        return kept

    def load_dataset(self, name: str, config: str | None = None, revision: str | None = None, **_: Any) -> Any:
        self._kept(name, revision, "HF_DATASETS_CACHE", name == REPOSITORY)
        rows = {
            "sentence1": [f"The dog number {number} barks ." for number in range(80)],
            "sentence2": [f"A dog number {number} barks ." for number in range(80)],
            "label": [number % 2 for number in range(80)],
        }
        names = datasets.ClassLabel(names=["not_equivalent", "equivalent"])
        found = datasets.Dataset.from_dict(rows).cast_column("label", names)
        return datasets.DatasetDict(train=found, validation=found, test=found)

    def snapshot_download(self, name: str, revision: str | None = None, **_: Any) -> str:
        self._kept(name, revision, "HF_HUB_CACHE")
        return str(self.encoder)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tiny_encoder: Path) -> Hub:
    made = Hub(tiny_encoder)
    monkeypatch.setattr(datasets, "load_dataset", made.load_dataset)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", made.snapshot_download)
    return made


def fetch(folder: Path, *words: str) -> int:
    return main(["fetch", TABLE, "--to", str(folder), "--methods", "local-majority", *words])


def test_an_offline_node_runs_from_what_was_fetched_and_its_records_come_home(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, there, home = (tmp_path / name for name in ("data", "there", "home"))
    assert fetch(data, "--tasks", "mrpc") == 0
    said = capsys.readouterr().out
    assert "ok   task mrpc: 160 examples" in said
    assert f"ok   encoder {ENCODER}: hub sentence-transformers/all-MiniLM-L6-v2" in said
    assert hub.reached == [(REPOSITORY, REVISION), (KNOWN[ENCODER].hub, KNOWN[ENCODER].revision)]  # pinned
    assert contents(data) == {"tasks": ["mrpc"], "encoders": [ENCODER]}

    hub.reached.clear()
    locate.cache_clear()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    asked = ["--scale", "lite", "--tasks", "mrpc", "--methods", "local-majority", "--set", "training.rounds=1"]
    machine = ["--device", "cpu", "--workers", "1", "--no-tracking"]
    run = ["run", TABLE, *asked, *machine, "--results-dir", str(there)]
    partition = 'partition={"scheme":"dirichlet","alpha":10.0}'
    assert (
        main(
            [*run, "--set", partition, "--set", "clients=2", "--set", "training.max_length=64", "--data-dir", str(data)]
        )
        == 0
    )
    assert hub.reached == []
    assert {name: os.environ[name] for name in OFFLINE} == OFFLINE
    (record,) = read_results(there / "records")
    assert record.inputs["data"]["origin"].startswith(REPOSITORY)

    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    for new in (1, 0):
        capsys.readouterr()
        assert main(["import", str(there / "records"), "--results-dir", str(home)]) == 0
        assert f"{new} records taken in" in capsys.readouterr().out
    assert [found.to_json() for found in read_results(home / "records")] == [record.to_json()]


def test_what_cannot_be_had_is_named_and_the_rest_is_fetched(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: 1 / 0)
    assert fetch(tmp_path, "--tasks", "mrpc") == 2
    found = capsys.readouterr()
    assert "ok   task mrpc" in found.out
    assert f"none encoder {ENCODER}: " in found.out
    assert f"error: not fetched: encoder {ENCODER}; put their files into" in found.err
    assert contents(tmp_path) == {"tasks": ["mrpc"], "encoders": []}


def test_a_task_that_was_not_fetched_is_looked_for_in_the_folder(tmp_path: Path) -> None:
    note(tmp_path, ["mrpc"], [])
    note(tmp_path, ["rte"], ["an-encoder"])
    assert contents(tmp_path) == {"tasks": ["mrpc", "rte"], "encoders": ["an-encoder"]}
    assert source_of("mrpc", tmp_path).folder is None
    assert source_of("cola", tmp_path).folder == tmp_path
    with pytest.raises(ValueError, match="CoLA"):
        task("cola").load(source_of("cola", tmp_path))


@pytest.mark.parametrize("text", ["[]", "{}", '{"tasks": [1], "encoders": []}', '{"tasks": 1, "encoders": 2}', "x"])
def test_a_damaged_note_is_refused(text: str, tmp_path: Path, refusal: Callable[[list[str]], str]) -> None:
    (tmp_path / FILE).write_text(text)
    assert str(tmp_path / FILE) in refusal(["run", TABLE, "--data-dir", str(tmp_path)])


def test_words(tmp_path: Path, refusal: Callable[[list[str]], str]) -> None:
    assert "required: --to" in refusal(["fetch", TABLE])
    assert "unknown benchmark" in refusal(["fetch", "no-such", "--to", str(tmp_path)])
    (tmp_path / "file").touch()
    assert "cannot be written" in refusal(["fetch", TABLE, "--to", str(tmp_path / "file" / "below")])


def test_the_libraries_read_what_is_set(tmp_path: Path) -> None:
    """In a process of its own, as they read the environment once."""
    note(tmp_path, ["mrpc"], [])
    program = (
        "import sys; from pathlib import Path; from benchmarks.encoders.fetched import use; use(Path(sys.argv[1]))\n"
        "assert not {'datasets', 'huggingface_hub'} & set(sys.modules)\n"
        "from huggingface_hub import constants; import datasets, json\n"
        "print(json.dumps([constants.HF_HUB_CACHE, str(datasets.config.HF_DATASETS_CACHE), constants.HF_HUB_OFFLINE,\n"
        "                  datasets.config.HF_HUB_OFFLINE]))"
    )
    found = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    named = places(tmp_path)
    assert json.loads(found.stdout) == [named["HF_HUB_CACHE"], named["HF_DATASETS_CACHE"], True, True]


@pytest.fixture
def own_data(tmp_path: Path) -> Path:
    """A data directory of the user's, with more in it than the task reads."""
    folder = tmp_path / "own" / "MRPC"
    folder.mkdir(parents=True)
    lines = "".join(f"{number % 2}\t1\t2\tA dog {number}\tSome dog {number}\n" for number in range(40))
    for part in ("train", "dev", "unread"):
        (folder / f"{part}.tsv").write_text(f"Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n{lines}")
    return folder.parent


def test_files_of_the_users_own_are_copied(
    hub: Hub, own_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there"
    assert fetch(there, "--tasks", "mrpc", "--data-dir", str(own_data)) == 0
    assert "2 files copied" in capsys.readouterr().out
    assert sorted(path.name for path in (there / "MRPC").iterdir()) == ["dev.tsv", "train.tsv"]
    assert (there / "MRPC" / "dev.tsv").read_bytes() == (own_data / "MRPC" / "dev.tsv").read_bytes()
    assert contents(there)["tasks"] == []  # it is read from the files
    own, copy = (task("mrpc").load(source_of("mrpc", folder)) for folder in (own_data, there))
    assert own.pool.texts == copy.pool.texts
    assert [name for name, _ in hub.reached] == [KNOWN[ENCODER].hub]
    assert fetch(there, "--tasks", "mrpc", "--data-dir", str(there)) == 0  # into itself


def test_damaged_files_of_the_users_own_are_named(
    hub: Hub, own_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own_data / "MRPC" / "dev.tsv").write_bytes(b"\xff\xfe")
    assert fetch(tmp_path / "there", "--tasks", "mrpc", "--data-dir", str(own_data)) == 2
    found = capsys.readouterr()
    assert "none task mrpc: " in found.out
    assert str(own_data / "MRPC" / "dev.tsv") in found.out
    assert "not fetched: task mrpc" in found.err


def test_what_the_users_own_data_lack_comes_from_the_hub(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own").mkdir()
    assert fetch(tmp_path / "there", "--tasks", "mrpc", "--data-dir", str(tmp_path / "own")) == 0
    assert contents(tmp_path / "there")["tasks"] == ["mrpc"]
    assert hub.reached[0] == (REPOSITORY, REVISION)
