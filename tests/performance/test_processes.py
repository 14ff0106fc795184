"""Processes that measure end with the one that began them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks.performance.processes import fresh_processes

ROOT = Path(__file__).resolve().parent.parent.parent
BUSY = """
import os, time
from benchmarks.performance.processes import fresh_processes
if __name__ == "__main__":
    with fresh_processes(1) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 600).result()
"""


def test_a_process_begins_with_what_sets_it_up(tmp_path: Path) -> None:
    with fresh_processes(1, os.chdir, tmp_path) as pool:
        assert pool.submit(os.getcwd).result() == str(tmp_path)


def test_none_outlives_the_one_that_began_it(tmp_path: Path) -> None:
    script = tmp_path / "busy.py"
    script.write_text(BUSY, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as begun:
        assert begun.stdout
        worker = int(begun.stdout.readline())
        begun.kill()
        try:
            begun.communicate(timeout=20)  # its output ends when the last process is gone that could write to it
        except subprocess.TimeoutExpired:
            os.kill(worker, signal.SIGKILL)
            raise
