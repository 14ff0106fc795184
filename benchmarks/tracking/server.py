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

from benchmarks.cli.signals import interrupted_by
from benchmarks.errors import UserError
from benchmarks.tracking.store import ARTIFACTS, ENVIRONMENT, connect, is_server, sqlite_path, without_password
from benchmarks.tracking.views import ALL_RUNS, PREFIX, link

PORT, MAX_PORT = 5055, 65535
RUNNING = "ui.json"  # in the results folder while the interface runs: its address
STOP_SECONDS = 10.0


def address_of(uri: str, results_dir: Path) -> str:
    """Where a browser finds the runs: the tracking server itself, or the interface that `make ui` serves or would."""
    if is_server(uri):
        return without_password(uri).rstrip("/")
    with suppress(OSError, ValueError, KeyError, TypeError):
        address = str(json.loads((results_dir / RUNNING).read_text(encoding="utf-8"))["address"])
        if _listens(address):
            return address
    return f"http://127.0.0.1:{PORT}"


def serve(uri: str, results_dir: Path, host: str = "127.0.0.1", port: int = PORT) -> int:
    """Run MLflow's web interface until Ctrl-C; returns the exit status.

    Where a tracking server keeps the runs, only says so: that server has the interface.
    Raises UserError where there is nothing to show, the address cannot be used, or MLflow ends by itself.
    """
    if is_server(uri):
        _show("A tracking server keeps the runs", uri, address_of(uri, results_dir))
        return 0
    database = sqlite_path(uri)
    if database is not None and not database.exists():
        raise UserError(
            f"expected MLflow's database at {database}, found none: run a benchmark first, such as `make demo`, "
            f"or take in records with `python -m benchmarks import`."
        )
    _check_address(host, port)
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    address = f"http://[{local}]:{port}" if ":" in local else f"http://{local}:{port}"
    stores = ["--backend-store-uri", uri, "--registry-store-uri", uri]
    artifacts = ["--artifacts-destination", str(results_dir.resolve() / ARTIFACTS)]
    # one worker for one reader: each takes half a gigabyte
    options = ["--host", host, "--port", str(port), "--workers", "1", "--uvicorn-opts", "--log-level warning"]
    with tempfile.TemporaryFile("w+") as log, interrupted_by("SIGTERM", "SIGHUP"):
        server = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *stores, *artifacts, *options],
            env={"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **ENVIRONMENT, **os.environ},
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
            raise UserError(f"MLflow ended with status {status}. The last it said:\n{''.join(log.readlines()[-12:])}")
        except KeyboardInterrupt:
            return 0
        finally:
            (results_dir / RUNNING).unlink(missing_ok=True)
            _stop(server)


def _check_address(host: str, port: int) -> None:
    if not 1 <= port <= MAX_PORT:
        raise UserError(f"port {port}: expected a number from 1 to {MAX_PORT}; choose one with --port (make: PORT=…).")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except (OSError, UnicodeError) as error:
        raise UserError(
            f"cannot listen on {host}, port {port} ({error}): choose another port with --port (make: PORT=…), "
            f"or stop the program that uses it."
        ) from None


def _listens(address: str) -> bool:
    parts = urlsplit(address)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 0), timeout=1).close()
    except OSError:
        return False
    return True


def _show(what: str, uri: str, address: str) -> None:
    """Print the address, and a link for each experiment that has a view of its runs."""
    print(f"{what}: {address}")
    with suppress(Exception):  # MLflow raises what its stores raise; the address is printed all the same
        found = {entry.name: entry for entry in connect(uri).search_experiments() if PREFIX + ALL_RUNS in entry.tags}
        for name, entry in sorted(found.items()):
            print(f"{name}:\n  {link(address, entry.experiment_id)}")
    sys.stdout.flush()


def _stop(server: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(server.pid, number)
            server.wait(STOP_SECONDS)
