"""A table's run in MLflow and the runs below it, one for each cell. All methods raise what MLflow raises."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.dry_run.run_bytes import RunBytes, in_folder, run_bytes, stage_bytes
from benchmarks.results import RoundRecord, RunResult, write_result
from benchmarks.run_config import RunConfig, canonical_json, digest
from benchmarks.running.environment import code_revision
from benchmarks.running.stages import initial_of
from benchmarks.tracking import entries
from benchmarks.tracking.artifacts import answers_file, clients_csv, confusion_csv
from benchmarks.tracking.entries import COMMIT, NOTE, SOURCE, Points
from benchmarks.tracking.store import creating
from benchmarks.tracking.table import MIRRORED, Table
from benchmarks.tracking.views import KIND, table_views

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Run

MAX_METRICS = 800  # MLflow's REST API takes 1000 entries in a request, parameters and tags included
MAX_DATASET_DIGEST_LENGTH = 36
PARENT = "mlflow.parentRunId"  # by which MLflow's pages nest runs
LAYOUT = 4  # of names and values in a run; runs of an earlier layout are replaced from their records


@dataclass
class _Running:
    """A run that this process computes; up, down: bytes of this stage so far."""

    run_id: str
    cell: RunConfig
    up: int = 0
    down: int = 0


class TableRun:
    """The run of a table, which is created with the first of its cells that starts or has a result.

    tasks: those of which this process has seen a result, in order.
    """

    def __init__(self, client: MlflowClient, experiment_id: str, table: Table, results_dir: Path) -> None:
        self._client, self._experiment_id, self._table = client, experiment_id, table
        self._results_dir, self._records_dir = results_dir, results_dir / "records"
        self._running: dict[str, _Running] = {}
        self._parent_id = ""
        self._known = {run.data.tags["_cell_id"]: run.data.tags.get(MIRRORED) for run in self._runs()}
        self.tasks: list[str] = []

    def start(self, cell: RunConfig, cell_id: str, finished: Sequence[RoundRecord]) -> None:
        """Open a run with the rounds of an earlier start, in place of the run that an earlier process left."""
        with creating(self._results_dir):
            self._running[cell_id] = _Running(self._replace(cell, cell_id), cell)
        self._add(self._running[cell_id], finished)

    def add_round(self, cell_id: str, entry: RoundRecord) -> None:
        """Log a round of a run that this process computes."""
        if cell_id in self._running:
            self._add(self._running[cell_id], [entry])

    def finish(self, record: RunResult) -> None:
        """Bring all of a record into its run, which is created if necessary; nothing where it is there already."""
        answers, whole = answers_file(record, self._records_dir), run_bytes(record, in_folder(self._records_dir))
        shown = [asdict(self._table.shown(record.cell)), self._table.comparability(record), answers is not None, whole]
        mirrored = digest([LAYOUT, self._table.name, record.cell_id, record.finished, *shown])
        if self._known.get(record.cell_id) != mirrored:
            with creating(self._results_dir):
                run = self._find(record.cell_id)
                if run is None or run.data.tags.get(MIRRORED) != mirrored:
                    self._bring(record, whole, answers, mirrored)
            self._known[record.cell_id] = mirrored
        if record.cell.task not in self.tasks:
            self.tasks.append(record.cell.task)
            self._describe(record.cell.task)

    def _bring(self, record: RunResult, whole: RunBytes | None, answers: Path | None, mirrored: str) -> None:
        running = self._running.pop(record.cell_id, None)
        stage, start, end = stage_bytes(record), None, None
        if running is None:
            start, end = entries.period(record)
        run_id = running.run_id if running else self._replace(record.cell, record.cell_id, start)
        before = RunBytes(whole.up - stage.up, whole.down - stage.down) if whole is not None else None
        logged = entries.round_points(record.rounds, _begins(record.cell)).keys() if running else set()
        points = entries.round_points(record.rounds, before)
        self._log(run_id, {point: points[point] for point in points.keys() - logged}, end)
        self._client.log_inputs(run_id, [_dataset(record)])
        with tempfile.TemporaryDirectory() as folder:
            write_result(Path(folder), record)
            texts = {"clients.csv": clients_csv(record), "confusion.csv": answers and confusion_csv(record, answers)}
            for name, text in texts.items():
                if text:
                    (Path(folder) / name).write_text(text, encoding="utf-8")
            self._client.log_artifacts(run_id, folder)
        if answers is not None:
            self._client.log_artifact(run_id, str(answers))
        self._client.set_terminated(run_id, "FAILED" if record.diverged else "FINISHED", end)
        # Last, so that a kill before it leaves work for the next time.
        tags = {**entries.end_tags(record, self._table), **self._link(record), MIRRORED: mirrored}
        self._log(run_id, entries.final_points(record, self._table, whole), end, tags=tags)

    def fail(self, cell: RunConfig, message: str) -> None:
        """Mark the run of a cell as failed, with the reason as a tag."""
        for cell_id in [name for name, running in self._running.items() if running.cell.spec_id == cell.spec_id]:
            self._end(self._running.pop(cell_id), "FAILED", {"status": "failed", "failure": message})

    def log_files(self, paths: Iterable[Path]) -> None:
        """Keep files with the table's run."""
        for path in paths:
            self._client.log_artifact(self._parent(), str(path))

    def close(self) -> None:
        """Mark the runs that did not end as stopped; what the table's run says follows from all results in MLflow."""
        while self._running:
            self._end(self._running.popitem()[1], "KILLED", {"status": "stopped"})
        if self._parent_id:
            status, done = self._table.state(self._runs())
            self._log(self._parent_id, tags={"results": f"{done} of {self._table.places} cells" if done else ""})
            if status == "RUNNING":
                self._client.update_run(self._parent_id, status)
            else:
                self._client.set_terminated(self._parent_id, status)

    def _end(self, running: _Running, status: str, tags: Mapping[str, str]) -> None:
        self._log(running.run_id, tags=tags)
        self._client.set_terminated(running.run_id, status)

    def _describe(self, task: str) -> None:
        """Write the experiment's tags that are missing or differ: its description, and the views of a task."""
        found = self._client.get_experiment(self._experiment_id)
        tags = {**KIND, NOTE: self._table.paper, **table_views(self._table, task, found.creation_time or 0)}
        for name, text in tags.items():
            if text and found.tags.get(name) != text:
                self._client.set_experiment_tag(self._experiment_id, name, text)

    def _parent(self) -> str:
        """The id of the table's run, which is created if necessary."""
        if not self._parent_id:
            with creating(self._results_dir):
                run = self._search(f"tags.`_table` = '{self._table.id}' and tags.`_kind` = 'table'")
                self._parent_id = run.info.run_id if run else self._create(self._table.name, self._tags(), None)
            if run is None:
                self._log(self._parent_id, params=self._table.params)
        return self._parent_id

    def _tags(self) -> dict[str, str]:
        what = {NOTE: self._table.title, SOURCE: self._table.command}
        return {**entries.table_tags(self._table, "table"), **what, COMMIT: str(code_revision()["revision"] or "")}

    def _replace(self, cell: RunConfig, cell_id: str, start: int | None = None) -> str:
        """The id of a new run of a cell, in place of one that another process left: records are the truth."""
        tags = {**entries.start_tags(cell, cell_id, self._table), PARENT: self._parent()}
        if (old := self._find(cell_id)) is not None:
            self._client.delete_run(old.info.run_id)
        run_id = self._create(entries.run_name(cell, self._table), tags, start)
        self._log(run_id, params=entries.params(cell, self._table))
        return run_id

    def _create(self, name: str, tags: Mapping[str, str], start: int | None) -> str:
        from mlflow.tracking.context.default_context import DefaultRunContext

        texts = {**DefaultRunContext().tags(), **_within_limits(tags)}  # the user, and the type of source
        return str(self._client.create_run(self._experiment_id, start, texts, name).info.run_id)

    def _add(self, running: _Running, rounds: Sequence[RoundRecord]) -> None:
        self._log(running.run_id, entries.round_points(rounds, _begins(running.cell), running.up, running.down))
        running.up += sum(entry.up_bytes for entry in rounds)
        running.down += sum(entry.down_bytes for entry in rounds)

    def _link(self, record: RunResult) -> dict[str, str]:
        """A tag that leads to the run from which this one begins."""
        cell_id = record.inputs.get("initial", {}).get("cell_id", "")
        run = self._find(cell_id) if cell_id else None
        return {} if run is None else {"begins_from": f"#/experiments/{self._experiment_id}/runs/{run.info.run_id}"}

    def _find(self, cell_id: str) -> Run | None:
        return self._search(f"tags.`_table` = '{self._table.id}' and tags.`_cell_id` = '{cell_id}'")

    def _search(self, condition: str) -> Run | None:
        return next(iter(self._client.search_runs([self._experiment_id], condition, max_results=1)), None)

    def _runs(self) -> list[Run]:
        """All runs below the table's."""
        condition = f"tags.`_table` = '{self._table.id}' and tags.`_kind` = 'run'"
        page = self._client.search_runs([self._experiment_id], condition)
        runs = list(page)
        while page.token:
            page = self._client.search_runs([self._experiment_id], condition, page_token=page.token)
            runs += page
        return runs

    def _log(
        self,
        run_id: str,
        points: Points | None = None,
        timestamp: int | None = None,
        params: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log in as few requests as possible; timestamp: in milliseconds, None for now."""
        from mlflow.entities import Metric, Param, RunTag

        moment = int(time.time() * 1000) if timestamp is None else timestamp
        metrics = [Metric(name, value, moment, step) for (name, step), value in sorted((points or {}).items())]
        for first in range(MAX_METRICS, len(metrics), MAX_METRICS):
            self._client.log_batch(run_id, metrics[first : first + MAX_METRICS])
        texts = [RunTag(name, text) for name, text in _within_limits(tags or {}).items()]
        rest = [Param(name, text) for name, text in (params or {}).items()]
        self._client.log_batch(run_id, metrics[:MAX_METRICS], rest, texts)


def _within_limits(tags: Mapping[str, str]) -> dict[str, str]:
    """Tags that have a text, cut to what MLflow takes."""
    return {entries.key(name): entries.cut(text, entries.MAX_TAG_LENGTH) for name, text in tags.items() if text}


def _begins(cell: RunConfig) -> RunBytes | None:
    """Bytes of earlier runs as they are known while a run computes: there are none if it begins from no other run."""
    return RunBytes(0, 0) if initial_of(cell) is None else None


def _dataset(record: RunResult) -> DatasetInput:
    """The data of a run as MLflow shows them: task, digest, origin, and what else is known of them."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    data: dict[str, Any] = dict(record.inputs["data"])
    content, origin = data.pop("digest")[:MAX_DATASET_DIGEST_LENGTH], data.pop("origin")
    dataset = Dataset(record.cell.task, content, "origin", origin, profile=canonical_json(data))
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "training")])
