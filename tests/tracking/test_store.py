"""Where runs are kept, and how that place comes to be."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.tracking import default_tracking_uri, written_from_here
from fedsim import leases

ROOT = Path(__file__).resolve().parents[2]


def test_uri_is_the_users_or_a_database_in_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://example.org")
    assert default_tracking_uri(tmp_path) == "http://example.org"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    assert default_tracking_uri(tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"


def test_database_lies_in_a_folder_of_any_name(store: Any) -> None:
    assert {" ", "%", "?"} < set(store.folder.name)
    assert (store.folder / "mlflow.db").read_bytes().startswith(b"SQLite format 3")


def test_two_processes_prepare_one_database_quietly(tmp_path: Path) -> None:
    """Nothing is printed: no log lines of migrations, and no complaint about git, which is not on the path."""
    program = (
        "import sys; from pathlib import Path; from benchmarks.tracking import prepare, default_tracking_uri\n"
        "assert 'mlflow' not in sys.modules\n"
        "folder = Path(sys.argv[1]); print(prepare(default_tracking_uri(folder), folder, 'paper'))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "new")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PATH": ""},
            cwd=ROOT,
            text=True,
        )
        for _ in range(2)
    ]
    assert [process.communicate(timeout=100) for process in processes] == [("1\n", ""), ("1\n", "")]
    assert [process.returncode for process in processes] == [0, 0]


# ---- several machines ------------------------------------------------------------------------------------------------


@pytest.fixture
def writer_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a process of another machine leaves beside the database."""
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.5)
    monkeypatch.setattr(leases, "POLL_SECONDS", 0.02)
    claim = tmp_path / f"mlflow.db.writers.{'0' * 12}-7-99-{'0' * 16}"
    claim.write_text(f"{1:>12} process 7 on far-away\n")
    return claim


def test_a_database_that_another_machine_writes_is_refused(tmp_path: Path, writer_elsewhere: Path) -> None:
    stop = threading.Event()

    def renew() -> None:
        count = 1
        while not stop.wait(0.05):
            count += 1
            with writer_elsewhere.open("r+b") as file:
                file.write(f"{count:>12}".encode())

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        with (
            pytest.raises(
                UserError, match=r"is written by process 7 on far-away.*Set MLFLOW_TRACKING_URI to a tracking"
            ),
            written_from_here(default_tracking_uri(tmp_path)),
        ):
            pass
        with written_from_here("http://example.org"):
            pass
    finally:
        stop.set()
        thread.join()
    assert list(tmp_path.iterdir()) == [writer_elsewhere]


def test_a_writer_elsewhere_that_died_is_none(tmp_path: Path, writer_elsewhere: Path) -> None:
    uri = default_tracking_uri(tmp_path)
    with written_from_here(uri), written_from_here(uri):  # two of this machine
        assert not writer_elsewhere.exists()
        assert len(list(tmp_path.iterdir())) == 2
    assert list(tmp_path.iterdir()) == []
