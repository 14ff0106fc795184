"""Links that open an experiment as a table of runs or as curves: views that MLflow keeps as experiment tags."""

from __future__ import annotations

from typing import Any

from benchmarks.measures import metric
from benchmarks.run_config import canonical_json
from benchmarks.tracking.table import Table

PREFIX = "mlflow.sharedViewState."  # of the tags, before a view's key
ALL_RUNS = "all-runs"  # key of the view of everything in an experiment
KIND = {"mlflow.experimentKind": "custom_model_development"}  # no traces of language models
# Column -> width in points, so narrow that method, score and bytes fit a laptop's first screen.
_FIRST = {"tags.`method`": 155, "tags.`task`": 62}
_REST = {"metrics.`uplink_MB`": 105, "metrics.`downlink_MB`": 120, "tags.`published`": 150}
_REST |= {"metrics.`difference_to_published`": 160, "tags.`scale`": 70, "tags.`seed`": 60, "tags.`status`": 90}
_REST |= {"tags.`changes`": 160}
_EMPTY: dict[str, Any] = {"datasetsFilter": [], "runsExpanded": {}, "runsPinned": [], "runsHidden": []}


def table_views(table: Table, task: str, created: int) -> dict[str, str]:
    """Experiment tags: the views in which a result on a task appears. They follow from the table's definition alone.

    A task's view leaves out references, so that its first row is the winner; views of several tasks are sorted by task.

    Args:
        table: The table.
        task: A task that has a result.
        created: When the experiment was created, in milliseconds since 1970; writing a view again changes nothing.
    """
    of_table = f"tags.`_table` = '{table.id}'"
    of_task = f"{of_table} and tags.`task` = '{task}'"
    states = {
        (ALL_RUNS, "All runs"): _state("tags.`_kind` = 'run'"),
        (table.id, table.name): _state(f"{of_table} and tags.`_kind` = 'run'"),
    }
    if score := table.scores.get(task):
        competing = " and tags.`_reference` = 'no'" if table.has_methods else ""
        name = f"{table.name}, {task}"
        states[f"{table.id}-{task}", name] = _state(of_task + competing, score)
        states[f"{table.id}-{task}-curves", f"{name}: score by round"] = _state(of_task, score) | _curves(score)
    return {
        # MLflow 3.17 reads the state as a text, earlier versions the fields themselves
        PREFIX + key: canonical_json({**state, "name": name, "createdAt": created, "state": canonical_json(state)})
        for (key, name), state in states.items()
    }


def link(address: str, experiment_id: str, key: str = ALL_RUNS) -> str:
    """The page that shows a view."""
    mode = "&compareRunsMode=CHART" if key.endswith("-curves") else ""
    # without the type of work, MLflow's side bar is that of language models' traces
    return f"{address}/#/experiments/{experiment_id}/runs?viewStateShareKey={key}{mode}&workflowType=machine_learning"


def _state(condition: str, score: str = "") -> dict[str, Any]:
    """A table of runs: the best score first, or by task if the runs have no common score."""
    shown = "score" if score and metric(score).unit != "%" else "score_percent"
    columns = {**_FIRST, f"metrics.`{shown}`": 110, **_REST}
    return _EMPTY | {
        "searchFilter": condition,
        "orderByKey": "metrics.`score`" if score else "tags.`task`",
        "orderByAsc": not (score and metric(score).higher_is_better),
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "selectedColumns": list(columns),
        "columnOrder": list(columns),
        "columnWidths": columns,
    }


def _curves(score: str) -> dict[str, Any]:
    """One chart of a score by round: a line for each method, the mean over its seeds."""
    chart = {"uuid": "score", "type": "LINE", "metricSectionId": "scores", "runsCountToCompare": 100, "range": {}}
    x_axis = {"xAxisKey": "step", "xAxisScaleType": "linear", "selectedXAxisMetricKey": "", "useGlobalXaxisKey": True}
    y_axis = {"yAxisKey": "metric", "yAxisExpressions": [], "scaleType": "linear", "useGlobalLineSmoothing": True}
    return {
        "compareRunCharts": [{**chart, **x_axis, **y_axis, "metricKey": score, "selectedMetricKeys": [score]}],
        "compareRunSections": [{"uuid": "scores", "name": "Score by round", "display": True, "isReordered": False}],
        "groupBy": {"aggregateFunction": "average", "groupByKeys": [{"mode": "tag", "groupByData": "method"}]},
    }
