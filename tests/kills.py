"""Simulated kills in this process, before any step on the disk."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fedsim.stored import LOCK


class Killed(BaseException):
    """A simulated signal, which no handler of the project catches."""


@contextmanager
def killed_before_step(number: int) -> Iterator[list[str]]:
    """A block in which `number` - 1 steps on the disk happen, and nothing after them; yields the names of the steps.

    Of a file that is killed while it is synced, half has got to the disk. Locks are released all the same: a killed
    process holds none, but this one lives on.
    """
    done: list[str] = []

    def is_lock(path: object) -> bool:
        return isinstance(path, Path) and (path.parent.name == "locks" or path.suffix == LOCK)

    def mortal(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            if is_lock(arguments[0]):
                return function(*arguments, **options)
            if len(done) + 1 >= number:
                if name == "fsync":
                    os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2)
                raise Killed
            done.append(name)
            return function(*arguments, **options)

        return step

    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(os, "fsync", mortal("fsync", lambda descriptor: None))  # which does not wait for the disk
        for name in ("replace", "unlink", "rmdir"):
            patch.setattr(Path, name, mortal(name, getattr(Path, name)))
        yield done
