"""Where runs are kept, and MLflow's web interface as a command."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.tracking import default_tracking_uri, serve
from benchmarks.tracking.server import PORT, RUNNING, address_of
from tests.conftest import ROOT
from tests.tracking.conftest import Store, play, record_of


def test_the_uri_is_the_users_or_a_database_in_the_results(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {" ", "%", "?"} < set(store.folder.name)
    with store.mirror(store.table()):
        assert (store.folder / "mlflow.db").read_bytes().startswith(b"SQLite format 3")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://example.org")
    assert default_tracking_uri(store.folder) == "http://example.org"
    for wrong in ("http://", "http://:5000", "http://[::1", "https://host:99999", "http://me:secret@h:x"):
        with pytest.raises(UserError, match=r"expected http://host:port") as raised:
            require_uri(wrong)
        assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("foo://me:secret@somewhere", "foo://"),
        ("sqlite:///{folder}", "unable to open database file"),
        ("sqlite:///{folder}/text.db", "not a database"),
    ],
)
def test_an_unusable_store_is_said_once(
    uri: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.db").write_text("words\n" * 1000)
    store = Store(tmp_path, "paper")
    with store.mirror(store.table(), uri.format(folder=tmp_path)) as mirror:
        play(mirror, record_of())
    (warning,) = store.warnings
    assert reason in warning
    assert "secret" not in warning
    assert capfd.readouterr() == ("", "")


PROGRAM = (
    "import sys; from pathlib import Path; from benchmarks.tracking import Mirror, Table, default_tracking_uri\n"
    "folder = Path(sys.argv[1])\n"
    "mirror = Mirror(default_tracking_uri(folder), folder, 'paper', Table('t', 't'), print)\n"
    "print(mirror._experiment_id)"
)


@pytest.mark.slow
def test_two_processes_create_one_database_quietly(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "new")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PATH": ""},  # nothing complains about git, which is not there
            cwd=ROOT,
            text=True,
        )
        for _ in range(2)
    ]
    assert [process.communicate(timeout=100) for process in processes] == [("1\n", ""), ("1\n", "")]


# ---- the web interface -----------------------------------------------------------------------------------------------


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_what_cannot_be_served_is_said(tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]) -> None:
    uri = default_tracking_uri(tmp_path)
    with pytest.raises(UserError, match=r"found none: run a benchmark first, such as `make demo`"):
        serve(uri, tmp_path)
    (tmp_path / "mlflow.db").touch()
    with pytest.raises(UserError, match=r"port 65536: expected a number from 1 to 65535"):
        serve(uri, tmp_path, port=65536)
    with pytest.raises(UserError, match=r"cannot listen on no\.such\.host\.invalid"):
        serve(uri, tmp_path, host="no.such.host.invalid", port=port)
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(UserError, match=rf"cannot listen on 127.0.0.1, port {port} .*in use.*PORT="),
    ):
        serve(uri, tmp_path, port=port)
    assert serve(f"http://me:secret@127.0.0.1:{port}/", tmp_path) == 0
    assert capsys.readouterr().out == f"A tracking server keeps the runs: http://127.0.0.1:{port}\n"


def test_links_carry_the_port_of_the_interface_that_runs(tmp_path: Path, port: int) -> None:
    uri = default_tracking_uri(tmp_path)
    (tmp_path / RUNNING).write_text(json.dumps({"address": f"http://127.0.0.1:{port}"}))
    assert address_of(uri, tmp_path) == f"http://127.0.0.1:{PORT}" == "http://127.0.0.1:5055"  # it was killed
    with socket.create_server(("127.0.0.1", port)):
        assert address_of(uri, tmp_path) == f"http://127.0.0.1:{port}"


@pytest.mark.slow
def test_the_interface_serves_runs_and_is_a_tracking_server_itself(port: int, tmp_path: Path) -> None:
    store, record, uri = Store(tmp_path, "paper"), record_of(), f"http://127.0.0.1:{port}"
    with store.mirror(store.table(record)) as mirror:
        play(mirror, record)
    words = [sys.executable, "-m", "benchmarks", "ui", "--port", str(port), "--results-dir", str(store.folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"MLflow (Ctrl-C ends it): {uri}\n"
        page = f"  {uri}/#/experiments/{store.experiment.experiment_id}/runs?viewStateShareKey=all-runs"
        assert process.stdout.readline() == "paper:\n"
        assert process.stdout.readline() == f"{page}&workflowType=machine_learning\n"
        with urllib.request.urlopen(f"{uri}/health", timeout=10) as answer:
            assert answer.read() == b"OK"
        with store.mirror(store.table(record, id="other"), uri) as mirror:
            mirror.sync([record])
            assert mirror.links[0].startswith(f"{uri}/#/experiments/")
        with store.mirror(store.table(record)) as mirror:
            mirror.sync([record])
            assert mirror.links[0].startswith(f"{uri}/#/experiments/")
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    first, second = store.runs()
    assert store.points(first) == store.points(second)
    assert (process.returncode, errors) == (0, "")
    assert not (store.folder / RUNNING).exists()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
