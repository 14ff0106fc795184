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
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from benchmarks.errors import UserError
from benchmarks.signals import interrupted_by
from benchmarks.tracking.store import ARTIFACTS, ENVIRONMENT, connect, is_server, shown, sqlite_path
from benchmarks.tracking.views import ALL_RUNS, PREFIX, link, web_address

MAX_PORT = 65535
STOP_SECONDS = 10.0


def serve(uri: str, results_dir: Path, host: str = "127.0.0.1", port: int = 5000) -> int:
    """Run MLflow's web interface until Ctrl-C; returns the exit status.

    Where the runs are kept by a tracking server, only says so: that server has the interface.
    Raises UserError where there is nothing to show, the address cannot be used, or MLflow does not start.
    """
    if is_server(uri):
        print(f"The runs are kept by a tracking server: open {shown(uri)}", *_server_links(uri), sep="\n", flush=True)
        return 0
    database = sqlite_path(uri)
    if database is not None and not database.exists():
        raise UserError(
            f"expected MLflow's database at {database}, found none: run a benchmark first, such as `make demo`, "
            f"or take in records with `python -m benchmarks import`."
        )
    _check_address(host, port)
    with tempfile.TemporaryFile("w+") as log:
        status = _run(_command(uri, results_dir, host, port), _address(host, port), log)
        if status:
            log.seek(0)
            raise UserError(f"MLflow ended with status {status}. The last it said:\n{''.join(log.readlines()[-12:])}")
    return status


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


def _address(host: str, port: int) -> str:
    """Where a browser on this machine finds the server."""
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{local}]:{port}" if ":" in local else f"http://{local}:{port}"


def _command(uri: str, results_dir: Path, host: str, port: int) -> list[str]:
    options = {
        "--backend-store-uri": uri,
        "--registry-store-uri": uri,
        "--artifacts-destination": str(results_dir.resolve() / ARTIFACTS),
        "--host": host,
        "--port": str(port),
        "--workers": "1",  # for one reader; each takes half a gigabyte
        "--uvicorn-opts": "--log-level warning",
    }
    return [sys.executable, "-m", "mlflow", "server", *(word for pair in options.items() for word in pair)]


def _run(command: list[str], address: str, log: IO[str]) -> int:
    """Run the server, in a session of its own so that all of its processes end with this one."""
    environment = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **ENVIRONMENT, **os.environ}
    with interrupted_by("SIGTERM", "SIGHUP"):
        server = subprocess.Popen(
            command, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            while server.poll() is None and not _answers(address):
                time.sleep(0.2)
            if server.poll() is None:
                print(f"MLflow: {address} (Ctrl-C ends it)", *_local_links(address), sep="\n", flush=True)
            return server.wait()
        except KeyboardInterrupt:
            return 0
        finally:
            _stop(server)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _local_links(address: str) -> list[str]:
    """A line for each experiment of the server on this machine that has a view of its runs; none if it does not say."""
    body = json.dumps({"max_results": 1000}).encode()
    request = urllib.request.Request(
        f"{address}/api/2.0/mlflow/experiments/search", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            found = json.load(response).get("experiments", [])
    except (urllib.error.URLError, OSError, ValueError):
        return []
    tags = [{tag["key"]: tag["value"] for tag in entry.get("tags", [])} for entry in found]
    return _lines(address, [(e["name"], e["experiment_id"], tag) for e, tag in zip(found, tags, strict=True)])


def _server_links(uri: str) -> list[str]:
    """The same of a tracking server; MLflow's own client knows how to log in there."""
    try:
        found = connect(uri).search_experiments()
    except Exception:  # noqa: BLE001 - MLflow raises what its stores raise; the address is said all the same
        return []
    return _lines(web_address(uri), [(entry.name, str(entry.experiment_id), entry.tags) for entry in found])


def _lines(address: str, experiments: Iterable[tuple[str, str, Mapping[str, str]]]) -> list[str]:
    return [
        f"  {name}: {link(address, number)}" for name, number, tags in sorted(experiments) if PREFIX + ALL_RUNS in tags
    ]


def _stop(server: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, number)
            server.wait(STOP_SECONDS)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
