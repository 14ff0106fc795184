"""Missing data and encoders end a run or a sweep at once: one message, no MLflow, one short request to the hub."""

import sys
from collections.abc import Callable
from pathlib import Path

import datasets
import huggingface_hub
import pytest

from benchmarks.encoders import fetched
from benchmarks.encoders.fetched import OFFLINE
from benchmarks.encoders.loading import locate

TABLE = ["fedsplitbert-table3", "--tasks", "mrpc"]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An unreachable hub; returns all requests to it and all non-local calls of its libraries."""
    calls: list[str] = []
    for name in OFFLINE:
        monkeypatch.setenv(name, "0")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(fetched, "_request", lambda answers: calls.append("request"))

    def snapshot_download(name: str, local_files_only: bool, **_: object) -> str:
        if not local_files_only:
            calls.append(name)
        raise OSError("not cached")

    def load_dataset(name: str, *_: object, **__: object) -> None:
        if not datasets.config.HF_HUB_OFFLINE:
            calls.append(name)
        raise ConnectionError("not cached")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    fetched.hub_answers.cache_clear()
    locate.cache_clear()
    return calls


@pytest.fixture
def refused(refusal: Callable[[list[str]], str], tmp_path: Path) -> Callable[..., str]:
    """Start a command with a data directory; it must fail before it opens MLflow. Return the message."""

    def start(scale: str, data_dir: Path | None, command: str = "run") -> str:
        places = ["--data-dir", str(data_dir)] if data_dir else []
        message = refusal([command, *TABLE, "--scale", scale, "--results-dir", str(tmp_path / "results"), *places])
        assert not (tmp_path / "results" / "mlflow.db").exists()
        assert not list((tmp_path / "results" / "records").glob("*"))
        return message

    return start


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    (tmp_path / "data" / "MRPC").mkdir(parents=True)
    (tmp_path / "data" / "MRPC" / "train.tsv").touch()
    return tmp_path / "data"


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_missing_data_are_named_once_and_the_hub_is_not_asked(hub, refused, data_dir, monkeypatch, command):
    for name in ("mlflow", "optuna", "benchmarks.cli.trials"):
        monkeypatch.setitem(sys.modules, name, None)  # an import would fail
    absent = data_dir / "absent"
    assert f"data directory {absent}: expected a folder, found nothing" in refused("lite", absent, command)
    message = refused("lite", data_dir, command)
    assert message.startswith(f"{data_dir}/MRPC: MRPC lacks dev.tsv; add it, or accept")
    (data_dir / "MRPC" / "train.tsv").unlink()
    message = refused("lite", data_dir, command)
    assert message.startswith(f"no MRPC data: looked in {data_dir}/ for glue_data/MRPC/train.tsv, MRPC/train.tsv, ")
    assert message.count("no MRPC data") == 1
    assert hub == []


def test_a_hub_that_does_not_answer_is_asked_once(hub, refused, data_dir):
    (data_dir / "MRPC" / "dev.tsv").touch()
    message = refused("paper", data_dir)
    assert message.startswith("encoder google-bert/bert-base-uncased: the Hugging Face hub does not answer, and its")
    assert "set BACKBONE to a folder" in message
    assert message.count("encoder ") == 1
    data, encoder = refused("paper", None).split("\n")
    assert data.startswith("cannot load 'mrpc' of nyu-mll/glue")
    assert encoder.startswith("encoder google-bert/bert-base-uncased")
    assert hub == ["request"]
