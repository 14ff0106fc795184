"""The command `check`: test whether the methods in a user's file meet the requirements on every method."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.overrides import read_assignment
from benchmarks.running.included import load_file, place_in
from fedsim.errors import plural


def check_command(args: argparse.Namespace) -> int:
    """Check every method in a file, with these options, and record nothing. UserError if a check fails."""
    failed, changes = 0, [read_assignment(text) for text in args.set]
    if others := [name for name, _ in changes if not name.startswith("options.")]:
        raise UserError(f"--set {others[0]}: expected an option of the methods, such as options.head")
    methods = load_file(args.file)
    import torch  # before, the file may have a syntax error

    from benchmarks.cli.checks import ROUNDS, Checks

    torch.set_num_threads(1)  # more only wait for each other with such small products
    for method in methods:
        print(f"{method.__name__}: generated texts, a tiny encoder with LoRA, {ROUNDS} rounds", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            checks = Checks(args.file, method.__name__, changes, Path(folder))
            for name, check in checks.all.items():
                problem, is_error = "", False
                try:
                    problem = check()
                except Exception as error:  # noqa: BLE001 - a user's code may raise any
                    where = place_in(args.file.resolve().parent, error)
                    problem, is_error = f"{type(error).__name__}: {error}{where and f' ({where})'}", True
                failed += bool(problem)
                print(f"  {'FAILED' if problem else 'ok    '} {name}{problem and f': {problem}'}", flush=True)
                if is_error:  # other checks would meet it, too
                    print("         the other checks are left out", flush=True)
                    break
    if failed:
        raise UserError(
            f"{args.file}: expected methods that pass every check, found {plural(failed, 'failed check')}; see above"
        )
    return 0
