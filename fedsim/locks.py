"""File locks between processes on one machine, or on several machines that share a folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import SoftFileLease, Timeout

from fedsim.files import naming

LEASE_SECONDS = 60.0  # a holder on another machine counts as dead after this time without renewal
POLL_SECONDS = 0.2
UNSIGNED_SECONDS = 10.0  # a process names itself in its lock file within milliseconds


class TakenError(Exception):
    """Another process holds the lock; the message names it. host: its machine, "" if unknown."""

    def __init__(self, holder: str, host: str = "") -> None:
        super().__init__(holder)
        self.host = host


class LostError(Exception):
    """This process renewed its lock too late; another process may hold it now."""


class Lock(SoftFileLease):
    """A lock file that names its holder and is renewed by a thread."""

    def check(self) -> None:
        """Raise LostError unless this process still holds the lock."""
        owner = self.owner
        if self.compromise is not None or owner is None or owner.token != self.token:
            raise LostError(f"{self.lock_file}: the lock expired, and another process may have taken it")


@contextmanager
def held(path: Path, wait: bool = True, on_wait: Callable[[str], None] = lambda _: None) -> Iterator[Lock]:
    """Hold a lock for a `with` block. A lock left by a dead process on this machine is taken over at once.

    A process that is killed before it names itself leaves an empty lock file, which filelock never takes over; it is
    removed after UNSIGNED_SECONDS.

    Args:
        path: The lock file, removed afterwards.
        wait: Whether to wait while another process holds the lock.
        on_wait: Called once before waiting, with the holder's description.

    Raises:
        TakenError: Another process holds the lock, and `wait` is False.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = Lock(path, lease_duration=LEASE_SECONDS, poll_interval=POLL_SECONDS, thread_local=False)
    _discard_unsigned(path)
    try:
        with naming(path):
            lock.acquire(timeout=0)
    except Timeout:
        owner = lock.owner
        host = owner.hostname.partition("?")[0] if owner else ""
        holder = f"process {owner.pid} on {host}" if owner else "another process"
        if not wait:
            raise TakenError(holder, host) from None
        on_wait(holder)
        with naming(path):
            lock.acquire(cancel_check=lambda: _discard_unsigned(path))
    try:
        yield lock
    finally:
        lock.release()


def _discard_unsigned(path: Path) -> bool:
    """Remove an empty lock file older than UNSIGNED_SECONDS, by the file system's clock; False: go on waiting."""
    with suppress(OSError):
        state = path.stat()
        if not state.st_size:
            with tempfile.TemporaryFile(dir=path.parent) as probe:
                if os.fstat(probe.fileno()).st_mtime - state.st_mtime > UNSIGNED_SECONDS:
                    path.unlink()
    return False


def refresh(folder: Path) -> None:
    """Make a network file system revalidate a folder's entries before a look-up."""
    with suppress(OSError):
        os.close(os.open(folder, os.O_RDONLY))
