"""Where runs are kept, and how that place comes to be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.tracking import default_tracking_uri, written_from_here
from fedsim.locks import LEASE_SECONDS

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


def test_a_database_that_another_machine_writes_is_refused(tmp_path: Path) -> None:
    uri = default_tracking_uri(tmp_path)
    with written_from_here(uri), written_from_here(uri):  # two of this machine
        assert [path.name for path in tmp_path.iterdir()] == ["mlflow.db.writer"]
    marker = tmp_path / "mlflow.db.writer"
    marker.write_text(f"filelock/2\npid=7\nhost=far-away\nmode=lease\ntoken={'0' * 32}\nduration={LEASE_SECONDS}\n")
    with (
        pytest.raises(UserError, match=r"is written by process 7 on far-away.*Set MLFLOW_TRACKING_URI to a tracking"),
        written_from_here(uri),
    ):
        pass
    with written_from_here("http://example.org"):
        pass
    assert list(tmp_path.iterdir()) == [marker]
