"""Stdout and stderr may go away while a command runs: it finishes, writes its files and says so by its status."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import pty
import shlex
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.cli.output import failed, lasting_output, without_terminal
from benchmarks.record import read_records

ROOT = Path(__file__).resolve().parents[2]
TABLE = "fedsplitbert-table3"
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")


def command(results: Path) -> list[str]:
    words = ["--methods", "local-majority", "--tasks", "wnli", "--workers", "1", "--device", "cpu"]
    return [sys.executable, "-m", "benchmarks", "run", TABLE, *words, "--no-tracking", "--results-dir", str(results)]


def assert_whole(results: Path) -> None:
    assert {record.cell.task for record in read_records(results / "records")} == {"wnli"}
    written = results / "reports" / TABLE / "demo"
    assert {"table.md", "table.csv", "table.tex"} <= {path.name for path in written.iterdir()}
    assert "Majority-class baseline, by client" in (written / "table.md").read_text(encoding="utf-8")


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


@needs_full
def test_a_full_disk_behind_stderr_and_no_stdout(tmp_path: Path) -> None:
    """What progress says is lost: nobody can be told but by the status."""
    line = " ".join(map(shlex.quote, command(tmp_path)))
    ended = subprocess.run(f"{line} >&- 2>{FULL}", shell=True, cwd=ROOT, timeout=240, check=False)
    assert ended.returncode == 2
    assert_whole(tmp_path)


def test_a_terminal_that_goes_away(tmp_path: Path) -> None:
    """As when its window is closed: the kernel sends SIGHUP to all in it, and further writing is refused."""
    ours, theirs = pty.openpty()

    def in_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        command(tmp_path),
        cwd=ROOT,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=in_terminal,
    ) as process:
        os.close(theirs)
        assert os.read(ours, 1)  # the display has begun
        os.close(ours)
        assert process.wait(timeout=240) == 2
    assert_whole(tmp_path)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
def test_only_what_computes_goes_on_without_a_terminal() -> None:
    before = signal.getsignal(signal.SIGHUP)
    with without_terminal():
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        started = subprocess.run(
            [sys.executable, "-c", "import signal; print(int(signal.getsignal(signal.SIGHUP)))"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(started.stdout) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) == before


@needs_full
def test_looking_says_so_too_and_a_reader_that_is_gone_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    words = [sys.executable, "-m", "benchmarks", "list", "--ids"]
    with FULL.open("w") as full:
        ended = subprocess.run(words, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(words, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert main(["list", "--ids"]) == 0
    assert TABLE in capfd.readouterr().out


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_streams_that_were_never_open(closed: str) -> None:
    ended = subprocess.run(
        f'"{sys.executable}" -m benchmarks list --ids {closed}', shell=True, cwd=ROOT, capture_output=True, check=False
    )
    assert ended.returncode == 0


def test_after_an_error_the_rest_goes_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with contextlib.redirect_stdout(Full()), lasting_output() as (out, _):
        print("a line")
        sys.stdout.writelines(["more", "\n"])
        assert failed(out)
        assert out.encoding is None  # what is not written is asked of the stream itself
    with lasting_output() as (out, _):
        print("a line")
        assert not failed(out)
    assert capfd.readouterr().out == "a line\n"
