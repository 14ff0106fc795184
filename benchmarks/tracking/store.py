"""MLflow's store and web interface, with short timeouts if a server is down."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from filelock import FileLock

from benchmarks.errors import UserError
from benchmarks.running.signals import interrupted_by
from benchmarks.tracking.table import ALL_RUNS, PREFIX, link

if TYPE_CHECKING:
    from mlflow import MlflowClient

DATABASE, ARTIFACTS = "mlflow.db", "mlartifacts"
PORT = 5055
RUNNING = "ui.json"  # the interface's address, in the results folder while it runs
STOP_SECONDS = 10.0
# Users may override these. By default MLflow retries for many minutes if a server is down.
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
for _name, _value in ENVIRONMENT.items():  # before importing MLflow
    os.environ.setdefault(_name, _value)


def default_tracking_uri(results_dir: Path) -> str:
    """MLFLOW_TRACKING_URI if it is set, else a SQLite database in the results folder."""
    if uri := os.environ.get("MLFLOW_TRACKING_URI"):
        return uri
    # MLflow takes everything but % and ? literally, even spaces
    return "sqlite:///" + str(results_dir.resolve() / DATABASE).replace("%", "%25").replace("?", "%3F")


def is_server(uri: str) -> bool:
    """Whether the store is a tracking server, which has a web interface."""
    return uri.partition("://")[0].lower() in ("http", "https")


def without_password(uri: str) -> str:
    """A URI without its user name and password."""
    place = re.split("[/?#]", uri.partition("//")[2], maxsplit=1)[0]
    return uri.replace(f"{place.rpartition('@')[0]}@", "", 1) if "@" in place else uri


def creating(results_dir: Path) -> FileLock:
    """The lock for creating anything in MLflow, so that two processes never create the same entry."""
    folder = results_dir / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / "mlflow.lock", is_singleton=True)  # reentrant


def database_of(uri: str) -> Path | None:
    """The file of a SQLite store; None for another store, or one with options."""
    path = uri.removeprefix("sqlite:///")
    return None if path in (uri, "", ":memory:") or "?" in path else Path(unquote(path))


def connect(uri: str) -> MlflowClient:
    """A client for the store; UserError if its database cannot be opened.

    A missing SQLite database is created, which takes seconds; hold the lock `creating`. It is moved into place once its
    schema is complete, as MLflow can neither open nor complete a database whose creation was interrupted.
    """
    import mlflow.store.db.utils

    mlflow.store.db.utils.MAX_RETRY_COUNT = 2  # ten attempts to open a missing database take 100 seconds
    if "MLFLOW_LOGGING_LEVEL" not in os.environ:
        logging.getLogger("mlflow").setLevel(logging.CRITICAL)  # its errors are raised, too
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    database = database_of(uri)
    if database is None:
        return mlflow.MlflowClient(uri)
    if not database.exists():
        database.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{DATABASE}.", dir=database.parent) as folder:
            place, _, name = uri.rpartition("/")
            mlflow.MlflowClient(f"{place}/{Path(folder).name}/{name}")
            (Path(folder) / database.name).replace(database)
    try:
        return mlflow.MlflowClient(uri)
    except Exception as error:  # noqa: BLE001 - MLflow raises its stores' errors
        reason = str(error).partition("\n")[0]  # without the SQL
        raise UserError(
            f"{database} cannot be opened; if it is damaged, move it away, and a new database is created: {reason}"
        ) from None


def follow_folder(results_dir: Path) -> None:
    """After a results folder was moved or copied, point its database to the artifacts next to it.

    MLflow stores absolute artifact paths and has no call to change them.
    """
    database, folder = results_dir / DATABASE, results_dir.resolve() / ARTIFACTS
    if not database.is_file():
        return
    with suppress(sqlite3.Error), closing(sqlite3.connect(database)) as connection, connection:
        for (location,) in connection.execute("SELECT artifact_location FROM experiments").fetchall():
            written = Path(unquote(urlsplit(location or "").path))
            here = (folder / written.name).as_uri()
            if written.parent.name == ARTIFACTS and location != here:
                for table, column in (("experiments", "artifact_location"), ("runs", "artifact_uri")):
                    connection.execute(
                        f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",
                        (here, len(location) + 1, len(location), location),
                    )


def open_experiment(client: MlflowClient, uri: str, results_dir: Path, name: str) -> str:
    """The id of the experiment with that name, created if necessary; UserError if it was deleted."""
    follow_folder(results_dir)
    if experiment := client.get_experiment_by_name(name):
        number = str(experiment.experiment_id)
        if experiment.lifecycle_stage == "deleted":
            raise UserError(
                f"the experiment {name!r} was deleted in MLflow. Restore it: "
                f"MLFLOW_TRACKING_URI={without_password(uri)} mlflow experiments restore --experiment-id {number}"
            )
        return number
    # a server chooses where it keeps artifacts
    location = None if is_server(uri) else (results_dir.resolve() / ARTIFACTS / name).as_uri()
    return str(client.create_experiment(name, artifact_location=location))


# ---- the web interface -------------------------------------------------------------------------------------------


def address_of(uri: str, results_dir: Path) -> str:
    """The web address of the runs: the tracking server, or the interface from `make ui`."""
    if is_server(uri):
        return without_password(uri).rstrip("/")
    with suppress(OSError, ValueError, KeyError, TypeError):
        address = str(json.loads((results_dir / RUNNING).read_text(encoding="utf-8"))["address"])
        if _listens(address):
            return address
    return f"http://127.0.0.1:{PORT}"


def serve(uri: str, results_dir: Path, host: str = "127.0.0.1", port: int = PORT) -> int:
    """Run MLflow's web interface until Ctrl-C; returns the exit status.

    If the store is a tracking server, it only prints the address.
    Raises UserError if there is nothing to show, the address is unusable, or MLflow stops.
    """
    if is_server(uri):
        _show("A tracking server keeps the runs", uri, address_of(uri, results_dir))
        return 0
    database = results_dir / DATABASE
    if uri == default_tracking_uri(results_dir) and "MLFLOW_TRACKING_URI" not in os.environ and not database.exists():
        raise UserError(
            f"expected MLflow's database at {database}, found none: run a benchmark first, such as `make demo`, "
            f"or add records with `python -m benchmarks import`."
        )
    follow_folder(results_dir)
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise UserError(
            f"cannot listen on {host}, port {port} ({error}): choose another port with --port (make: PORT=…), "
            f"or stop the program that uses it."
        ) from None
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    address = f"http://[{local}]:{port}" if ":" in local else f"http://{local}:{port}"
    stores = ["--backend-store-uri", uri, "--registry-store-uri", uri]
    artifacts = ["--artifacts-destination", str(results_dir.resolve() / ARTIFACTS)]
    # one worker, as each takes half a gigabyte
    options = ["--host", host, "--port", str(port), "--workers", "1", "--uvicorn-opts", "--log-level warning"]
    with tempfile.TemporaryFile("w+") as log, interrupted_by("SIGTERM", "SIGHUP"):
        server = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *stores, *artifacts, *options],
            env={"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **os.environ},
            stdout=log,
            stderr=log,
            start_new_session=True,  # so that all its processes end with this one
        )
        try:
            while server.poll() is None and not _listens(address):
                time.sleep(0.2)
            if server.poll() is None:
                with suppress(OSError):  # in a read-only folder, runs print the usual address
                    (results_dir / RUNNING).write_text(json.dumps({"address": address}), encoding="utf-8")
                _show("MLflow (Ctrl-C ends it)", uri, address)
            status = server.wait()
            log.seek(0)
            raise UserError(f"MLflow ended with status {status}. Its last lines:\n{''.join(log.readlines()[-12:])}")
        except KeyboardInterrupt:
            return 0
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(server.pid, number)
                    server.wait(STOP_SECONDS)
            with suppress(OSError):
                (results_dir / RUNNING).unlink()


def _listens(address: str) -> bool:
    parts = urlsplit(address)
    with suppress(OSError):
        socket.create_connection((parts.hostname or "", parts.port or 0), timeout=1).close()
        return True
    return False


def _show(title: str, uri: str, address: str) -> None:
    """Print the address, and a link per experiment with a view of its runs."""
    print(f"{title}: {address}")
    with suppress(Exception):  # MLflow raises its stores' errors; the address is printed anyway
        for entry in connect(uri).search_experiments(order_by=["name ASC"]):
            if PREFIX + ALL_RUNS in entry.tags:
                print(f"{entry.name}:\n  {link(address, entry.experiment_id)}")
    sys.stdout.flush()
