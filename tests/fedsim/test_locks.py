"""One process holds a lock at a time, and a process that has ended holds none."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time

import pytest

from fedsim import locks
from fedsim.locks import LostError, TakenError, held

CONTEXT = multiprocessing.get_context("spawn")


def count_up(path, times):
    for _ in range(times):
        with held(path.with_name("lock")):
            path.write_text(str(int(path.read_text()) + 1))


def hold_for_ever(path, ready):
    with held(path):
        ready.set()
        time.sleep(600)


@pytest.fixture
def holder(tmp_path):
    """A process that holds tmp_path/name."""
    ready = CONTEXT.Event()
    process = CONTEXT.Process(target=hold_for_ever, args=(tmp_path / "name", ready))
    process.start()
    assert ready.wait(60)
    yield process
    process.kill()
    process.join()


def test_processes_take_turns(tmp_path):
    path = tmp_path / "count"
    path.write_text("0")
    processes = [CONTEXT.Process(target=count_up, args=(path, 10)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert path.read_text() == "30"
    assert list(tmp_path.iterdir()) == [path]


def test_the_holder_is_named_and_its_end_frees_the_lock_at_once(tmp_path, holder):
    with pytest.raises(TakenError, match=f"^process {holder.pid} on ") as taken, held(tmp_path / "name", wait=False):
        pass
    assert taken.value.host == os.uname().nodename
    holder.kill()
    holder.join()
    started = time.monotonic()
    with held(tmp_path / "name"):
        assert time.monotonic() - started < 5


def test_who_waits_is_told_once_for_whom(tmp_path):
    path, told, taken = tmp_path / "name", [], threading.Event()

    def wait():
        with held(path, on_wait=told.append):
            taken.set()

    with held(path):
        thread = threading.Thread(target=wait)
        thread.start()
        while not told:
            time.sleep(0.01)
        assert not taken.wait(3 * locks.POLL_SECONDS)
    thread.join()
    assert taken.is_set()
    assert told == [f"process {os.getpid()} on {os.uname().nodename}"]


def test_a_lock_that_another_machine_took_over_is_lost(tmp_path):
    path = tmp_path / "name"
    with held(path) as lock:
        lock.check()
        path.unlink()  # as another machine does that has not seen it renewed
        with pytest.raises(LostError, match="the lock expired"):
            lock.check()
        with held(path, wait=False), pytest.raises(LostError):
            lock.check()


def test_a_lock_of_another_machine_that_is_not_renewed_is_taken_over(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "LEASE_SECONDS", 0.5)
    path = tmp_path / "name"
    marker = f"filelock/2\npid=7\nhost=far-away\nmode=lease\ntoken={'0' * 32}\nduration=0.5\n"
    path.write_text(marker)
    with pytest.raises(TakenError, match=r"^process 7 on far-away$"), held(path, wait=False):
        pass
    with held(path):
        assert path.read_text() != marker
