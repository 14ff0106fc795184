"""Output that a command outlives: a reader that goes away, or a full disk behind stdout, ends no computation."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO, cast


class Lasting:
    """A text stream that takes whatever it is told; once it cannot be written, the rest goes nowhere.

    lost: the error with which it was lost, None as long as it was not.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.lost: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._lose(error)
            return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Hand on what was written."""
        try:
            self._stream.flush()
        except OSError as error:
            self._lose(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _lose(self, error: OSError) -> None:
        self.lost = self.lost or error
        # What is still buffered has to go somewhere, or Python complains of it when it ends.
        with suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


@contextmanager
def lasting_output() -> Iterator[tuple[Lasting, Lasting]]:
    """Make stdout and stderr last while the block runs; gives both."""
    out, err = (Lasting(stream or open(os.devnull, "w")) for stream in (sys.stdout, sys.stderr))  # noqa: SIM115,PTH123
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
        try:
            yield out, err
        finally:
            out.flush()
            err.flush()


@contextmanager
def without_terminal() -> Iterator[None]:
    """Go on while the block runs where the terminal goes away; so do the processes that are started in it."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGHUP"):
        yield  # a signal is the main thread's
        return
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # what is ignored stays so in programs that are started
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def failed(out: Lasting) -> bool:
    """Whether what was written to a stream is missing where it was to go, after a flush.

    A reader that has gone, as `head` does, wanted no more.
    """
    out.flush()
    return out.lost is not None and out.lost.errno != errno.EPIPE


def warn(message: str) -> None:
    """Say something beside the results."""
    print(f"warning: {message}", file=sys.stderr)
