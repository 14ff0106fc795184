"""A tracking server is waited for so long in all, and no longer: one that is down, slow or never ends costs no run.

What a server is told is told in a thread of its own. A time-out of a connection is not enough: it ends no wait for an
answer that comes a byte a second, that never ends, or that asks to try again in an hour.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

SECONDS = 10.0  # of all that calls take beyond their own time
CALL_SECONDS = 1.0  # that each call may take
BYTES_A_SECOND = 2**20  # of a file that is sent: its call may take longer
POLL_SECONDS = 0.25


class SlowError(Exception):
    """The server was waited for long enough."""


class _GivenUp(BaseException):
    """Ends the thread, whatever it is at; no handler of a library takes it for an error of its own."""


class Patience:
    """What is left of the time in which a server is waited for."""

    def __init__(self) -> None:
        self.renew()
        self.is_spent = False
        self._due: float | None = None  # by when the call that goes on should have ended

    def renew(self) -> None:
        """Have all of it again."""
        self._left = SECONDS

    def watched(self, client: Any) -> Any:
        """A client whose calls are counted."""
        return _Watched(client, self)

    def begin(self, seconds: float) -> None:
        """A call begins, which may take so long."""
        if self.is_spent:
            raise _GivenUp
        self._due = time.monotonic() + seconds

    def end(self) -> None:
        """The call has ended."""
        self._left -= self._late()
        self._due = None

    def check(self) -> None:
        """SlowError where nothing is left."""
        if self._left <= self._late():
            self.is_spent = True
            raise SlowError(f"it kept this waiting for {SECONDS:g} seconds in all")

    def _late(self) -> float:
        due = self._due
        return 0.0 if due is None else max(0.0, time.monotonic() - due)


class _Watched:
    def __init__(self, client: Any, patience: Patience) -> None:
        self._client, self._patience = client, patience

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._client, name)

        def call(*values: Any, **named: Any) -> Any:
            self._patience.begin(CALL_SECONDS + _size(values) / BYTES_A_SECOND)
            try:
                return function(*values, **named)
            finally:
                self._patience.end()

        return call


def _size(values: tuple[Any, ...]) -> int:
    """Bytes of the file that a call sends, if it does."""
    path = Path(values[1]) if len(values) == 2 and isinstance(values[1], str) else None
    try:
        return path.stat().st_size if path is not None and path.is_absolute() else 0
    except (OSError, ValueError):
        return 0


class Courier:
    """Does one thing after another in a thread of its own, as long as there is patience; the thread ends with it."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._given: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=_deliver, args=(self._given,), name="tracking", daemon=True)
        self._thread.start()

    def __call__(self, action: Callable[[], None]) -> None:
        """Do something and wait for it: raises what it raises, and SlowError where it takes too long."""
        ended = threading.Event()
        errors: list[Exception] = []

        def attempt() -> None:
            try:
                action()
            except Exception as error:  # noqa: BLE001 - raised below, where it is waited for
                errors.append(error)
            finally:
                ended.set()

        self._given.put(attempt)
        while not ended.wait(POLL_SECONDS):
            try:
                self._patience.check()
            except SlowError:
                self._give_up()
                raise
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Let the thread end when it has nothing to do."""
        self._given.put(None)

    def _give_up(self) -> None:
        """End the thread at its next step: what comes of an endless answer would else be kept for ever."""
        self._given.put(None)
        identity = ctypes.c_ulong(self._thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(_GivenUp))


def _deliver(given: SimpleQueue[Callable[[], None] | None]) -> None:
    try:
        while (action := given.get()) is not None:
            action()
    except _GivenUp:
        pass
