"""What only affects printing and drawing never ends a command."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_without_the_characters_and_a_wrong_backend_lose_nothing(encoding, tmp_path):
    environment = {"PYTHONIOENCODING": encoding, "MPLBACKEND": "nonsense", "COLUMNS": "abc", "TERM": "weird"}
    args = ["--tasks", "mrpc", "--methods", "fedavg", "--set", "training.rounds=1", "--workers", "1", "--no-tracking"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "run", "fedsplitbert-table3", *args, "--results-dir", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=tmp_path,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert b"Table III ? scale demo" in done.stdout or "Table III · scale demo".encode(encoding) in done.stdout
    assert len(list(tmp_path.glob("records/*.json"))) == 1
    assert {path.suffix for path in tmp_path.glob("reports/*/*/plot.*")} == {".png", ".svg", ".pdf"}
