"""Stdout and stderr may go away while a command runs: it finishes, writes its files and says so by its status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.results import read_results
from tests.conftest import ROOT

TABLE = "fedsplitbert-table3"
FULL = Path("/dev/full")


def started(results: Path, stdout: object, stderr: int) -> subprocess.Popen[str]:
    words = ["--methods", "local-majority", "--tasks", "wnli", "--workers", "1", "--device", "cpu", "--no-tracking"]
    command = [sys.executable, "-u", "-m", "benchmarks", "run", TABLE, *words, "--results-dir", str(results)]
    return subprocess.Popen(command, cwd=ROOT, stdout=stdout, stderr=stderr, text=True)  # type: ignore[call-overload]


def assert_whole(results: Path) -> None:
    assert {record.cell.task for record in read_results(results / "records")} == {"wnli"}
    written = results / "reports" / TABLE / "demo"
    assert {"table.md", "table.csv", "table.tex"} <= {path.name for path in written.iterdir()}
    assert "Majority-class baseline, by client" in (written / "table.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_reader_that_goes_away_after_a_line(tmp_path: Path) -> None:
    """As `2>&1 | head -1` does: every further write is refused."""
    with started(tmp_path, subprocess.PIPE, subprocess.STDOUT) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=240) == 0
    assert_whole(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout(tmp_path: Path) -> None:
    with FULL.open("w") as full, started(tmp_path, full, subprocess.PIPE) as process:
        _, stderr = process.communicate(timeout=240)
    assert process.returncode == 2
    assert "Traceback" not in stderr
    assert stderr.splitlines()[-1].startswith("error: stdout cannot be written ([Errno 28] No space left on device)")
    assert_whole(tmp_path)
