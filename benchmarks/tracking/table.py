"""A table in MLflow: how each run appears, and the saved views of its runs.

Everything follows from the table's definition, independent of the part that a command runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.measures import metric
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig, canonical_json

PREFIX = "mlflow.sharedViewState."  # of experiment tags that store views; a view's key follows
ALL_RUNS = "all-runs"  # key of the view with all runs of an experiment
KIND = {"mlflow.experimentKind": "custom_model_development"}  # not language models' traces
# Column -> width in points: method, score and bytes fit a screen of 1440 points next to MLflow's assistant.
_FIRST = {"tags.`method`": 140, "tags.`task`": 58}
_REST = {"metrics.`uplink_MB`": 98, "metrics.`downlink_MB`": 120, "tags.`published`": 185}
_REST |= {"metrics.`difference_to_published`": 160, "tags.`scale`": 70, "tags.`seed`": 60, "tags.`status`": 90}
_REST |= {"tags.`changes`": 160}


@dataclass(frozen=True)
class TableCell:
    """How a table shows a run.

    Args:
        rows: The ids of its rows.
        method: The names of its rows.
        score: Its column's score, "test/f1", or "".
        published: That score in the paper, in the metric's unit.
        is_reference: Whether the paper lacks the row, such as central training.
        command: Repeats the run.
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
    """A table at a scale; with a user's changes it is another table.

    Args:
        id: Letters, digits and hyphens; views select its runs by it.
        name: The name of the table's run.
        changes: The user's changes, or "".
        title: The description for the table's run.
        paper: The description for the experiment.
        scores: Task -> its column's score.
        places: The number of rows × columns.
        has_methods: Whether it shows more than references.
        cells: definition_id -> how it shows that run.
        is_comparable: Whether a record may be compared with the paper.
        scored_at: The rounds of the final score, in words, or "".
        score_of: A record's final score, "test/f1", as the table shows it; None if it has none.
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
    scored_at: str = ""
    score_of: Callable[[RunResult, str], float | None] = lambda record, score: record.score(score, "chosen")

    def shown(self, cell: RunConfig) -> TableCell:
        """How the table shows a run; earlier runs have no row."""
        return self.cells.get(cell.definition_id, TableCell(method=cell.algorithm))

    def views(self, task: str, created: int) -> dict[str, str]:
        """Experiment tags for the views that show a task's results.

        A view of one task omits reference rows, so that its first row is the best method. Other views sort by task.
        created: the experiment's creation time in milliseconds since 1970, so that views never change.
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
            # MLflow 3.17 reads the state as a text, earlier versions as fields
            PREFIX + key: canonical_json({**state, "name": name, "createdAt": created, "state": canonical_json(state)})
            for (key, name), state in states.items()
        }


def link(address: str, experiment_id: str, key: str = ALL_RUNS) -> str:
    """The address of a view's page."""
    mode = "&compareRunsMode=CHART" if key.endswith("-curves") else ""
    # without workflowType, MLflow shows the side bar for language models' traces
    return f"{address}/#/experiments/{experiment_id}/runs?viewStateShareKey={key}{mode}&workflowType=machine_learning"


def _state(condition: str, score: str = "") -> dict[str, Any]:
    """A table of runs, sorted by score, or by task if the runs have no common score."""
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
    """A chart of a score by round: one line per method, the mean over seeds."""
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
