"""A listener that logs a table to MLflow: a parent run for the table, and a child run per cell.

An MLflow failure never affects results: the first one turns tracking off, with one warning.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.tracking.context.default_context import DefaultRunContext

from benchmarks.results import RoundRecord, RunBytes, RunResult, run_bytes, stage_bytes, write_result
from benchmarks.run_config import RunConfig, digest
from benchmarks.running.completed import in_folder, initial_of
from benchmarks.running.events import CellFailed, CellFinished, CellStarted, Event, RoundFinished
from benchmarks.running.process import code_revision
from benchmarks.tracking import entries
from benchmarks.tracking.entries import COMMIT, NOTE, SOURCE, Points
from benchmarks.tracking.store import address_of, connect, creating, open_experiment, without_password
from benchmarks.tracking.table import KIND, Table, link

MAX_METRICS = 800  # MLflow's REST API takes 1000 entries in a request, parameters and tags included
MAX_RUNS = 50_000  # per answer from MLflow
PARENT = "mlflow.parentRunId"  # nests runs on MLflow's pages
MIRRORED = "_mirrored"  # tag for a run with a whole record: a digest of everything that it shows
LAYOUT = 6  # version of a run's names and values; runs with an earlier layout are replaced from their records


@dataclass
class _LiveRun:
    """A run that this process logs, its rounds so far, and the points that MLflow has."""

    run_id: str
    cell: RunConfig
    rounds: list[RoundRecord] = field(default_factory=list)
    logged: set[tuple[str, int]] = field(default_factory=set)


class Mirror:
    """One table's runs in MLflow: the experiment is the paper, a parent run the table, and each child run a cell.

    Create it in the main process before workers start, as creating the database may take seconds. results_dir: the
    folder for records, the lock and a database's artifacts. warn: called once with the reason if tracking fails.
    """

    def __init__(self, uri: str, results_dir: Path, experiment: str, table: Table, warn: Callable[[str], None]) -> None:
        self._uri, self._results_dir, self._table, self._warn = uri, results_dir, table, warn
        self._is_on, self._parent_id = True, ""
        self._live: dict[str, _LiveRun] = {}  # by cell_id
        self._tasks: list[str] = []  # of the results that this process has seen
        self._attempt(self._open, experiment)

    def __call__(self, event: Event) -> None:
        match event:
            case CellStarted(cell, cell_id, finished):
                self._attempt(self._start, cell, cell_id, finished)
            case RoundFinished(cell_id, entry):
                self._attempt(self._add, cell_id, [entry])
            case CellFinished(record):
                self._attempt(self._finish, record)
            case CellFailed(cell, message):
                self._attempt(self._end, "FAILED", {"status": "failed", "failure": message}, cell.spec_id)

    def close(self) -> None:
        """Mark unfinished runs as stopped, and set the table's state from all results in MLflow."""
        self._attempt(self._end, "KILLED", {"status": "stopped"})
        if self._parent_id:
            self._attempt(self._set_state)

    def sync(self, records: Iterable[RunResult]) -> None:
        """Log records to MLflow, except those that it shows completely."""
        for record in records:
            self(CellFinished(record, reused=True))

    def log_report(self, paths: Iterable[Path]) -> None:
        """Log rendered tables and plots as artifacts of the table's run."""
        for path in paths:
            self._attempt(lambda path=path: self._client.log_artifact(self._parent(), str(path)))

    @property
    def links(self) -> list[str]:
        """The pages with the table's runs and curves; for one task if this process has seen only its results."""
        if not self._is_on or not self._tasks:
            return []
        keys = [self._table.id]
        if len(self._tasks) == 1 and self._tasks[0] in self._table.scores:
            keys = [f"{self._table.id}-{self._tasks[0]}", f"{self._table.id}-{self._tasks[0]}-curves"]
        return [link(address_of(self._uri, self._results_dir), self._experiment_id, key) for key in keys]

    def _attempt(self, action: Callable[..., None], *arguments: Any) -> None:
        if not self._is_on:
            return
        try:
            action(*arguments)
        except Exception as error:  # noqa: BLE001 - MLflow raises its stores' errors; runs continue
            self._is_on = False
            uri = without_password(self._uri)
            reason = " ".join(str(error).replace(self._uri, uri).split())[:400] or type(error).__name__
            self._warn(
                f"MLflow tracking at {uri} is off from now on ({reason}). Results are still recorded; the same command "
                f"or `python -m benchmarks import {self._results_dir / 'records'}` adds them to MLflow later."
            )

    def _open(self, experiment: str) -> None:
        with creating(self._results_dir):
            self._client = connect(self._uri)
            self._experiment_id = open_experiment(self._client, self._uri, self._results_dir, experiment)
        self._mirrored = {run.data.tags["_cell_id"]: run.data.tags.get(MIRRORED) for run in self._search("run")}

    def _start(self, cell: RunConfig, cell_id: str, finished: Sequence[RoundRecord]) -> None:
        """Open a run with the rounds from before a restart."""
        self._live[cell_id] = self._create(cell, cell_id)
        self._add(cell_id, finished)

    def _add(self, cell_id: str, rounds: Sequence[RoundRecord]) -> None:
        if live := self._live.get(cell_id):
            live.rounds += rounds
            # With earlier runs, total bytes are known only at the end.
            self._log_rounds(live, RunBytes(0, 0) if initial_of(live.cell) is None else None)

    def _finish(self, record: RunResult) -> None:
        """Log a whole record to its run, which is created if necessary."""
        records_dir = self._results_dir / "records"
        answers, total = entries.answers_file(record, records_dir), run_bytes(record, in_folder(records_dir))
        tags, shown = entries.end_tags(record, self._table), asdict(self._table.shown(record.cell))
        content = [LAYOUT, self._table.name, record.cell_id, record.finished, shown, tags, bool(answers), total]
        mirrored = digest(content)
        if self._mirrored.get(record.cell_id) != mirrored:
            with creating(self._results_dir):
                run = self._find(record.cell_id)
                if run is None or run.data.tags.get(MIRRORED) != mirrored:
                    self._bring(record, total, answers, tags | {MIRRORED: mirrored})
            self._mirrored[record.cell_id] = mirrored
        if record.cell.task not in self._tasks:
            self._tasks.append(record.cell.task)
            self._write_views(record.cell.task)

    def _bring(self, record: RunResult, total: RunBytes | None, answers: Path | None, tags: Mapping[str, str]) -> None:
        live = self._live.pop(record.cell_id, None) or self._create(record.cell, record.cell_id)
        live.rounds, run_id, stage = list(record.rounds), live.run_id, stage_bytes(record)
        self._log_rounds(live, RunBytes(total.up - stage.up, total.down - stage.down) if total is not None else None)
        with tempfile.TemporaryDirectory() as folder:
            write_result(Path(folder), record)
            texts = {"clients.csv": entries.clients_csv(record)}
            texts["confusion.csv"] = entries.confusion_csv(record, answers) if answers else ""
            for name, text in texts.items():
                if text:
                    (Path(folder) / name).write_text(text, encoding="utf-8")
            self._client.log_artifacts(run_id, folder)
        if answers is not None:
            self._client.log_artifact(run_id, str(answers))
        self._client.set_terminated(run_id, "FAILED" if record.diverged else "FINISHED")
        if begins_from := self._find(record.inputs.get("initial", {}).get("cell_id", "")):
            tags = {**tags, "begins_from": f"#/experiments/{self._experiment_id}/runs/{begins_from.info.run_id}"}
        # Last, so that a killed process's work is repeated next time.
        self._log(run_id, entries.final_points(record, self._table, total), tags=tags)

    def _end(self, status: str, tags: Mapping[str, str], spec_id: str = "") -> None:
        """End the running runs, or only that of one configuration."""
        for cell_id, live in list(self._live.items()):
            if spec_id in ("", live.cell.spec_id):
                del self._live[cell_id]
                self._log(live.run_id, tags=tags)
                self._client.set_terminated(live.run_id, status)

    def _set_state(self) -> None:
        """Set the table run's status and number of cells with a result, from its child runs."""
        runs = self._search("run")
        results = [run.data.tags for run in runs if MIRRORED in run.data.tags]
        others = {run.info.status for run in runs if MIRRORED not in run.data.tags}
        done = {(row, tags["task"]) for tags in results for row in tags.get("_rows", "").split(",") if row}
        self._log(self._parent_id, tags={"results": f"{len(done)} of {self._table.places} cells" if done else ""})
        if "RUNNING" in others and not 0 < self._table.places <= len(done):
            self._client.update_run(self._parent_id, "RUNNING")
        else:
            stopped = "FAILED" if "FAILED" in others else "KILLED" if others else "FINISHED"
            self._client.set_terminated(self._parent_id, "FINISHED" if results else stopped)

    def _write_views(self, task: str) -> None:
        """Write the experiment's missing or changed tags: its description, and a task's views."""
        experiment = self._client.get_experiment(self._experiment_id)
        views = self._table.views(task, experiment.creation_time or 0)
        for name, text in {**KIND, NOTE: self._table.paper, **views}.items():
            if text and experiment.tags.get(name) != text:
                self._client.set_experiment_tag(self._experiment_id, name, text)

    def _parent(self) -> str:
        """The id of the table's run, created if necessary."""
        if not self._parent_id:
            with creating(self._results_dir):
                runs = self._search("table")
                tags = {NOTE: self._table.title, SOURCE: self._table.command}
                tags |= entries.table_tags(self._table, "table") | {COMMIT: str(code_revision()["revision"] or "")}
                self._parent_id = runs[0].info.run_id if runs else self._create_run(self._table.name, tags)
        return self._parent_id

    def _create(self, cell: RunConfig, cell_id: str) -> _LiveRun:
        """Create a cell's run, and replace another process's run, as records are authoritative."""
        with creating(self._results_dir):
            tags = {**entries.start_tags(cell, cell_id, self._table), PARENT: self._parent()}
            if old := self._find(cell_id):
                self._client.delete_run(old.info.run_id)
            live = _LiveRun(self._create_run(entries.run_name(cell, self._table), tags), cell)
        self._log(live.run_id, params=entries.params(cell, self._table))
        return live

    def _create_run(self, name: str, tags: Mapping[str, str]) -> str:
        texts = {name: text for name, text in {**DefaultRunContext().tags(), **tags}.items() if text}
        return str(self._client.create_run(self._experiment_id, tags=texts, run_name=name).info.run_id)

    def _find(self, cell_id: str) -> Run | None:
        return next(iter(self._search("run", f" and tags.`_cell_id` = '{cell_id}'")), None) if cell_id else None

    def _search(self, kind: str, condition: str = "") -> Sequence[Run]:
        """The table's run ("table"), or its child runs ("run")."""
        condition = f"tags.`_table` = '{self._table.id}' and tags.`_kind` = '{kind}'{condition}"
        return list(self._client.search_runs([self._experiment_id], condition, max_results=MAX_RUNS))

    def _log_rounds(self, live: _LiveRun, earlier: RunBytes | None) -> None:
        """Log the points of a run's rounds that MLflow lacks."""
        points = entries.round_points(live.rounds, earlier)
        self._log(live.run_id, {point: value for point, value in points.items() if point not in live.logged})
        live.logged |= points.keys()

    def _log(
        self, run_id: str, points: Points | None = None, *, params: Mapping[str, str] = {}, tags: Mapping[str, str] = {}
    ) -> None:
        """Log in as few requests as possible."""
        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, step) for (name, step), value in sorted((points or {}).items())]
        for first in range(MAX_METRICS, len(metrics), MAX_METRICS):
            self._client.log_batch(run_id, metrics[first : first + MAX_METRICS])
        texts = [RunTag(name, text) for name, text in tags.items() if text]
        rest = [Param(name, text) for name, text in params.items()]
        self._client.log_batch(run_id, metrics[:MAX_METRICS], rest, texts)
