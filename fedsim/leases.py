"""Leases: one process at a time holds a name in a folder, on one machine or on many that share the folder.

Who wants a name announces itself by a file of its own beside it, then looks: where nobody else has one, the name is
held, otherwise the file goes again. Of two that announce themselves at once, at least one sees the other, so never do
both hold it; no lock of the file system is asked for, which network file systems may lack. A holder's thread writes
into its file every few seconds. Whoever sees it unchanged for a minute by a clock of its own (those of two machines are
never compared) takes the holder for dead, and removes the file; on one machine it asks whether the process still runs,
and does not wait. A holder that slept through its lease finds its file gone, and stops.
"""

from __future__ import annotations

import hashlib
import os
import platform
import random
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

RENEW_SECONDS = 10.0
LEASE_SECONDS = 60.0
POLL_SECONDS = 1.0  # at most, between two looks of who waits
ATTEMPTS = 8  # of who does not wait, against others that try in the same moment
OWNER = re.compile(r"(?P<host>[0-9a-f]{12})-(?P<pid>\d+)-(?P<start>\d+)-(?P<token>[0-9a-f]{16})")


class TakenError(Exception):
    """Another process holds the name; the message says which."""


class LostError(Exception):
    """This process slept, or could not write, for so long that the name may be another's by now."""


class Lease:
    """The claim of one holder on a name. path: the name, in a folder that is there; the files beside it are claims."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.token = ""
        self._claim = path
        self._count = 0
        self._renewed = 0.0

    def take(self, wait: bool = True, on_wait: Callable[[str], None] = lambda _: None) -> None:
        """Hold the name; on_wait is told once who else does. TakenError where someone does and this one cannot wait."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        pause, looks, said = POLL_SECONDS / 100, 0, False
        while True:
            others = self._others()
            contended = not others
            if contended and not (others := self._announced()):
                break
            looks += 1
            if not wait and (not contended or looks == ATTEMPTS):
                raise TakenError(told(others[0]))
            if not contended and not said:
                on_wait(told(others[0]))
                said = True
            time.sleep(random.uniform(0.5, 1) * pause)
            pause = min(2 * pause, POLL_SECONDS)
        _heart.add(self)

    def check(self) -> None:
        """Go on only as the holder: LostError where the lease has run out, and another may hold the name."""
        if _now() - self._renewed > LEASE_SECONDS / 2:
            self.renew()
            time.sleep(POLL_SECONDS)  # whoever was about to remove the claim has done so
        try:
            self._claim.open("rb").close()  # opened, not looked up: network file systems then ask the server
        except FileNotFoundError:
            raise LostError(f"{self.path.name}: its lease ran out, and another process may have taken it") from None

    def renew(self) -> None:
        """Say that the holder lives; never makes the file anew, so one that was removed stays so."""
        with suppress(OSError), self._claim.open("r+b") as file:
            self._count += 1
            file.write(f"{self._count:>12} process {os.getpid()} on {platform.node()}\n".encode())
            self._renewed = _now()

    def release(self) -> None:
        """Let others have the name."""
        _heart.remove(self)
        with suppress(OSError):
            self._claim.unlink(missing_ok=True)

    def _announced(self) -> list[Path]:
        """Announce this one, and look again: the others, before whom it steps back, or none."""
        others: list[Path] | None = None
        try:
            self._announce()
            others = self._others()
        finally:
            if others != []:  # also where Ctrl-C came between
                self.release()
        return others

    def _announce(self) -> None:
        self.token = secrets.token_hex(8)
        owner = f"{_host()}-{os.getpid()}-{_started(os.getpid())}-{self.token}"
        self._claim = self.path.with_name(f"{self.path.name}.{owner}")
        _announced.add(self.token)
        self._claim.touch(exist_ok=False)
        self._renewed = _now()
        self.renew()

    def _others(self) -> list[Path]:
        """Claims of others that may be alive; those of the dead are removed."""
        found = []
        for claim in claims(self.path):
            if claim == self._claim:
                continue
            if not _is_dead(claim):
                found.append(claim)
                continue
            with suppress(OSError):
                claim.unlink(missing_ok=True)
            _seen.pop(claim, None)
        return found


@contextmanager
def held(path: Path, wait: bool = True, on_wait: Callable[[str], None] = lambda _: None) -> Iterator[Lease]:
    """Hold a name for a block; see `Lease.take`."""
    lease = Lease(path)
    lease.take(wait, on_wait)
    try:
        yield lease
    finally:
        lease.release()


