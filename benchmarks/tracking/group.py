"""The runs of one table in MLflow: a parent for the table, a child for each cell. All methods raise as MLflow does."""

from __future__ import annotations

import tempfile
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.record import RoundRecord, RunRecord, write_record
from benchmarks.spec import Cell, digest
from benchmarks.tracking import entries
from benchmarks.tracking.entries import Points
from benchmarks.tracking.shown import About, Shown, is_lower_better
from benchmarks.tracking.store import locked, prepare
from benchmarks.tracking.store import shown as shown_uri
from benchmarks.tracking.summary import Summary, note
from benchmarks.tracking.views import KIND, key_of, link, view_tags, views, web_address
from fedsim.locks import TakenError, held

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Run

# Limits of MLflow's REST API: a request holds 100 parameters, 100 tags, and 1000 entries together.
MAX_METRICS = 800
MAX_PARAMS = 100
MAX_TAGS = 100
MAX_DATASET_DIGEST_LENGTH = 36

PARENT = "mlflow.parentRunId"  # by which MLflow's UI nests runs
NOTE = "mlflow.note.content"  # the description that MLflow's pages show
MIRRORED = "mirrored"  # digest of what a child shows completely: the record, and how its table shows it
LAYOUT = 3  # of names and values in a child; children of an earlier one are made anew from their records
FAILURE = "failure"
DIVERGED = "diverged"  # when, and why, of a cell whose training left the finite numbers


