"""Where MLflow keeps runs, and its web interface as a command."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Engine, event

from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.tracking import store as stores
from benchmarks.tracking.mirror import Mirror
from benchmarks.tracking.store import RUNNING, default_tracking_uri, serve
from benchmarks.tracking.table import Table
from tests.conftest import ROOT
from tests.processes import PATIENCE_SECONDS, command
from tests.tracking.conftest import Store, record_of

SERVER = """import socket, sys
listening = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])))
while True:
    listening.accept()
"""
PROGRAM = (
    "import sys; from pathlib import Path; from benchmarks.tracking.store import default_tracking_uri\n"
    "from benchmarks.tracking.mirror import Mirror; from benchmarks.tracking.table import Table\n"
    "folder = Path(sys.argv[1])\n"
    "print(Mirror(default_tracking_uri(folder), folder, 'paper', Table('t', 't'), print)._experiment_id)"
)


def test_the_uri_is_the_users_or_a_database_in_the_results(store, monkeypatch):
    assert {" ", "%", "?"} < set(store.folder.name)
    with store.mirror():
        assert (store.folder / "mlflow.db").read_bytes().startswith(b"SQLite format 3")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://example.org")
    assert default_tracking_uri(store.folder) == "http://example.org"


def test_a_moved_results_folder_keeps_its_artifacts(store, tmp_path):
    store.sync(record_of())
    moved = tmp_path / "moved, too"
    shutil.copytree(store.folder, moved)  # the database of all tests stays where it is
    here = Store(moved, store.name)
    before = here.runs()[0]
    assert store.folder.resolve().as_uri() in before.info.artifact_uri
    here.sync(record_of(), record_of(seed=1))
    assert len(here.runs()) == 2
    for run in here.runs():
        assert run.info.artifact_uri.startswith(moved.resolve().as_uri())
    kept = [entry.path for entry in here.client.list_artifacts(before.info.run_id)]
    shutil.rmtree(moved / "mlartifacts")
    assert kept
    assert not here.client.list_artifacts(before.info.run_id)  # they were read from the moved folder
    assert [entry.path for entry in store.client.list_artifacts(before.info.run_id)] == kept


@pytest.mark.slow
def test_two_processes_create_one_database_quietly(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "new")]
    environment = {**os.environ, "PATH": ""}  # nothing complains about git, which is missing
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [subprocess.Popen(command, env=environment, cwd=ROOT, text=True, **pipes) for _ in range(2)]
    assert [process.communicate(timeout=PATIENCE_SECONDS) for process in processes] == [("1\n", ""), ("1\n", "")]


def test_an_interrupted_creation_leaves_no_database_and_the_next_command_creates_it(tmp_path):
    def interrupt(connection, cursor, statement, *_):
        if "CREATE TABLE jobs" in statement:
            raise KeyboardInterrupt

    event.listen(Engine, "after_cursor_execute", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            Store(tmp_path, "paper").mirror()
    finally:
        event.remove(Engine, "after_cursor_execute", interrupt)
    assert not (tmp_path / "mlflow.db").exists()
    (tmp_path / ".mlflow.db.killed").mkdir()  # of a killed process
    store = Store(tmp_path, "paper")
    store.sync(record_of())
    assert (len(store.runs()), store.warnings) == (1, [])


def test_a_damaged_database_is_named_with_the_remedy(tmp_path, capsys):
    database = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE jobs (id INTEGER)")  # left by an interrupted creation
    warnings: list[str] = []
    Mirror(default_tracking_uri(tmp_path), tmp_path, "paper", Table("t", "t"), warnings.append)
    assert main(["doctor", "--results-dir", str(tmp_path)]) == 0
    problem = f"{database} cannot be opened; if it is damaged, move it away, and a new database is created: "
    assert f"no   tracking: {problem}(sqlite3.OperationalError) table jobs already exists\n" in capsys.readouterr().out
    (warning,) = warnings
    assert problem in warning
    assert f"`python -m benchmarks import {tmp_path / 'records'}` adds them to MLflow later" in warning


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_an_interface_that_cannot_be_served_is_refused(tmp_path, port, capsys):
    uri = default_tracking_uri(tmp_path)
    with pytest.raises(UserError, match=r"found none: run a benchmark first, such as `make demo`"):
        serve(uri, tmp_path)
    (tmp_path / "mlflow.db").touch()
    with pytest.raises(UserError, match=r"port 65536 \(.* must be 0-65535"):
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


def test_an_interface_without_a_file_for_its_address_runs_and_ends_with_its_command(tmp_path, port, monkeypatch):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "mlflow").mkdir()
    (tmp_path / "mlflow" / "__init__.py").touch()
    (tmp_path / "mlflow" / "__main__.py").write_text(SERVER, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(stores, "_show", stop)  # a Ctrl-C once the interface is shown
    (tmp_path / "mlflow.db").touch()
    (tmp_path / RUNNING).mkdir()  # as in a folder that cannot be written, it is neither written nor removed
    assert serve(default_tracking_uri(tmp_path), tmp_path, port=port) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@pytest.mark.slow
def test_the_interface_serves_runs_and_is_a_tracking_server_itself(port, tmp_path):
    store, record, uri = Store(tmp_path, "paper"), record_of(), f"http://127.0.0.1:{port}"
    store.sync(record)
    arguments = ["ui", "--port", str(port), "--results-dir", str(store.folder)]
    with command(*arguments, stdout=subprocess.PIPE) as process:
        page = f"  {uri}/#/experiments/{store.experiment.experiment_id}/runs?viewStateShareKey=all-runs"
        expected = f"MLflow (Ctrl-C ends it): {uri}\n", "paper:\n", f"{page}&workflowType=machine_learning\n"
        assert tuple(process.stdout.readline() for _ in range(3)) == expected
        with store.mirror(record, id="other", uri=uri) as mirror:
            mirror.sync([record])
            assert mirror.links[0].startswith(f"{uri}/#/experiments/")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    first, second = store.runs()
    assert store.points(first) == store.points(second)
    assert (process.returncode, errors) == (0, "")
    assert not (store.folder / RUNNING).exists()
