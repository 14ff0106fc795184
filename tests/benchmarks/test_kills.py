"""A cell that is killed at any moment resumes after its last round and ends with the same bits."""

import errno
import json
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cli import look
from benchmarks.cli.main import main
from benchmarks.executors import run_cells
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellStarted
from benchmarks.running.run_options import RunOptions
from fedsim.checkpoint import Checkpoint
from fedsim.engine import Run
from tests.benchmarks.conftest import cells_of, outcomes, run_arguments
from tests.processes import PATIENCE_SECONDS, command, running, wait_for

ROUNDS = 4
SHORT = (f"training.rounds={ROUNDS}", "training.local_epochs=1")
METHODS = ("fedadam", "fedsplitbert-qat")  # the server's moments; clients' own tensors and a codec
Outcomes = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def cells() -> list[RunConfig]:
    return cells_of(METHODS, *SHORT)


@pytest.fixture(scope="module")
def uninterrupted(cells: list[RunConfig], tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    settings = RunOptions(results_dir=tmp_path_factory.mktemp("uninterrupted"), device="cpu")
    assert run_cells(cells, settings, lambda _: None) == 0
    return outcomes(settings)


def rounds_saved(settings: RunOptions) -> int:
    """The rounds that survive a kill."""
    saved = ROUNDS * len(list(settings.records_dir.glob("*.json")))
    for manifest in settings.results_dir.glob("checkpoints/*/state.json"):
        with suppress(FileNotFoundError):  # removed in this moment, once its record was there
            saved += json.loads(manifest.read_text().partition("\n")[2])["round"]  # below its hash
    return saved


@pytest.mark.slow
def test_sigkill_at_any_moment(cells, uninterrupted, settings, events):
    saved, delays = 0, random.Random(0)
    for target in (1, 2, None, ROUNDS + 1, None):
        with command(*run_arguments(settings.results_dir, ",".join(METHODS), *SHORT)) as process:
            if target is None:
                time.sleep(delays.uniform(0, 8))
            else:
                wait_for(lambda: rounds_saved(settings) >= target or process.poll() is not None)  # noqa: B023
            process.kill()
            assert process.wait() in (-signal.SIGKILL, 0)
        assert rounds_saved(settings) >= max(saved, target or 0)
        saved = rounds_saved(settings)
    assert run_cells(cells, settings, events) == 0
    assert sum(len(event.finished) for event in events.of(CellStarted)) == saved % ROUNDS  # of the unfinished cell
    assert outcomes(settings) == uninterrupted
    assert not list(settings.results_dir.glob("checkpoints/*"))


def test_ctrl_c_says_that_it_can_go_on_and_does(cells, uninterrupted, settings, events, monkeypatch, capsys):
    def save_and_interrupt(checkpoint: Checkpoint, run: Run) -> None:
        save(checkpoint, run)
        if run.state.round == 2:
            signal.raise_signal(signal.SIGINT)

    save = Checkpoint.save
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_interrupt)
        assert main(run_arguments(settings.results_dir, ",".join(METHODS), *SHORT)) == 130
    stderr = capsys.readouterr().err
    assert stderr.endswith("interrupted: finished rounds are saved; the same command continues from there\n")
    assert "Traceback" not in stderr
    assert run_cells(cells, settings, events) == 0
    assert [len(event.finished) for event in events.of(CellStarted)] == [2, 0]
    assert outcomes(settings) == uninterrupted


def endless_command(settings: RunOptions) -> list[str]:
    """Two workers with more rounds than any test waits for."""
    return [*run_arguments(settings.results_dir, ",".join(METHODS), "training.rounds=10000"), "--workers", "2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "send"),
    [(signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill)],
    ids=["Ctrl-C to the group, as a terminal", "a scheduler's SIGTERM to the command alone"],
)
def test_a_signal_ends_a_command_and_its_workers_with_one_line(send, number, settings):
    with command(*endless_command(settings)) as process:
        wait_for(lambda: len(list(settings.results_dir.glob("locks/*"))) == 2 or process.poll() is not None)
        send(process.pid, number)
        _, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 128 + number
    assert "interrupted: finished rounds are saved; the same command continues from there" in stderr
    assert "Traceback" not in stderr


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_sigkill_of_a_command_ends_its_workers_too(settings):
    """Otherwise they would hold memory and locks for ever."""
    with command(*endless_command(settings)) as process:
        wait_for(lambda: running(process.pid) >= 5 or process.poll() is not None)  # itself, two workers, two helpers
        process.kill()
        process.wait()
        wait_for(lambda: running(process.pid) == 0)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_full_disk_is_one_message(number, monkeypatch, capsys, tmp_path):
    def full(args: object) -> int:
        raise OSError(number, "No room", str(tmp_path / "x.json"))

    monkeypatch.setattr(look, "list_command", full)
    assert main(["list"]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'x.json'} cannot be used (No room); free space, correct the permissions, or name another "
        "path\n"
    )


def test_a_full_disk_at_a_lock_is_one_message(monkeypatch, capsys, tmp_path):
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")  # names no file, as for an open one

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        assert main(run_arguments(tmp_path, "local-majority")) == 2
    stderr = capsys.readouterr().err
    assert f"error: {tmp_path / 'locks'}/" in stderr
    assert stderr.endswith(" cannot be used (No space left on device); finished rounds are saved\n")
    assert "Traceback" not in stderr
