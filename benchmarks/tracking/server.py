"""MLflow's web interface on this machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.errors import UserError
from benchmarks.running.signals import interrupted_by
from benchmarks.tracking.store import ARTIFACTS, DATABASE, connect, default_tracking_uri, is_server, without_password
from benchmarks.tracking.views import ALL_RUNS, PREFIX, link

PORT, MAX_PORT = 5055, 65535
RUNNING = "ui.json"  # in the results folder while the interface runs: its address
STOP_SECONDS = 10.0


def address_of(uri: str, results_dir: Path) -> str:
    """Where a browser finds the runs: the tracking server, or the interface that `make ui` serves."""
    if is_server(uri):
        return without_password(uri).rstrip("/")
    with suppress(OSError, ValueError, KeyError, TypeError):
        address = str(json.loads((results_dir / RUNNING).read_text(encoding="utf-8"))["address"])
        if _listens(address):
            return address
    return f"http://127.0.0.1:{PORT}"


def serve(uri: str, results_dir: Path, host: str = "127.0.0.1", port: int = PORT) -> int:
    """Run MLflow's web interface until Ctrl-C; returns the exit status.

    If a tracking server keeps the runs, this only prints its address.
    Raises UserError if there is nothing to show, the address cannot be used, or MLflow ends by itself.
    """
    if is_server(uri):
        _show("A tracking server keeps the runs", uri, address_of(uri, results_dir))
        return 0
    database = results_dir / DATABASE
    if uri == default_tracking_uri(results_dir) and "MLFLOW_TRACKING_URI" not in os.environ and not database.exists():
        raise UserError(
            f"expected MLflow's database at {database}, found none: run a benchmark first, such as `make demo`, "
            f"or take in records with `python -m benchmarks import`."
        )
    if not 1 <= port <= MAX_PORT:
        raise UserError(f"port {port}: expected a number from 1 to {MAX_PORT}; choose one with --port (make: PORT=…).")
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except (OSError, UnicodeError) as error:
        raise UserError(
            f"cannot listen on {host}, port {port} ({error}): choose another port with --port (make: PORT=…), "
            f"or stop the program that uses it."
        ) from None
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    address = f"http://[{local}]:{port}" if ":" in local else f"http://{local}:{port}"
    stores = ["--backend-store-uri", uri, "--registry-store-uri", uri]
    artifacts = ["--artifacts-destination", str(results_dir.resolve() / ARTIFACTS)]
    # one worker for one reader: each takes half a gigabyte
    options = ["--host", host, "--port", str(port), "--workers", "1", "--uvicorn-opts", "--log-level warning"]
    with tempfile.TemporaryFile("w+") as log, interrupted_by("SIGTERM", "SIGHUP"):
        server = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *stores, *artifacts, *options],
            env={"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **os.environ},
            stdout=log,
            stderr=log,
            start_new_session=True,  # all of its processes end with this one
        )
        try:
            while server.poll() is None and not _listens(address):
                time.sleep(0.2)
            if server.poll() is None:
                (results_dir / RUNNING).write_text(json.dumps({"address": address}), encoding="utf-8")
                _show("MLflow (Ctrl-C ends it)", uri, address)
            status = server.wait()
            log.seek(0)
            raise UserError(f"MLflow ended with status {status}. Its last lines:\n{''.join(log.readlines()[-12:])}")
        except KeyboardInterrupt:
            return 0
        finally:
            (results_dir / RUNNING).unlink(missing_ok=True)
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(server.pid, number)
                    server.wait(STOP_SECONDS)


def _listens(address: str) -> bool:
    parts = urlsplit(address)
    with suppress(OSError):
        socket.create_connection((parts.hostname or "", parts.port or 0), timeout=1).close()
        return True
    return False


def _show(title: str, uri: str, address: str) -> None:
    """Print the address, and a link for each experiment that has a view of its runs."""
    print(f"{title}: {address}")
    with suppress(Exception):  # MLflow raises what its stores raise; the address is printed all the same
        for entry in connect(uri).search_experiments(order_by=["name ASC"]):
            if PREFIX + ALL_RUNS in entry.tags:
                print(f"{entry.name}:\n  {link(address, entry.experiment_id)}")
    sys.stdout.flush()
