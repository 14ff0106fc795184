"""Start a command; what the user can mend is one message and status 2."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from benchmarks.cli.arguments import build_parser
from benchmarks.cli.output import failed, lasting_output, without_terminal
from benchmarks.errors import UserError
from benchmarks.registry import include
from benchmarks.running.signals import Terminated, interrupted_by

# Each command lives in a module that is imported when it is asked for, so that `list` does not wait for torch.
MODULES = {
    "list": "look",
    "show": "look",
    "plan": "plan",
    "run": "run",
    "sweep": "sweep",
    "pretrain": "pretrain",
    "campaign": "campaign",
    "report": "report",
    "front": "front",
    "site": "site",
    "import": "report",
    "fetch": "fetch",
    "ui": "services",
    "doctor": "services",
    "data": "services",
    "bench": "services",
}
COMPUTING = ("run", "sweep", "pretrain", "import", "campaign")  # what goes on where the terminal goes away
DERIVING = ("plan", "report", "site")  # what keeps bytes and FLOPs by shapes in the results folder
INTERRUPTED = 130
# Of files and folders that a user can mend: full, forbidden, or something else than what belongs there.
FILES_REFUSED = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EFBIG, errno.EIO),
    *(errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO),
}
RESUMES = "finished rounds are saved; the same command goes on from there"
# Read by libraries when they are loaded, here and in worker processes.
ENVIRONMENT = {
    "TOKENIZERS_PARALLELISM": "false",  # tokenizers warn and stall when a process with their threads is forked
    # Compiled kernels, one for each shape of a product; the packed layers keep the shapes few (fedsim.models.packed).
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "512",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with lasting_output() as streams:
        status = _run(arguments)
        for name, stream in zip(("stdout", "stderr"), streams, strict=True):
            if failed(stream):
                text = f"error: {name} cannot be written ({stream.lost}); files are written all the same"
                print(text, file=sys.stderr)  # nobody reads it of stderr itself: the status tells
                status = status or 2
        return status


def _run(arguments: Sequence[str] | None) -> int:
    try:
        parser = build_parser()
        if not (sys.argv[1:] if arguments is None else arguments):
            parser.print_help()
            return 0
        args = parser.parse_args(arguments)
        for folder in getattr(args, "include", ()):
            include(folder)
        if getattr(args, "data_dir", None) is not None:
            importlib.import_module("benchmarks.encoders.fetched").use(args.data_dir)
        if args.command in DERIVING:
            importlib.import_module("benchmarks.dry_run.shapes").keep_in(args.results_dir)
        module = importlib.import_module(f"benchmarks.cli.{MODULES[args.command]}")
        with _outliving() if args.command in COMPUTING else nullcontext():
            status: int = getattr(module, f"{args.command}_command")(args)
        return status
    except KeyboardInterrupt as stop:
        print(f"\ninterrupted: {RESUMES}", file=sys.stderr)
        return 128 + stop.number if isinstance(stop, Terminated) else INTERRUPTED
    except OSError as error:
        if error.errno not in FILES_REFUSED:
            raise
        print(f"error: {error.filename or 'a file'} cannot be used ({error.strerror}); {RESUMES}", file=sys.stderr)
        return 2
    except ValueError as error:
        if not _mendable(error):
            raise
        print(f"error: {error}", file=sys.stderr)
        return 2


@contextmanager
def _outliving() -> Iterator[None]:
    """Go on where the terminal goes away; say how to go on where a scheduler ends it."""
    with without_terminal(), interrupted_by("SIGTERM"):
        yield


def _mendable(error: ValueError) -> bool:
    """Whether an error is one of those made for the user; asks only packages that are loaded already."""
    kinds: list[type] = [UserError]
    for module, name in (
        ("fedsim.errors", "FederationError"),
        ("partitions.errors", "PartitionError"),
        ("reports", "ReportError"),
    ):
        if module in sys.modules:
            kinds.append(getattr(sys.modules[module], name))
    return isinstance(error, tuple(kinds))