@contextmanager
def alone_on_this_machine(path: Path) -> Iterator[None]:
    """Be at a name for a block beside others of this machine; TakenError where one of another machine is there.

    Whether that one is alive is seen within RENEW_SECONDS, and that it is not, after LEASE_SECONDS.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lease = Lease(path)
    lease._announce()
    _heart.add(lease)
    try:
        first: dict[Path, bytes] = {}
        while others := [claim for claim in lease._others() if _owner(claim)["host"] != _host()]:
            for claim in others:
                with suppress(OSError):
                    if first.setdefault(claim, content := claim.read_bytes()) != content:
                        raise TakenError(told(claim))
            time.sleep(POLL_SECONDS)
        yield
    finally:
        lease.release()


def claims(path: Path) -> list[Path]:
    """The claims on a name, of the living and of the dead, in the order of their owners."""
    return [claim for claim in _all_claims(path.parent) if claim.name.rpartition(".")[0] == path.name]


def clean(folder: Path) -> None:
    """Remove claims that processes of this machine left when they were killed, whatever they were on."""
    for claim in _all_claims(folder):
        if _owner(claim)["host"] == _host() and _is_dead(claim):
            claim.unlink(missing_ok=True)


def _all_claims(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    return [folder / name for name in sorted(names) if OWNER.fullmatch(name.rpartition(".")[2])]


def told(claim: Path) -> str:
    """Who made a claim, in words."""
    words = ""
    with suppress(OSError):
        words = claim.read_text(encoding="utf-8", errors="replace")[13:].strip()
    return words or "another process"


def refresh(folder: Path) -> None:
    """Have a network file system ask its server what is in a folder, before a name there is looked up."""
    with suppress(OSError):
        os.close(os.open(folder, os.O_RDONLY))


_seen: dict[Path, tuple[bytes, float]] = {}  # claims from elsewhere: what they held, and since when
_announced: set[str] = set()  # tokens of this process


def _owner(claim: Path) -> dict[str, str]:
    found = OWNER.search(claim.name)
    assert found is not None
    return found.groupdict()


def _is_dead(claim: Path) -> bool:
    owner = _owner(claim)
    if owner["host"] == _host():
        pid, start = int(owner["pid"]), int(owner["start"])
        if (pid, start) == (os.getpid(), _started(os.getpid())):
            return owner["token"] not in _announced  # let go, but the file could not be removed
        return _started(pid) != start
    content = b""
    with suppress(OSError):
        content = claim.read_bytes()
    known, since = _seen.setdefault(claim, (content, time.monotonic()))
    if content != known:
        _seen[claim] = content, time.monotonic()
        return False
    return time.monotonic() - since > LEASE_SECONDS


@cache
def _host() -> str:
    """This machine since it was started, and who sees whose processes on it: containers do not see each other's."""
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _started(pid: int) -> int:
    """When a process of this machine was started, in the system's ticks, or 0 where it does not say; -1: it has ended.

    A number that the system has given to another process since is so told apart.
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return -1 if state in "ZX" else int(fields[18])
    except FileNotFoundError:
        return -1 if Path("/proc/self/stat").exists() else _signalled(pid)
    except OSError:
        return -1  # it ended while it was looked at


def _signalled(pid: int) -> int:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return -1
    except PermissionError:
        pass
    return 0


def _now() -> float:
    """Seconds that go on while the machine sleeps, where it has such a clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class _Heart:
    """The thread that renews all leases of this process."""

    def __init__(self) -> None:
        self._leases: set[Lease] = set()
        self._guard = threading.Lock()
        self._never = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, lease: Lease) -> None:
        with self._guard:
            self._leases.add(lease)
            if self._thread is None or not self._thread.is_alive():  # a forked process has none
                self._thread = threading.Thread(target=self._beat, name="leases", daemon=True)
                self._thread.start()

    def remove(self, lease: Lease) -> None:
        with self._guard:
            self._leases.discard(lease)
            _announced.discard(lease.token)

    def _beat(self) -> None:
        while True:
            self._never.wait(RENEW_SECONDS)
            with self._guard:
                leases = list(self._leases)
            for lease in leases:
                lease.renew()


_heart = _Heart()
