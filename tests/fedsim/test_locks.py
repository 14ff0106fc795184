"""One process holds a lock at a time, and a process that has ended holds none."""

from __future__ import annotations

import multiprocessing
import os
import time

import pytest

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


def test_a_lock_that_another_machine_took_over_is_lost(tmp_path):
    path = tmp_path / "name"
    with held(path) as lock:
        lock.check()
        path.unlink()  # as another machine does that has not seen it renewed
        with pytest.raises(LostError, match="the lock expired"):
            lock.check()
        with held(path, wait=False), pytest.raises(LostError):
            lock.check()
