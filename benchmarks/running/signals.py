"""Signals: SIGTERM ends a command as Ctrl-C does, and a closed terminal does not end a computation."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class Terminated(KeyboardInterrupt):
    """A signal that ends the program, such as a scheduler's SIGTERM at the end of a job's time."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _end(number: int, _: object) -> NoReturn:
    raise Terminated(number)


@contextmanager
def interrupted_by(*names: str, handler: Any = _end) -> Iterator[None]:
    """Raise Terminated in the block at these signals, or call another handler, where the system has them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, previous in zip(numbers, before, strict=True):
            signal.signal(number, previous)


@contextmanager
def surviving_logout() -> Iterator[None]:
    """Keep this process and those it starts running when the terminal closes; SIGTERM interrupts the block."""
    with interrupted_by("SIGHUP", handler=signal.SIG_IGN), interrupted_by("SIGTERM"):
        yield
