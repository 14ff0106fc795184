"""MLflow out of reach: one warning, no wait, and nothing lost."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from benchmarks.events import CellFinished, RoundFinished
from benchmarks.record import RunRecord
from benchmarks.tracking import Mirror

PATIENCE_SECONDS = 20  # MLflow's own is minutes


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_server_that_is_down_delays_the_mirror(
    store: Any,
    group: str,
    open_mirror: Callable[..., Mirror],
    record_of: Callable[..., RunRecord],
    play: Any,
    warnings: list[str],
    closed_port: int,
) -> None:
    record = record_of()
    started = time.monotonic()
    with open_mirror(uri=f"http://me:secret@127.0.0.1:{closed_port}") as mirror:
        play(mirror, record)
        mirror.sync([record])
        mirror.log_report([store.folder / "table.md"])
    assert time.monotonic() - started < PATIENCE_SECONDS
    (warning,) = warnings
    assert f"at http://127.0.0.1:{closed_port} is off" in warning
    assert "python -m benchmarks import" in warning
    warnings.clear()
    with open_mirror() as mirror:
        mirror.sync([record])
    assert store.points(store.child(group))["bytes/total"] == [(1, 110), (2, 320), (3, 630)]


def test_store_that_fails_midway_is_caught_up_later(
    store: Any,
    group: str,
    open_mirror: Callable[..., Mirror],
    record_of: Callable[..., RunRecord],
    play: Any,
    warnings: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise ConnectionError("the store is gone")

    record, mirror = record_of(), open_mirror()
    play(mirror, record, stopped_after=1)
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_batch", gone)
        mirror(RoundFinished(record.cell_id, record.rounds[1]))
    mirror(RoundFinished(record.cell_id, record.rounds[2]))  # would leave a gap
    mirror(CellFinished(record))
    (warning,) = warnings
    assert "(the store is gone)" in warning
    warnings.clear()
    assert store.points(store.child(group))["bytes/total"] == [(1, 110)]
    with open_mirror() as mirror:
        mirror(CellFinished(record, reused=True))
    assert store.points(store.child(group))["bytes/total"] == [(1, 110), (2, 320), (3, 630)]


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("foo://somewhere", "foo://somewhere"),
        ("file:///nowhere/mlruns", "filesystem tracking backend"),
        ("sqlite:///{folder}", "unable to open database file"),
        ("sqlite:///{folder}/text.db", "not a database"),
        ("sqlite:///file:{folder}/copy.db?mode=ro&uri=true", "readonly database"),
        ("postgresql://me:secret@localhost/runs", "psycopg"),
    ],
)
def test_unusable_store_is_said_once(
    store: Any,
    open_mirror: Callable[..., Mirror],
    record_of: Callable[..., RunRecord],
    play: Any,
    warnings: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    uri: str,
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)  # MLflow makes a folder of a SQLite URI's text
    (tmp_path / "text.db").write_text("words\n" * 1000)
    shutil.copy(store.folder / "mlflow.db", tmp_path / "copy.db")
    started = time.monotonic()
    with open_mirror(uri=uri.format(folder=tmp_path)) as mirror:
        play(mirror, record_of())
    assert time.monotonic() - started < PATIENCE_SECONDS
    (warning,) = warnings
    warnings.clear()
    assert reason in warning
    assert "secret" not in warning
    assert capfd.readouterr() == ("", "")
