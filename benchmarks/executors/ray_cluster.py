"""The connection to a Ray cluster: one that runs, or one that is started here."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.errors import UserError
from benchmarks.running.run_options import RunOptions

HERE = "127.0.0.1"
ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
ANSWER_SECONDS = 10.0


def gpu_share(settings: RunOptions, tasks: int) -> float:
    """GPUs of one of so many tasks side by side: one, or its share where the cluster has fewer."""
    gpus = 0 if settings.device == "cpu" else library(settings).cluster_resources().get("GPU", 0)
    return min(1.0, gpus / tasks)


def library(settings: RunOptions) -> Any:
    """Ray; UserError where it is not installed."""
    if not settings.ray_address:
        os.environ.setdefault(ALONE, "0")  # read by Ray when it is loaded
    try:
        import ray
    except ImportError:
        raise UserError("--executor ray needs Ray: pip install 'fedbert-bench[ray]'") from None
    return ray


@contextmanager
def connected(settings: RunOptions) -> Iterator[str]:
    """Be connected to the Ray cluster that the settings name, or to one started here; gives its address."""
    ray = library(settings)
    ours = not ray.is_initialized()
    if ours:
        handler = signal.getsignal(signal.SIGTERM)
        _connect(ray, settings)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray has replaced it
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        if ours:
            ray.shutdown()


def _connect(ray: Any, settings: RunOptions) -> None:
    if settings.ray_address and "://" not in settings.ray_address:
        _require_answer(settings.ray_address)
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if settings.ray_address:
            ray.init(address=settings.ray_address, **quiet)
        else:
            cpus = settings.workers * settings.cores
            ray.init("local", num_cpus=cpus, include_dashboard=False, _node_ip_address=HERE, **quiet)
    except (RuntimeError, ValueError, OSError, AssertionError) as error:
        raise _no_answer(settings.ray_address or "this machine", error) from None


def _require_answer(address: str) -> None:
    """Ask the cluster's port first: Ray's own patience with a cluster that is not there is minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _no_answer(address, error) from None


def _no_answer(address: str, error: Exception) -> UserError:
    return UserError(
        f"no Ray cluster answers at {address} ({' '.join(str(error).split())[:300]}). Expected the address of one that "
        "runs, such as head-node:6379, in --ray-address (make: RAY_ADDRESS); without it one is started here."
    )
