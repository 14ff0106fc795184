"""Calls in processes beside this one: the same files as at once, errors raised here, nothing left behind."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from benchmarks.cli import beside
from benchmarks.cli.beside import Beside
from tests.processes import PATIENCE_SECONDS


def write(path: Path, text: str) -> None:
    path.write_text(f"{text} {os.getpid()}")


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_every_call_is_done_when_the_context_is_left(tmp_path: Path, processes: int) -> None:
    paths = [tmp_path / str(number) for number in range(7)]
    with Beside(write, processes) as call:
        for path in paths:
            call(path, path.name)
            assert len(multiprocessing.active_children()) <= processes
    assert [path.read_text().split()[0] for path in paths] == [path.name for path in paths]
    own = {path.read_text().split()[1] == str(os.getpid()) for path in paths}
    assert own == {processes == 1 or not beside.CAN_FORK}
    assert multiprocessing.active_children() == []


def test_where_none_are_forked_calls_are_done_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "CAN_FORK", False)
    with Beside(write, 8) as call:
        call(tmp_path / "a", "text")
        assert (tmp_path / "a").read_text() == f"text {os.getpid()}"


def test_what_fails_beside_is_raised_here(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FileNotFoundError, match="missing"), Beside(write, 2) as call:
        call(tmp_path / "missing" / "a", "text")
    assert capfd.readouterr().err == ""


def interrupted() -> None:
    with Beside(time.sleep, 2) as call:
        call(PATIENCE_SECONDS)
        raise KeyboardInterrupt


@pytest.mark.skipif(not beside.CAN_FORK, reason="processes are forked on Linux alone")
def test_leaving_by_an_error_ends_what_runs() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert multiprocessing.active_children() == []
