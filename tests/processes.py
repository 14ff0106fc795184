"""Commands as a shell starts them, each in its own process group, which tests end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conftest import ROOT

PATIENCE_SECONDS = 300  # on a machine that is busy with other work


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS} seconds in vain"
        time.sleep(0.01)


@contextmanager
def command(*arguments: str, stdout: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[str]]:
    """`python -m benchmarks` with these arguments, which writes each line at once."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "benchmarks", *arguments],
        cwd=ROOT,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def running(group: int) -> int:
    """The number of running processes in a group, without unreaped ones."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, process_group = path.read_text().rpartition(")")[2].split()[:3]
            count += int(process_group) == group and state not in "ZX"
    return count
