"""Signals: SIGTERM and a closed terminal (SIGHUP) end a command like Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


class Terminated(KeyboardInterrupt):
    """A signal that ends the program, such as a scheduler's SIGTERM at the end of a job's time."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _end(number: int, _: object) -> NoReturn:
    raise Terminated(number)


@contextmanager
def interrupted_by(*names: str) -> Iterator[None]:
    """Raise Terminated in the block at these signals, unless the system lacks or ignores them (nohup)."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] != signal.SIG_IGN:
            signal.signal(number, _end)
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
