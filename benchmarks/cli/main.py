"""Start a command. A mistake that the user can fix ends with one message and status 2."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO, cast

from benchmarks.cli.arguments import COMMANDS, build_parser
from benchmarks.registry import include
from benchmarks.running.signals import Terminated, surviving_logout

COMPUTING = ("run", "sweep", "import", "campaign")  # they keep running after the terminal closes
INTERRUPTED = 130
USER_ERRORS = {"UserError", "FederationError", "PartitionError", "ReportError"}  # by name: two of them load numpy
# Errors of files and folders that a user can fix: full, forbidden, or of the wrong kind.
FILE_ERRORS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EFBIG, errno.EIO),
    *(errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO),
}
RESUMES = "finished rounds are saved; the same command continues from there"
# Libraries read these when they are loaded, here and in worker processes.
ENVIRONMENT = {
    "TOKENIZERS_PARALLELISM": "false",  # tokenizers warn and stall when a process with their threads is forked
    # Compiled kernels, one for each shape of a product; the packed layers keep the shapes few (fedsim.models.packed).
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "512",
}
FIXED = {"MPLBACKEND": "agg"}  # figures are only written to files, so no display and no user's backend is needed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    os.environ |= FIXED
    with lasting_output() as streams:
        status = _run(sys.argv[1:] if arguments is None else arguments)
        for name, stream in zip(("stdout", "stderr"), streams, strict=True):
            if stream.is_incomplete():
                print(f"error: {name} cannot be written ({stream.error}); all files were written", file=sys.stderr)
                status = status or 2
        return status


def _run(arguments: Sequence[str]) -> int:
    try:
        parser = build_parser()
        if not arguments:
            parser.print_help()
            return 0
        args = parser.parse_args(arguments)
        if getattr(args, "data_dir", None) is not None:
            importlib.import_module("benchmarks.encoders.fetched").use(args.data_dir)
        for folder in getattr(args, "include", ()):  # its methods may load the hub's libraries
            include(folder)
        # Each command is imported when it is chosen, so that `list` does not wait for other commands' libraries.
        module = importlib.import_module(f"benchmarks.cli.{COMMANDS[args.command].module}")
        with surviving_logout() if args.command in COMPUTING else nullcontext():
            status: int = getattr(module, f"{args.command}_command")(args)
        return status
    except KeyboardInterrupt as stop:
        print(f"\ninterrupted: {RESUMES}", file=sys.stderr)
        return 128 + stop.number if isinstance(stop, Terminated) else INTERRUPTED
    except OSError as error:
        if error.errno not in FILE_ERRORS:
            raise
        print(f"error: {error.filename or 'a file'} cannot be used ({error.strerror}); {RESUMES}", file=sys.stderr)
        return 2
    except ValueError as error:
        if not USER_ERRORS & {kind.__name__ for kind in type(error).__mro__}:
            raise
        print(f"error: {error}", file=sys.stderr)
        return 2


# ---- output that may disappear -----------------------------------------------------------------------------------


class Lasting:
    """A text stream that discards everything after its first failed write, so that the computation continues.

    error: that failure, of a closed pipe or a full disk, or None.
    """

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
    """Wrap stdout and stderr while the block runs, and return both.

    A character that their encoding lacks is written as "?", so that no run ends for want of it.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
    out, err = (Lasting(stream or open(os.devnull, "w")) for stream in (sys.stdout, sys.stderr))  # noqa: SIM115,PTH123
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
        try:
            yield out, err
        finally:
            out.flush()
            err.flush()
