"""Where MLflow keeps runs, and how it is reached: quietly, and without long waits for a server that is down."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from filelock import FileLock

from benchmarks.errors import UserError

if TYPE_CHECKING:
    from mlflow import MlflowClient

DATABASE, ARTIFACTS = "mlflow.db", "mlartifacts"
# Unless the user has set them. By default MLflow retries for many minutes if a server is down.
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
for _name, _value in ENVIRONMENT.items():  # before MLflow is imported
    os.environ.setdefault(_name, _value)


def default_tracking_uri(results_dir: Path) -> str:
    """MLFLOW_TRACKING_URI if it is set, else a SQLite database in the results folder.

    Raises:
        UserError: The variable holds a malformed address of a server.
    """
    if uri := os.environ.get("MLFLOW_TRACKING_URI"):
        if not _is_well_formed(uri):
            raise UserError(
                f"MLFLOW_TRACKING_URI: expected http://host:port, or another URI that MLflow knows, found "
                f"{without_password(uri)!r}. Set it to that of your tracking server, unset it for a database in the "
                "results folder, or run without tracking (--no-tracking)."
            )
        return uri
    # MLflow takes everything else literally, spaces too.
    return "sqlite:///" + str(results_dir.resolve() / DATABASE).replace("%", "%25").replace("?", "%3F")


def _is_well_formed(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        return parts.scheme not in ("http", "https") or (bool(parts.hostname) and parts.port != 0)
    except ValueError:
        return False


def creating(results_dir: Path) -> FileLock:
    """The lock under which anything is created in MLflow, so that two processes never create the same twice."""
    folder = results_dir / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / "mlflow.lock", is_singleton=True)  # a process may take it again while it holds it


def connect(uri: str) -> MlflowClient:
    """A client of the store, which creates a database's schema at its first request (seconds)."""
    from mlflow import MlflowClient
    from mlflow.store.db import utils

    utils.MAX_RETRY_COUNT = 2  # ten attempts to open a missing database take 100 seconds
    if "MLFLOW_LOGGING_LEVEL" not in os.environ:
        logging.getLogger("mlflow").setLevel(logging.CRITICAL)  # its errors are raised, too
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    return MlflowClient(uri)


def open_experiment(client: MlflowClient, uri: str, results_dir: Path, name: str) -> str:
    """The id of the experiment of that name, which is created if necessary; UserError if it was deleted."""
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        # a server has its own place for artifacts
        location = None if is_server(uri) else (results_dir.resolve() / ARTIFACTS / name).as_uri()
        return str(client.create_experiment(name, artifact_location=location))
    if experiment.lifecycle_stage == "deleted":
        raise UserError(
            f"the experiment {name!r} was deleted; to restore it: MLFLOW_TRACKING_URI='{without_password(uri)}' "
            f"python -m mlflow experiments restore --experiment-id {experiment.experiment_id}"
        )
    return str(experiment.experiment_id)


def is_server(uri: str) -> bool:
    """Whether a tracking server keeps the runs, which has its own web interface."""
    return uri.partition("://")[0].lower() in ("http", "https")


def without_password(uri: str) -> str:
    """A URI without its user name and password."""
    place = re.split("[/?#]", uri.partition("//")[2], maxsplit=1)[0]
    return uri.replace(f"{place.rpartition('@')[0]}@", "", 1) if "@" in place else uri
