"""Links that open an experiment as a table of runs: views that MLflow's web interface keeps as experiment tags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.plain import canonical_json
from benchmarks.tracking.store import is_server, shown

PREFIX = "mlflow.sharedViewState."  # of the tags, before a view's key
ALL_RUNS = "all-runs"  # key of the view of everything in an experiment
KIND = {"mlflow.experimentKind": "custom_model_development"}  # no traces of language models
REFERENCE = "reference"  # tag: "yes" of what is no method of the paper, such as the majority class
LOCAL = "http://127.0.0.1:5000"  # where `make ui` serves
# In points: narrow enough for method, score and bytes on a laptop's first screen, beside the side bars.
COLUMNS = {
    "tags.`method`": 155,
    "tags.`task`": 62,
    "metrics.`score`": 78,
    "metrics.`bytes/uplink`": 98,
    "metrics.`bytes/downlink`": 120,
    "metrics.`reported`": 90,
    "metrics.`difference_to_reported`": 160,
    "tags.`scale`": 70,
    "tags.`seed`": 60,
    "tags.`status`": 90,
}


def views(table: str, tasks: Sequence[str], has_methods: bool = True) -> Iterator[tuple[str, str]]:
    """Name and search condition of the views that a table adds: its cells, and each task's without references.

    So the first row of a task is its winner: a reference, such as central training, competes with no method.
    has_methods: whether the table shows anything but references; if not, a task's view has them.
    """
    of_table = f"tags.`table` = '{table}'"
    competing = f" and tags.`{REFERENCE}` = 'no'" if has_methods else ""
    yield table, of_table
    for task in tasks:
        yield f"{table}, {task}", f"{of_table} and tags.`task` = '{task}'{competing}"


def view_tags(named: Mapping[str, str], lower_is_better: bool, created: int) -> dict[str, str]:
    """Experiment tags of views, the best score first; where all runs are shown, the highest.

    named: name of a view -> its condition. created: when the experiment was made, in milliseconds since 1970, so that
    writing a view again changes nothing.
    """
    every = {PREFIX + ALL_RUNS: _view("All runs", "tags.`kind` = 'cell'", False, created)}
    return every | {PREFIX + key_of(name): _view(name, text, lower_is_better, created) for name, text in named.items()}


def key_of(name: str) -> str:
    """The key of a view: its name in letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def web_address(uri: str) -> str:
    """Where a browser finds a store: a tracking server itself, or `make ui` on this machine."""
    return shown(uri).rstrip("/") if is_server(uri) else LOCAL


def link(address: str, experiment_id: str, key: str = ALL_RUNS) -> str:
    """The page that shows a view."""
    # without the type of work, MLflow's side bar is that of language models' traces
    return f"{address}/#/experiments/{experiment_id}/runs?viewStateShareKey={key}&workflowType=machine_learning"


def _view(name: str, condition: str, lower_is_better: bool, created: int) -> str:
    """A named view as MLflow 3.17 keeps it; older versions read the same state from the object itself."""
    state = {
        "searchFilter": condition,
        "orderByKey": "metrics.`score`",
        "orderByAsc": lower_is_better,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "datasetsFilter": [],
        "selectedColumns": list(COLUMNS),
        "columnOrder": list(COLUMNS),
        "columnWidths": COLUMNS,
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
    }
    return canonical_json({**state, "name": name, "createdAt": created, "state": canonical_json(state)})
