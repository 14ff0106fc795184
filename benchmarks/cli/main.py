"""Start a command. A mistake that the user can fix gives one message and status 2."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence

from benchmarks.cli.arguments import COMMANDS, build_parser
from benchmarks.errors import UserError
from benchmarks.registry import include
from benchmarks.running.signals import Terminated, interrupted_by

INTERRUPTED, CLOSED_PIPE = 130, 141  # exit statuses, as in shells
USER_ERRORS = {"UserError", "FederationError", "PartitionError", "ReportError"}  # by name: two of them load numpy
# File errors that a user can fix: full disk, no permission, wrong kind.
FILE_ERRORS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EFBIG, errno.EIO),
    *(errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO),
}
RESUMES = "finished rounds are saved; the same command continues from there"
RESUMABLE = {"run", "sweep", "campaign"}
# Libraries read these at import, here and in worker processes.
ENVIRONMENT = {
    "TOKENIZERS_PARALLELISM": "false",  # tokenizers warn and stall in forked processes
    # Compiled kernels, one per matrix shape; packed layers keep the shapes few (fedsim.models.packed).
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "512",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    os.environ["MPLBACKEND"] = "agg"  # figures are only written to files
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")  # "?" for characters that the encoding lacks
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        for stream in (sys.stdout, sys.stderr):  # Python flushes them when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return CLOSED_PIPE


def _run(arguments: Sequence[str]) -> int:
    saved = RESUMES if RESUMABLE & {*arguments[:1]} else ""
    try:
        parser = build_parser()
        if not arguments:
            parser.print_help()
            return 0
        args, unknown = parser.parse_known_args(arguments)
        if unknown:
            raise UserError(
                f"unrecognized arguments: {' '.join(unknown)}. `{parser.prog} {args.command} --help` lists the options."
            )
        if getattr(args, "data_dir", None) is not None:
            importlib.import_module("benchmarks.encoders.fetched").use(args.data_dir)
        for folder in getattr(args, "include", ()):  # their methods may load the hub's libraries
            include(folder)
        # Import only the chosen command, so that `list` does not wait for other commands' libraries.
        module = importlib.import_module(f"benchmarks.cli.{COMMANDS[args.command].module}")
        with interrupted_by("SIGTERM", "SIGHUP"):
            status: int = getattr(module, f"{args.command}_command")(args)
        return status
    except KeyboardInterrupt as stop:
        print(f"\ninterrupted{saved and f': {saved}'}", file=sys.stderr)
        return 128 + stop.number if isinstance(stop, Terminated) else INTERRUPTED
    except OSError as error:
        if error.errno not in FILE_ERRORS:
            raise
        problem = f"{error.filename or 'a file'} cannot be used ({error.strerror})"
        todo = "free space, correct the permissions, or name another path"
        print(f"error: {problem}; {todo}{saved and f'; {saved}'}", file=sys.stderr)
        return 2
    except ValueError as error:
        if not USER_ERRORS & {kind.__name__ for kind in type(error).__mro__}:
            raise
        print(f"error: {error}", file=sys.stderr)
        return 2
