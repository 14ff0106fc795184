"""Where MLflow keeps runs, and how it is reached: at once, quietly, and without long waits for what is down."""

from __future__ import annotations

import logging
import os
import platform
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from benchmarks.errors import UserError
from fedsim.locks import TakenError, held

if TYPE_CHECKING:
    from mlflow import MlflowClient

ARTIFACTS = "mlartifacts"
# Unless the user has set them. MLflow's own patience with a server that is down is many minutes.
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


def default_tracking_uri(results_dir: Path) -> str:
    """MLFLOW_TRACKING_URI where it is set, else a SQLite database in the results folder."""
    path = str(results_dir.resolve() / "mlflow.db")
    # Only what would be read as something else: MLflow itself takes the rest, spaces too, as it stands.
    return os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///" + path.replace("%", "%25").replace("?", "%3F")


def require_uri(uri: str) -> None:
    """UserError where a tracking URI can be none, so that no run waits to find out."""
    try:
        parts = urlsplit(uri)
        good = parts.scheme not in ("http", "https") or (bool(parts.hostname) and parts.port != 0)
    except ValueError:
        good = False
    if not good:
        raise UserError(
            f"MLFLOW_TRACKING_URI: expected http://host:port, or another URI that MLflow knows, found {shown(uri)!r}. "
            "Set it to that of your tracking server, unset it for a database in the results folder, or run without "
            "tracking (--no-tracking)."
        )


def prepare(uri: str, results_dir: Path, experiment: str, client: MlflowClient | None = None) -> str:
    """Create what is missing, schema and experiment; returns the experiment's id.

    Creating the schema takes seconds and two processes must not do it at once: the second one waits.
    Raises what MLflow raises where the store cannot be reached or written.
    """
    with locked(uri):
        client = client or connect(uri)
        found = client.get_experiment_by_name(experiment)
        if found is not None:
            return str(found.experiment_id)
        # a server has its own place for artifacts
        location = None if is_server(uri) else (results_dir.resolve() / ARTIFACTS / experiment).as_uri()
        return str(client.create_experiment(experiment, artifact_location=location))


def connect(uri: str) -> MlflowClient:
    """A client of the store; raises what MLflow raises where it cannot be reached."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient
    from mlflow.store.db import utils

    utils.MAX_RETRY_COUNT = 2  # its ten attempts to open a database that is not there take 100 seconds
    if "MLFLOW_LOGGING_LEVEL" not in os.environ:
        logging.getLogger("mlflow").setLevel(logging.CRITICAL)  # what fails is raised too, and said once by us
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)  # a line for each retry
    return MlflowClient(uri)


def is_server(uri: str) -> bool:
    """Whether a tracking server keeps the runs, which has its own web interface."""
    return uri.partition("://")[0].lower() in ("http", "https")


def sqlite_path(uri: str) -> Path | None:
    """File of a SQLite database; None for every other store."""
    if not uri.startswith("sqlite:///"):
        return None
    path = unquote(uri.removeprefix("sqlite:///").partition("?")[0])
    return None if path in ("", ":memory:") or path.startswith("file:") else Path(path)


@contextmanager
def locked(uri: str) -> Iterator[None]:
    """Hold a SQLite database's lock file; a server or another database minds such things itself."""
    path = sqlite_path(uri)
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with held(path.with_name(f"{path.name}.lock")):  # a kill releases it
        yield


@contextmanager
def written_from_here(uri: str) -> Iterator[None]:
    """Write to a store for a block; UserError where that is a SQLite database that another machine writes, too.

    Its locks hold on one machine: over a network file system they may not, and the database be damaged.
    """
    path = sqlite_path(uri)
    if path is None:
        yield
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(held(path.with_name(f"{path.name}.writer"), wait=False))
        except TakenError as holder:
            if holder.host != platform.node():
                raise UserError(
                    f"MLflow's database {path} is written by {holder}, and SQLite is for one machine. Set "
                    "MLFLOW_TRACKING_URI to a tracking server, or run without tracking (--no-tracking): the records "
                    "are shared all the same, and `python -m benchmarks import` brings them into MLflow. If that "
                    f"process no longer runs, remove {path}.writer."
                ) from None
        except OSError:
            pass  # where it cannot be written, the mirror says so
        yield


def shown(uri: str) -> str:
    """A URI without its user name and password."""
    place = re.split("[/?#]", uri.partition("//")[2], maxsplit=1)[0]
    return uri.replace(f"{place.rpartition('@')[0]}@", "", 1) if "@" in place else uri
