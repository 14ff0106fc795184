"""The runs of one table in MLflow: a parent for the table, a child for each cell. All methods raise as MLflow does."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.record import RoundRecord, RunRecord, write_record
from benchmarks.spec import Cell, digest
from benchmarks.tracking import entries
from benchmarks.tracking.entries import Points
from benchmarks.tracking.store import connect, locked, prepare

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Run

# Limits of MLflow's REST API: a request holds 100 parameters, 100 tags, and 1000 entries together.
MAX_METRICS = 800
MAX_PARAMS = 100
MAX_TAGS = 100
MAX_DATASET_DIGEST_LENGTH = 36

PARENT = "mlflow.parentRunId"  # by which MLflow's UI nests runs
MIRRORED = "mirrored"  # digest of the record that a child shows completely
FAILURE = "failure"
DIVERGED = "diverged"  # when, and why, of a cell whose training left the finite numbers


@dataclass
class Child:
    """The run of a cell that goes on."""

    run_id: str
    cell: Cell
    logged: Points
    total_bytes: int = 0


class Group:
    """The parent run of a table and its children.

    A cell that several tables share has a child in each of them, since an MLflow run has one parent.
    """

    def __init__(
        self,
        uri: str,
        results_dir: Path,
        experiment: str,
        name: str,
        tags: Mapping[str, str],
        row_ids: Mapping[str, Sequence[str]],
    ) -> None:
        self._experiment_id = prepare(uri, results_dir, experiment)
        self._client = connect(uri)
        self._row_ids = row_ids
        self._running: dict[str, Child] = {}
        self._has_failures = False
        with locked(uri):
            self._parent_id = self._open_parent(name, {**tags, "group": name})

    def start(self, cell: Cell, cell_id: str, finished: Sequence[RoundRecord]) -> None:
        """Open the child of a cell, or go on with the one that an earlier process left."""
        points = entries.round_points(finished)
        child = self._open_child(self._find(cell_id), cell, cell_id, points)
        child.total_bytes = sum(entry.up_bytes + entry.down_bytes for entry in finished)
        self._running[cell_id] = child
        self._log_points(child, points, params=entries.params(cell))

    def add_round(self, cell_id: str, entry: RoundRecord) -> None:
        """Log a round of a running cell, in one request."""
        child = self._running[cell_id]
        self._log_points(child, entries.round_points([entry], child.total_bytes))
        child.total_bytes += entry.up_bytes + entry.down_bytes

    def finish(self, record: RunRecord) -> None:
        """Bring all of a record into its child, which is made where there is none; nothing if it is there already."""
        child = self._running.get(record.cell_id)
        points = entries.record_points(record)
        mirrored = digest(record.to_json())
        end_time = None
        if child is not None:
            self._log_points(child, points)
        else:
            run = self._find(record.cell_id)
            if run is not None and run.data.tags.get(MIRRORED) == mirrored:
                return
            start_time, end_time = entries.period(record)
            child = self._open_child(run, record.cell, record.cell_id, points, start_time)
            self._log_points(child, points, end_time, entries.params(record.cell))
        self._client.log_inputs(child.run_id, [_dataset(record)])
        with tempfile.TemporaryDirectory() as folder:
            self._client.log_artifact(child.run_id, str(write_record(Path(folder), record)))
        self._client.set_terminated(child.run_id, "FAILED" if record.diverged else "FINISHED", end_time)
        diverged = {DIVERGED: f"{record.divergence}: {record.diverged['reason']}"} if record.diverged else {}
        # Last, so that a kill before it leaves work for the next time.
        tags = {**entries.digest_tags(record), **self._link(record), **diverged, MIRRORED: mirrored}
        self._log(child.run_id, tags=tags)
        self._running.pop(record.cell_id, None)

    def _link(self, record: RunRecord) -> dict[str, str]:
        """Tags that lead to the run of the stage from which a cell began."""
        initial = record.inputs.get("initial")
        if initial is None:
            return {}
        run = self._find(initial["cell_id"])
        return {"initial_cell_id": initial["cell_id"]} | ({"initial_run_id": run.info.run_id} if run else {})

    def fail(self, cell: Cell, message: str) -> None:
        """Mark the child of a running cell as failed, with the reason as a tag."""
        self._has_failures = True
        for cell_id, child in list(self._running.items()):
            if child.cell.spec_id == cell.spec_id:
                self._log(child.run_id, tags={FAILURE: message})
                self._client.set_terminated(child.run_id, "FAILED")
                del self._running[cell_id]

    def log_report(self, paths: Iterable[Path]) -> None:
        """Keep files with the parent."""
        for path in paths:
            self._client.log_artifact(self._parent_id, str(path))

    def close(self, was_stopped: bool) -> None:
        """End the parent, and children that did not come to their end: the next run goes on with both."""
        for child in self._running.values():
            self._client.set_terminated(child.run_id, "KILLED")
        status = "KILLED" if was_stopped or self._running else "FAILED" if self._has_failures else "FINISHED"
        self._client.set_terminated(self._parent_id, status)

    def _open_parent(self, name: str, tags: Mapping[str, str]) -> str:
        run = self._search(f"tags.group = '{name}'")
        if run is None:
            run = self._client.create_run(self._experiment_id, run_name=name)
        run_id = str(run.info.run_id)
        self._client.update_run(run_id, status="RUNNING")
        self._log(run_id, tags=tags)
        return run_id

    def _find(self, cell_id: str) -> Run | None:
        return self._search(f"tags.cell_id = '{cell_id}' and tags.`{PARENT}` = '{self._parent_id}'")

    def _search(self, condition: str) -> Run | None:
        return next(iter(self._client.search_runs([self._experiment_id], condition, max_results=1)), None)

    def _open_child(
        self, run: Run | None, cell: Cell, cell_id: str, points: Points, start_time: int | None = None
    ) -> Child:
        """The child to go on with, a new one unless the run that was found holds nothing but these points.

        It holds others where a checkpoint was lost or a record replaced: it is deleted then, as records are the truth.
        """
        if run is not None:
            logged = self._logged(run)
            if logged.items() <= points.items() and run.data.params.items() <= entries.params(cell).items():
                self._client.update_run(run.info.run_id, status="RUNNING")
                if FAILURE in run.data.tags:
                    self._client.delete_tag(run.info.run_id, FAILURE)
                return Child(run.info.run_id, cell, logged)
            self._client.delete_run(run.info.run_id)
        row_ids = self._row_ids.get(cell.spec_id, ())
        tags = {**entries.cell_tags(cell, cell_id, row_ids), PARENT: self._parent_id}
        run = self._client.create_run(self._experiment_id, start_time, tags, entries.run_name(cell, row_ids))
        return Child(run.info.run_id, cell, {})

    def _logged(self, run: Run) -> Points:
        return {
            (name, metric.step): metric.value
            for name in run.data.metrics
            for metric in self._client.get_metric_history(run.info.run_id, name)
        }

    def _log_points(
        self, child: Child, points: Points, timestamp: int | None = None, params: Mapping[str, str] | None = None
    ) -> None:
        """Log what the child does not hold yet; timestamp: in milliseconds, None for now."""
        new = {point: value for point, value in points.items() if point not in child.logged}
        self._log(child.run_id, new, timestamp, params)
        child.logged |= new

    def _log(
        self,
        run_id: str,
        points: Points | None = None,
        timestamp: int | None = None,
        params: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log entries in as few requests as they fit into."""
        from mlflow.entities import Metric, Param, RunTag

        moment = int(time.time() * 1000) if timestamp is None else timestamp
        metrics = [Metric(name, value, moment, step) for (name, step), value in (points or {}).items()]
        all_params = [Param(name, text) for name, text in (params or {}).items()]
        all_tags = [
            RunTag(entries.key(name), entries.cut(text, entries.MAX_TAG_LENGTH)) for name, text in (tags or {}).items()
        ]
        while metrics or all_params or all_tags:
            self._client.log_batch(run_id, metrics[:MAX_METRICS], all_params[:MAX_PARAMS], all_tags[:MAX_TAGS])
            del metrics[:MAX_METRICS], all_params[:MAX_PARAMS], all_tags[:MAX_TAGS]


def _dataset(record: RunRecord) -> DatasetInput:
    """The data of a run as MLflow shows them: task, digest and where they came from."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    data: Mapping[str, Any] = record.inputs["data"]
    dataset = Dataset(
        name=record.cell.task,
        digest=data["digest"][:MAX_DATASET_DIGEST_LENGTH],
        source_type="origin",
        source=data["origin"],
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "training")])
