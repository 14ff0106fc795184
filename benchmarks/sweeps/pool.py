"""Workers of a sweep: this process, or several of this machine, whose events come back to one sink."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from benchmarks.executors.processes import end_with_parent
from benchmarks.executors.slots import environments
from benchmarks.running.events import Event, Sink
from benchmarks.running.run_options import RunOptions

Submit = Callable[..., "Future[Any]"]
_sink: Sink = lambda event: None  # noqa: E731 - where events of this process go


def tell(event: Event) -> None:
    """Pass an event on to who started this worker."""
    _sink(event)


@contextmanager
def workers(settings: RunOptions, sink: Sink) -> Iterator[Submit]:
    """Start as many workers as the settings say; gives `submit(function, *arguments) -> Future`."""
    if settings.workers <= 1 or settings.executor == "serial":
        _listen(sink)
        yield _here
        return
    context = multiprocessing.get_context("spawn")  # forking a process that has run torch can hang
    events, places = context.SimpleQueue(), context.SimpleQueue()
    for environment in environments(settings, settings.workers):
        places.put(environment)

    def forward() -> None:
        for event in iter(events.get, None):
            sink(event)

    thread = threading.Thread(target=forward, daemon=True)
    thread.start()
    pool = ProcessPoolExecutor(settings.workers, context, _begin, (events, places))
    try:
        yield pool.submit
    except BaseException:  # Ctrl-C, say, that reached this process alone: no one waits for a whole run
        for process in multiprocessing.active_children():
            process.terminate()
        pool.shutdown(cancel_futures=True)
        raise  # without a last word through the queue: a worker that was ended may have held its lock
    pool.shutdown(cancel_futures=True)
    events.put(None)
    thread.join()


def _here(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    future: Future[Any] = Future()
    try:
        future.set_result(function(*arguments))
    except Exception as error:  # noqa: BLE001 - as a worker's process does
        future.set_exception(error)
    return future


def _listen(sink: Sink) -> None:
    global _sink
    _sink = sink


def _begin(events: Any, places: Any) -> None:
    """Set up a worker's process."""
    os.environ.update(places.get())  # before torch is loaded
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker at once: its state is on disk
    _listen(events.put)
