"""MLflow's web interface as a command."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.record import RunRecord
from benchmarks.tracking import Mirror, default_tracking_uri, serve

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (  # a suite that a shell runs in its background ignores Ctrl-C, and so would what it starts
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "import sys; from pathlib import Path; from benchmarks.tracking import serve, default_tracking_uri\n"
    "folder = Path(sys.argv[1]); sys.exit(serve(default_tracking_uri(folder), folder, port=int(sys.argv[2])))"
)


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def results_dir(tmp_path: Path) -> Path:
    """A folder with an empty database, in which the server makes the schema itself."""
    (tmp_path / "mlflow.db").touch()
    return tmp_path


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def start(folder: Path, port: int, elsewhere: Path) -> subprocess.Popen[str]:
    """The command, in a process of its own that runs somewhere else."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )


def test_serves_until_interrupted(results_dir: Path, port: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    process = start(results_dir, port, elsewhere)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"MLflow: http://127.0.0.1:{port} (Ctrl-C ends it)\n"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as answer:
            assert (answer.status, answer.read()) == (200, b"OK")
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "")
        assert process.returncode == 0
    finally:
        process.kill()
    assert is_free(port)
    assert list(elsewhere.iterdir()) == []


def test_runs_are_linked_and_a_server_is_mirrored_into(
    store: Any,
    group: str,
    open_mirror: Callable[..., Mirror],
    record_of: Callable[..., RunRecord],
    play: Any,
    port: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The one test over HTTP: the database's own server is the tracking server of a second table."""
    record, uri = record_of(), f"http://127.0.0.1:{port}"
    with open_mirror() as mirror:
        play(mirror, record)
    process = start(store.folder, port, tmp_path)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        path = f"#/experiments/{store.experiment_id}/runs?viewStateShareKey"
        line = f"  paper: {uri}/{path}=all-runs&workflowType=machine_learning"
        assert process.stdout.readline().rstrip() == line
        for _ in range(2):
            with open_mirror(uri=uri, name=f"{group} by HTTP", tasks=["mrpc"]) as mirror:
                mirror.sync([record])
                assert mirror.link is not None
                assert mirror.link.startswith(f"{uri}/{path}=test-runs-are-linked")
        assert store.view(f"{group} by HTTP") == store.view(group)
        assert serve(uri, tmp_path) == 0
        assert capsys.readouterr().out.splitlines()[1:] == [line]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_busy_port_is_said(results_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(UserError, match=rf"cannot listen on 127.0.0.1, port {port} .*in use.*PORT="):
            serve(default_tracking_uri(results_dir), results_dir, port=port)


@pytest.mark.parametrize("port", [-1, 0, 65536])
def test_port_out_of_range_is_said(results_dir: Path, port: int) -> None:
    with pytest.raises(UserError, match=rf"port {port}: expected a number from 1 to 65535"):
        serve(default_tracking_uri(results_dir), results_dir, port=port)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "x" * 70])
def test_unknown_host_is_said(results_dir: Path, port: int, host: str) -> None:
    with pytest.raises(UserError, match=f"cannot listen on {host}"):
        serve(default_tracking_uri(results_dir), results_dir, host=host, port=port)


def test_missing_database_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"found none: run a benchmark first, such as `make demo`"):
        serve(default_tracking_uri(tmp_path), tmp_path)


def test_tracking_server_has_its_own_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve("http://me:secret@example.org:5000", tmp_path) == 0
    assert capsys.readouterr().out == "The runs are kept by a tracking server: open http://example.org:5000\n"
