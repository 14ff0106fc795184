"""Signals that end a program as Ctrl-C does: what is open is closed, and it says how to go on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Terminated(KeyboardInterrupt):
    """A signal that was to end the program, such as a scheduler's SIGTERM at the end of a job's time."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def interrupted_by(*names: str) -> Iterator[None]:
    """Raise Terminated in the block at signals of these names, as far as the system has them.

    Programs that are started in it end at them as ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # a signal is the main thread's
        return

    def end(number: int, _: object) -> None:
        raise Terminated(number)

    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = [signal.signal(number, end) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
