"""Work that is done beside whatever else goes on, in processes forked from this one: what they need is in memory."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any

CAN_FORK = sys.platform == "linux"  # elsewhere libraries do not bear it, or there is none


class Beside:
    """A function that is called in a process of its own, with so many of them at a time; at once where none are forked.

    What it returns is lost. Leaving the context waits for all of them; a call that failed is done again here, so that
    its error is raised.
    """

    def __init__(self, function: Callable[..., None], processes: int) -> None:
        self._function = function
        self._processes = processes if CAN_FORK else 0
        self._running: dict[Any, tuple[Any, tuple[Any, ...]]] = {}  # by what says that a process has ended

    def __call__(self, *values: Any) -> None:
        if self._processes < 2:
            self._function(*values)
            return
        self._wait_for(self._processes - 1)
        process = multiprocessing.get_context("fork").Process(
            target=_quietly, args=(self._function, values), daemon=True
        )
        process.start()
        self._running[process.sentinel] = process, values

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self._wait_for(0)
        for process, _ in self._running.values():
            process.terminate()
            process.join()
        self._running.clear()

    def _wait_for(self, left: int) -> None:
        """Wait until only so many run."""
        while len(self._running) > left:
            for ended in wait(list(self._running)):
                process, values = self._running.pop(ended)
                process.join()
                if process.exitcode:
                    self._function(*values)


def _quietly(function: Callable[..., None], values: tuple[Any, ...]) -> None:
    """Interrupts and errors are the first process's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        function(*values)
    except Exception:  # noqa: BLE001 - whatever it is, it happens again where it is raised
        sys.exit(1)
