"""A name is held by one process at a time, and by nobody who is dead, whatever the clocks say."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from contextlib import suppress

import pytest

from fedsim import leases
from fedsim.leases import Lease, LostError, TakenError, claims, held

ELSEWHERE = "0123456789ab"  # another machine
CONTEXT = multiprocessing.get_context("spawn")


@pytest.fixture
def short(monkeypatch):
    """Leases of a moment."""
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.4)
    monkeypatch.setattr(leases, "POLL_SECONDS", 0.02)


def from_elsewhere(path, count=0):
    claim = path.with_name(f"{path.name}.{ELSEWHERE}-7-99-{count:016x}")
    claim.write_text(f"{count:>12} process 7 on far-away\n")
    return claim


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
    processes = [CONTEXT.Process(target=count_up, args=(path, 40)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert path.read_text() == "120"
    assert not claims(tmp_path / "lock")


def test_threads_take_turns(tmp_path):
    path = tmp_path / "count"
    path.write_text("0")
    threads = [threading.Thread(target=count_up, args=(path, 40)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "160"


def test_who_may_not_wait_is_told_who_holds_it(tmp_path):
    with held(tmp_path / "name"), pytest.raises(TakenError, match=f"process {os.getpid()} on "):
        Lease(tmp_path / "name").take(wait=False)
    with held(tmp_path / "name", wait=False), held(tmp_path / "other", wait=False):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_holder_that_is_killed_is_followed_at_once(tmp_path, holder):
    with pytest.raises(TakenError):
        Lease(tmp_path / "name").take(wait=False)
    os.kill(holder.pid, signal.SIGKILL)
    waited = []
    with held(tmp_path / "name", on_wait=waited.append):  # far less than a lease
        assert len(claims(tmp_path / "name")) == 1


def test_a_holder_that_is_stopped_is_waited_for(tmp_path, holder, short):
    os.kill(holder.pid, signal.SIGSTOP)
    time.sleep(0.6)
    with pytest.raises(TakenError, match=f"process {holder.pid} on "):
        Lease(tmp_path / "name").take(wait=False)


def test_another_process_of_the_same_number_is_not_the_holder(tmp_path):
    path = tmp_path / "name"
    claim = path.with_name(f"name.{leases._host()}-{os.getpid()}-1-{0:016x}")
    claim.touch()
    with held(path, wait=False):
        assert not claim.exists()


def test_one_from_elsewhere_holds_while_it_renews(tmp_path, short):
    path, lives = tmp_path / "name", time.monotonic() + 1.5
    claim = from_elsewhere(path)
    count = 0
    while time.monotonic() < lives:
        count += 1
        claim.write_text(f"{count:>12} process 7 on far-away\n")
        with pytest.raises(TakenError, match="process 7 on far-away"):
            Lease(path).take(wait=False)
        time.sleep(0.1)
    start = time.monotonic()
    with held(path):
        assert time.monotonic() - start > 0.2
        assert not claim.exists()


@pytest.mark.parametrize("seconds", [-(10**6), 10**6])
def test_no_two_clocks_are_compared(seconds, tmp_path, short, monkeypatch):
    """The file is from the distant past or future, and this machine's own clock is set meanwhile."""
    path = tmp_path / "name"
    claim = from_elsewhere(path)
    os.utime(claim, (time.time() + seconds,) * 2)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + seconds)
    with pytest.raises(TakenError):
        Lease(path).take(wait=False)
    with held(path):
        assert not claim.exists()


def test_a_claim_without_content_is_one(tmp_path, short):
    path = tmp_path / "name"
    from_elsewhere(path).write_bytes(b"")
    with pytest.raises(TakenError, match="another process"):
        Lease(path).take(wait=False)


def test_who_slept_through_its_lease_stops_and_does_not_come_back(tmp_path, short):
    path = tmp_path / "name"
    first = Lease(path)
    first.take()
    first.check()
    (claim,) = claims(path)
    claim.unlink()  # as who saw it unchanged for so long does
    first.renew()
    assert claims(path) == []
    with pytest.raises(LostError, match="its lease ran out"):
        first.check()
    with held(path, wait=False):
        first.release()
        assert len(claims(path)) == 1


def test_who_was_late_and_was_not_followed_goes_on(tmp_path, short):
    with held(tmp_path / "name") as late:
        time.sleep(0.5)
        late.check()


def test_the_holder_renews(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.02)
    monkeypatch.setattr(leases, "_heart", leases._Heart())
    with held(tmp_path / "name"):
        (claim,) = claims(tmp_path / "name")
        seen = set()
        while len(seen) < 3:
            seen.add(claim.read_bytes())


def test_files_that_a_network_file_system_leaves_are_no_claims(tmp_path):
    (tmp_path / ".nfs0000000000a1b2c300000001").touch()
    (tmp_path / "name.lock").touch()
    with held(tmp_path / "name", wait=False):
        pass


# ---- every order of steps of two that want one name ------------------------------------------------------------------


def steps(order, folder, monkeypatch):
    """Run two takers whose looks and announcements happen in an order; who held, and whether ever both did."""
    turn, places, holding, both = threading.Condition(), list(order), set(), []

    def gate(who):
        with turn:
            turn.wait_for(lambda: not places or places[0] == who, 5)
            if places:
                places.pop(0)
            turn.notify_all()

    def taker(who):
        mine = Lease(folder / "name")
        look = mine._others
        mine._others = lambda: (gate(who), look())[1]
        with suppress(TakenError):
            mine.take(wait=False)
            holding.add(who)
            both.append(len(holding) > 1)
            time.sleep(0.005)
            holding.discard(who)
            mine.release()
        with turn:
            places[:] = [place for place in places if place != who]
            turn.notify_all()

    threads = [threading.Thread(target=taker, args=(who,)) for who in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return both


def test_never_do_both_hold_it(tmp_path, monkeypatch):
    held_once = 0
    for number in range(2**6):
        both = steps([number >> bit & 1 for bit in range(6)], tmp_path, monkeypatch)
        assert not any(both)
        held_once += bool(both)
    assert held_once
