"""Stdout and stderr may go away while a command runs: it finishes, writes its files and says so by its status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.results import read_results

ROOT = Path(__file__).resolve().parents[2]
TABLE = "fedsplitbert-table3"
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")


def command(results: Path) -> list[str]:
    words = ["--methods", "local-majority", "--tasks", "wnli", "--workers", "1", "--device", "cpu"]
    return [sys.executable, "-m", "benchmarks", "run", TABLE, *words, "--no-tracking", "--results-dir", str(results)]


def assert_whole(results: Path) -> None:
    assert {record.cell.task for record in read_results(results / "records")} == {"wnli"}
    written = results / "reports" / TABLE / "demo"
    assert {"table.md", "table.csv", "table.tex"} <= {path.name for path in written.iterdir()}
    assert "Majority-class baseline, by client" in (written / "table.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_reader_of_stdout_and_stderr_that_goes_away_after_a_line(tmp_path: Path) -> None:
    """As `2>&1 | head -1` does: every further write is refused."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command(tmp_path), cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=240) == 0
    assert_whole(tmp_path)


@pytest.mark.slow
@needs_full
def test_a_full_disk_behind_stdout(tmp_path: Path) -> None:
    with FULL.open("w") as full:
        ended = subprocess.run(
            command(tmp_path), cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=240, check=False
        )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    *_, last = ended.stderr.splitlines()
    assert last.startswith("error: stdout cannot be written ([Errno 28] No space left on device); files are written")
    assert_whole(tmp_path)
