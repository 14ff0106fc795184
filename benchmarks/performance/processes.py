"""Fresh processes that measure: a peak of memory is a process's, and cells side by side have one each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from benchmarks.executors.processes import end_with_parent


def fresh_processes(count: int, set_up: Callable[..., None] | None = None, *arguments: object) -> ProcessPoolExecutor:
    """A pool of processes that begin with `set_up`, and end as soon as this one is gone."""
    return ProcessPoolExecutor(count, get_context("spawn"), initializer=partial(_begin, set_up, *arguments))


def _begin(set_up: Callable[..., None] | None, *arguments: object) -> None:
    end_with_parent()
    if set_up:
        set_up(*arguments)