@dataclass
class Child:
    """The run of a cell that goes on."""

    run_id: str
    cell: Cell
    logged: Points
    up: int = 0  # bytes so far
    down: int = 0

    def add(self, rounds: Iterable[RoundRecord]) -> None:
        """Count the bytes of rounds."""
        for entry in rounds:
            self.up, self.down = self.up + entry.up_bytes, self.down + entry.down_bytes


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
        shown: Mapping[str, Shown],
        about: About,
        tasks: Sequence[str],
        client: MlflowClient,
    ) -> None:
        self._locks = results_dir / "locks"
        self._identity = [shown_uri(uri), experiment, name]
        self._leases: dict[str, ExitStack] = {}  # cell_id -> what keeps other invocations from its child
        weakref.finalize(self, _release, self._leases)
        self._client = client
        self._name, self._shown, self._about = name, shown, about
        self._records_dir = results_dir / "records"
        self._running: dict[str, Child] = {}
        self._summary = Summary()
        self._has_failures = False
        has_methods = not shown or not all(cell.is_reference for cell in shown.values())
        named = dict(views(name, tasks, has_methods))
        key = key_of(list(named)[-1] if len(tasks) == 1 else name)
        with held(self._lock("table")):  # two invocations at once would make two runs, where a server keeps them
            self._experiment_id = prepare(uri, results_dir, experiment, client)
            self.link = link(web_address(uri), self._experiment_id, key)
            with locked(uri):
                self._describe_experiment(named)
                self._parent_id = self._open_parent(name, {**tags, "group": name, "kind": "table"})

    def start(self, cell: Cell, cell_id: str, finished: Sequence[RoundRecord]) -> None:
        """Open the child of a cell, or go on with the one that an earlier process left."""
        points = entries.round_points(finished)
        if not self._hold(cell_id):
            return
        child = self._open_child(self._find(cell_id), cell, cell_id, points)
        child.add(finished)
        self._running[cell_id] = child
        self._log_points(child, points, params=entries.params(cell, self._shown_as(cell)), tags={"status": "running"})

    def add_round(self, cell_id: str, entry: RoundRecord) -> None:
        """Log a round of a running cell, in one request; nothing where another invocation has its child."""
        child = self._running.get(cell_id)
        if child is None:
            return
        self._log_points(child, entries.round_points([entry], child.up, child.down))
        child.add([entry])

    def finish(self, record: RunRecord) -> None:
        """Bring all of a record into its child, which is made where there is none; nothing if it is there already."""
        shown = self._shown_as(record.cell)
        self._summary.add(record, shown, self._about)
        if not self._hold(record.cell_id):
            return  # who has it brings it in; and if that one is killed, the next run or an import
        try:
            self._bring(record, shown)
        finally:
            self._free(record.cell_id)

    def _bring(self, record: RunRecord, shown: Shown) -> None:
        child = self._running.get(record.cell_id)
        points = entries.record_points(record, shown, self._about)
        predictions = self._predictions(record)
        all_shown = [
            LAYOUT,
            record.to_json(),
            asdict(shown),
            predictions is not None,
            self._about.is_comparable(record),
        ]
        mirrored = digest(all_shown)
        end_time = None
        if child is not None:
            self._log_points(child, points)
        else:
            run = self._find(record.cell_id)
            if run is not None and run.data.tags.get(MIRRORED) == mirrored:
                return
            start_time, end_time = entries.period(record)
            child = self._open_child(run, record.cell, record.cell_id, points, start_time)
            self._log_points(child, points, end_time, entries.params(record.cell, shown))
        self._client.log_inputs(child.run_id, [_dataset(record)])
        with tempfile.TemporaryDirectory() as folder:
            self._client.log_artifact(child.run_id, str(write_record(Path(folder), record)))
        if predictions is not None:
            self._client.log_artifact(child.run_id, str(predictions))
        self._client.set_terminated(child.run_id, "FAILED" if record.diverged else "FINISHED", end_time)
        diverged = {DIVERGED: f"{record.divergence}: {record.diverged['reason']}"} if record.diverged else {}
        # Last, so that a kill before it leaves work for the next time.
        tags = {**entries.end_tags(record), **self._link(record), **diverged, MIRRORED: mirrored}
        self._log(child.run_id, tags=tags)
        self._running.pop(record.cell_id, None)

    def _lock(self, what: str) -> Path:
        return self._locks / f"mlflow-{digest([*self._identity, what])}"

    def _hold(self, cell_id: str) -> bool:
        """Whether this invocation alone writes a cell's child: what two log at once would stand there twice."""
        if cell_id not in self._leases:
            with ExitStack() as stack:
                try:
                    stack.enter_context(held(self._lock(cell_id), wait=False))
                except TakenError:
                    return False
                self._leases[cell_id] = stack.pop_all()
        return True

    def _free(self, cell_id: str) -> None:
        if cell_id in self._leases:
            self._leases.pop(cell_id).close()

    def _shown_as(self, cell: Cell) -> Shown:
        return self._shown.get(cell.definition_id, Shown())

    def _predictions(self, record: RunRecord) -> Path | None:
        """The file of what a cell answered, where it is at hand."""
        folders = (record.folder, self._records_dir)
        paths = (folder / record.predictions_name for folder in folders if folder is not None)
        return next((path for path in paths if record.predictions and path.is_file()), None)

    def _link(self, record: RunRecord) -> dict[str, str]:
        """The description, and tags that lead to the run of the stage from which a cell began."""
        words = (record.cell, self._name, self._shown_as(record.cell))
        initial = record.inputs.get("initial")
        if initial is None:
            return {NOTE: entries.description(*words)}
        tags = {"initial_cell_id": initial["cell_id"]}
        run = self._find(initial["cell_id"])
        if run is None:
            return {NOTE: entries.description(*words), **tags}
        page = f"#/experiments/{self._experiment_id}/runs/{run.info.run_id}"
        return {NOTE: entries.description(*words, page), **tags, "initial_run_id": run.info.run_id}

    def fail(self, cell: Cell, message: str) -> None:
        """Mark the child of a running cell as failed, with the reason as a tag."""
        self._has_failures = True
        for cell_id, child in list(self._running.items()):
            if child.cell.spec_id == cell.spec_id:
                self._log(child.run_id, tags={FAILURE: message, "status": "failed"})
                self._client.set_terminated(child.run_id, "FAILED")
                del self._running[cell_id]
                self._free(cell_id)

    def log_report(self, paths: Iterable[Path]) -> None:
        """Keep files with the parent; Markdown without `<br>`, which MLflow's pages show as it stands."""
        with tempfile.TemporaryDirectory() as folder:
            for path in paths:
                if path.suffix == ".md":
                    text = path.read_text(encoding="utf-8").replace("<br>", ", ")
                    path = Path(folder) / path.name
                    path.write_text(text, encoding="utf-8")
                self._client.log_artifact(self._parent_id, str(path))

    def close(self, was_stopped: bool) -> None:
        """End the parent, and children that did not come to their end: the next run goes on with both."""
        for child in self._running.values():
            self._log(child.run_id, tags={"status": "stopped"})
            self._client.set_terminated(child.run_id, "KILLED")
        self._close_summary()
        status = "KILLED" if was_stopped or self._running else "FAILED" if self._has_failures else "FINISHED"
        self._client.set_terminated(self._parent_id, status)
        _release(self._leases)

    def _close_summary(self) -> None:
        """Means over seeds as metrics of the parent, and the best method of each task in its description."""
        data = self._client.get_run(self._parent_id).data
        new = {name: value for name, value in self._summary.metrics().items() if data.metrics.get(name) != value}
        tags = self._summary.best()
        text = note(self._about.table or self._name, {**data.tags, **tags})
        self._log(
            self._parent_id, {(entries.key(name), 0): value for name, value in new.items()}, tags={**tags, NOTE: text}
        )

    def _describe_experiment(self, named: Mapping[str, str]) -> None:
        """Set the tags of the experiment that are missing or were different: description and views."""
        found = self._client.get_experiment(self._experiment_id)
        tags = {**KIND, **view_tags(named, is_lower_better(self._shown), found.creation_time or 0)}
        if self._about.paper:
            tags[NOTE] = self._about.paper
        for name, text in tags.items():
            if found.tags.get(name) != text:
                self._client.set_experiment_tag(self._experiment_id, name, text)

    def _open_parent(self, name: str, tags: Mapping[str, str]) -> str:
        run = self._search(f"tags.group = '{name}'")
        if run is None:
            run = self._client.create_run(self._experiment_id, run_name=name)
        run_id = str(run.info.run_id)
        self._client.update_run(run_id, status="RUNNING")
        # a parameter once logged keeps its value
        params = {name: text for name, text in self._about.params.items() if name not in run.data.params}
        self._log(
            run_id, params=params, tags={NOTE: self._about.table or name, **tags} if NOTE not in run.data.tags else tags
        )
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
            params = entries.params(cell, self._shown_as(cell))
            if logged.items() <= points.items() and run.data.params.items() <= params.items():
                self._client.update_run(run.info.run_id, status="RUNNING")
                if FAILURE in run.data.tags:
                    self._client.delete_tag(run.info.run_id, FAILURE)
                return Child(run.info.run_id, cell, logged)
            self._client.delete_run(run.info.run_id)
        shown = self._shown_as(cell)
        tags = {**entries.cell_tags(cell, cell_id, self._name, shown), PARENT: self._parent_id}
        tags |= {NOTE: entries.description(cell, self._name, shown), "status": "running"}
        tags = {name: entries.cut(text, entries.MAX_TAG_LENGTH) for name, text in tags.items()}
        run = self._client.create_run(self._experiment_id, start_time, tags, entries.run_name(cell, shown))
        return Child(run.info.run_id, cell, {})

    def _logged(self, run: Run) -> Points:
        return {
            (name, metric.step): metric.value
            for name in run.data.metrics
            for metric in self._client.get_metric_history(run.info.run_id, name)
        }

    def _log_points(
        self,
        child: Child,
        points: Points,
        timestamp: int | None = None,
        params: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log what the child does not hold yet; timestamp: in milliseconds, None for now."""
        new = {point: value for point, value in points.items() if point not in child.logged}
        self._log(child.run_id, new, timestamp, params, tags)
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


def _release(leases: dict[str, ExitStack]) -> None:
    while leases:
        leases.popitem()[1].close()


def _dataset(record: RunRecord) -> DatasetInput:
    """The data of a run as MLflow shows them: task, digest and where they came from."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    data: Mapping[str, Any] = record.inputs["data"]
    dataset = Dataset(
        name=record.cell.task,
        digest=data["digest"][:MAX_DATASET_DIGEST_LENGTH],
        source_type="origin",
        source=data["origin"],
        profile=entries.data_profile(record),
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "training")])
