"""A sink that shows events in MLflow and never costs a run: the first failure switches it off, with one warning."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

from benchmarks.results import RunResult
from benchmarks.running.events import CellFailed, CellFinished, CellStarted, Event, RoundFinished
from benchmarks.tracking.entries import cut
from benchmarks.tracking.server import address_of
from benchmarks.tracking.store import connect, creating, open_experiment, without_password
from benchmarks.tracking.table import Table
from benchmarks.tracking.table_run import TableRun
from benchmarks.tracking.views import link


class Mirror:
    """One table's runs in MLflow: the experiment is the paper, a parent run the table, a child each cell.

    Make it in the main process before workers start, since it may have to create the database (seconds).

    Args:
        uri: MLflow's tracking URI; see `default_tracking_uri`.
        results_dir: Where records are kept, and what the lock and a database's artifacts lie in.
        experiment: Name of the experiment.
        table: The table's definition.
        warn: Says once why tracking is off; the records are kept whatever MLflow does.
    """

    def __init__(self, uri: str, results_dir: Path, experiment: str, table: Table, warn: Callable[[str], None]) -> None:
        self._uri, self._results_dir, self._table, self._warn = uri, results_dir, table, warn
        self._run: TableRun | None = None
        self._experiment_id = ""
        self._attempt(lambda: self._open(experiment))

    def _open(self, experiment: str) -> None:
        with creating(self._results_dir):
            client = connect(self._uri)
            self._experiment_id = open_experiment(client, self._uri, self._results_dir, experiment)
        self._run = TableRun(client, self._experiment_id, self._table, self._results_dir)

    def __call__(self, event: Event) -> None:
        """Show an event."""
        run = self._run
        if run is None:
            return
        match event:
            case CellStarted(cell, cell_id, finished):
                self._attempt(lambda: run.start(cell, cell_id, finished))
            case RoundFinished(cell_id, entry):
                self._attempt(lambda: run.add_round(cell_id, entry))
            case CellFinished(record):
                self._attempt(lambda: run.finish(record))
            case CellFailed(cell, message):
                self._attempt(lambda: run.fail(cell, message))

    def __enter__(self) -> Mirror:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if (run := self._run) is not None:
            self._attempt(run.close)

    def sync(self, records: Iterable[RunResult]) -> None:
        """Bring records into MLflow; nothing changes for those that it shows completely."""
        for record in records:
            self(CellFinished(record, reused=True))

    def log_report(self, paths: Iterable[Path]) -> None:
        """Keep rendered tables and plots as artifacts of the table's run."""
        if (run := self._run) is not None:
            self._attempt(lambda: run.log_files(paths))

    @property
    def links(self) -> list[str]:
        """The pages with the table's runs and its curves, of one task if this process has seen results of one only."""
        tasks = self._run.tasks if self._run is not None else []
        if not tasks:
            return []
        place = f"{self._table.id}-{tasks[0]}" if len(tasks) == 1 and tasks[0] in self._table.scores else self._table.id
        keys = [place, f"{place}-curves"] if place != self._table.id else [place]
        return [link(address_of(self._uri, self._results_dir), self._experiment_id, key) for key in keys]

    def _attempt(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - MLflow raises what its stores raise; no run is lost to it
            self._run = None
            uri = without_password(self._uri)
            reason = cut(" ".join(str(error).replace(self._uri, uri).split()) or type(error).__name__, 400)
            self._warn(
                f"MLflow tracking at {uri} is off from here on ({reason}). Nothing is lost: "
                "results are kept as records, and the same command or `python -m benchmarks import` brings them into "
                "MLflow later."
            )
