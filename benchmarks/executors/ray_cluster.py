"""The connection to a Ray cluster: one that runs, or one that is started on this machine."""

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

# With "0" Ray listens at this address alone; otherwise it replaces it by one that is seen from outside.
# https://github.com/ray-project/ray/issues/18730
HERE, ALONE = "127.0.0.1", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
ANSWER_SECONDS = 10.0


def library(settings: RunOptions) -> Any:
    """Ray; UserError if it is not installed."""
    if not settings.ray_address:
        os.environ.setdefault(ALONE, "0")  # read by Ray when it is loaded
    try:
        import ray
    except ImportError:
        raise UserError("--executor ray needs Ray: pip install 'fedbert-bench[ray]'") from None
    return ray


def gpu_share(settings: RunOptions, tasks: int) -> float:
    """GPUs of one of so many tasks side by side: one, or its share if the cluster has fewer."""
    gpus = 0 if settings.device == "cpu" else library(settings).cluster_resources().get("GPU", 0)
    return min(1.0, gpus / tasks)


@contextmanager
def connected(settings: RunOptions) -> Iterator[str]:
    """Be connected to the Ray cluster that the settings name, or to one started here; gives its address."""
    ray = library(settings)
    is_first = not ray.is_initialized()
    if is_first:
        handler = signal.getsignal(signal.SIGTERM)
        _connect(ray, settings)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray has replaced it
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        if is_first:
            ray.shutdown()


def _connect(ray: Any, settings: RunOptions) -> None:
    address, quiet = settings.ray_address, {"log_to_driver": False, "logging_level": "error"}
    try:
        if not address:
            cpus = settings.workers * settings.cores
            ray.init("local", num_cpus=cpus, include_dashboard=False, _node_ip_address=HERE, **quiet)
            return
        if "://" not in address and address != "auto":  # Ray itself waits minutes for a cluster that does not answer
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
        ray.init(address=address, **quiet)
    except (RuntimeError, ValueError, OSError, AssertionError, OverflowError) as error:
        raise UserError(
            f"no Ray cluster answers at {address or 'this machine'} ({' '.join(str(error).split())[:300]}). Expected "
            "the address of one that runs, such as head-node:6379, in --ray-address (make: RAY_ADDRESS); without it "
            "one is started here."
        ) from None
