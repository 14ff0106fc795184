"""What MLflow shows of a table: how each run appears in it, and the saved views that list its runs.

All of this follows from the table's definition, never from the part of it that a command runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.measures import metric
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig, canonical_json

PREFIX = "mlflow.sharedViewState."  # of the experiment tags in which MLflow keeps views, before a view's key
ALL_RUNS = "all-runs"  # key of the view of everything in an experiment
KIND = {"mlflow.experimentKind": "custom_model_development"}  # no traces of language models
# Column -> width in points: method, score and bytes fit a screen of 1440 points next to MLflow's assistant.
_FIRST = {"tags.`method`": 140, "tags.`task`": 58}
_REST = {"metrics.`uplink_MB`": 98, "metrics.`downlink_MB`": 120, "tags.`published`": 185}
_REST |= {"metrics.`difference_to_published`": 160, "tags.`scale`": 70, "tags.`seed`": 60, "tags.`status`": 90}
_REST |= {"tags.`changes`": 160}


@dataclass(frozen=True)
class TableCell:
    """How a table shows a run.

    rows, method: ids and names of the rows that show it. score: the score of its column, "test/f1", or "".
    published: that score in the paper, in the metric's unit. is_reference: whether it is no row of the paper, such as
    central training. command: repeats the run.
    """

    rows: tuple[str, ...] = ()
    method: str = ""
    score: str = ""
    published: float | None = None
    is_reference: bool = False
    command: str = ""

    @property
    def published_text(self) -> str:
        """The published score with its unit, or ""."""
        return "" if self.published is None else metric(self.score).in_unit(f"{self.published:g}")


@dataclass(frozen=True)
class Table:
    """A table at a scale; a user's changes make it another table.

    id: letters, digits and hyphens, by which views select its runs. name: of its run. changes: the user's, or "".
    title, paper: descriptions of the table's run and of the experiment. scores: task -> the score of its column.
    places: the number of rows × columns. has_methods: whether it shows anything but references.
    cells: definition_id -> how it shows that run. is_comparable: whether a record may be compared with the paper.
    """

    id: str
    name: str
    changes: str = ""
    title: str = ""
    paper: str = ""
    scores: Mapping[str, str] = field(default_factory=dict)
    places: int = 0
    has_methods: bool = True
    command: str = ""
    cells: Mapping[str, TableCell] = field(default_factory=dict)
    is_comparable: Callable[[RunResult], bool] = lambda record: False

    def shown(self, cell: RunConfig) -> TableCell:
        """How the table shows a run; an earlier run, from which others begin, has no row."""
        return self.cells.get(cell.definition_id, TableCell(method=cell.algorithm))

    def views(self, task: str, created: int) -> dict[str, str]:
        """Experiment tags: the views in which a result on a task appears.

        A view of one task leaves out reference rows, so its first row is the best method. Other views are sorted by
        task.

        Args:
            task: A task that has a result.
            created: When the experiment was created, in milliseconds since 1970, so that a view never changes.
        """
        of_table = f"tags.`_table` = '{self.id}'"
        of_task = f"{of_table} and tags.`task` = '{task}'"
        states = {
            (ALL_RUNS, "All runs"): _state("tags.`_kind` = 'run'"),
            (self.id, self.name): _state(f"{of_table} and tags.`_kind` = 'run'"),
        }
        if score := self.scores.get(task):
            competing = " and tags.`_reference` = 'no'" if self.has_methods else ""
            name = f"{self.name}, {task}"
            states[f"{self.id}-{task}", name] = _state(of_task + competing, score)
            states[f"{self.id}-{task}-curves", f"{name}: score by round"] = _state(of_task, score) | _curves(score)
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
    columns = {**_FIRST, f"metrics.`{shown}`": 106, **_REST}
    return {
        "datasetsFilter": [],
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "searchFilter": condition,
        "orderByKey": "metrics.`score`" if score else "tags.`task`",
        "orderByAsc": not (score and metric(score).higher_is_better),
        "selectedColumns": list(columns),
        "columnOrder": list(columns),
        "columnWidths": columns,
    }


def _curves(score: str) -> dict[str, Any]:
    """One chart of a score by round: a line for each method, its mean over seeds."""
    chart = {"uuid": "score", "type": "LINE", "metricSectionId": "scores", "runsCountToCompare": 100, "range": {}}
    x_axis = {"xAxisKey": "step", "xAxisScaleType": "linear", "selectedXAxisMetricKey": "", "useGlobalXaxisKey": True}
    y_axis = {"yAxisKey": "metric", "yAxisExpressions": [], "scaleType": "linear", "useGlobalLineSmoothing": True}
    section = {"uuid": "scores", "name": "Score by round", "display": True, "isReordered": False, "columns": 1}
    return {
        "compareRunCharts": [{**chart, **x_axis, **y_axis, "metricKey": score, "selectedMetricKeys": [score]}],
        "compareRunSections": [section],
        "isAccordionReordered": True,  # keeps it above the sections that MLflow adds and would sort by name
        "groupBy": {"aggregateFunction": "average", "groupByKeys": [{"mode": "tag", "groupByData": "method"}]},
    }
