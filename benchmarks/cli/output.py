"""Output that may disappear while a command runs: a closed pipe or a full disk does not stop the computation."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO, cast


class Lasting:
    """A text stream that discards everything after its first failed write. error: that failure, or None."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text."""
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._attempt(self._stream.flush)

    def is_incomplete(self) -> bool:
        """Whether text was lost. A closed pipe loses nothing: its reader, such as `head`, wanted no more."""
        self.flush()
        return self.error is not None and self.error.errno != errno.EPIPE

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _attempt(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except OSError as error:
            self.error = self.error or error
            # Python flushes the buffer when it ends: what is left in it needs a file that accepts it.
            with suppress(OSError, ValueError, AttributeError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)


@contextmanager
def lasting_output() -> Iterator[tuple[Lasting, Lasting]]:
    """Wrap stdout and stderr while the block runs, and return both."""
    out, err = (Lasting(stream or open(os.devnull, "w")) for stream in (sys.stdout, sys.stderr))  # noqa: SIM115,PTH123
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
        try:
            yield out, err
        finally:
            out.flush()
            err.flush()


def warn(message: str) -> None:
    """Print a warning to stderr."""
    print(f"warning: {message}", file=sys.stderr)
