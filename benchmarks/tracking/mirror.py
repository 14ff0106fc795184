"""A sink that mirrors events into MLflow, and never costs a cell: the first failure switches it off, with a warning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from benchmarks.events import CellFailed, CellFinished, CellStarted, Event, RoundFinished, Trained
from benchmarks.record import RunRecord
from benchmarks.tracking.entries import cut
from benchmarks.tracking.group import Group
from benchmarks.tracking.patience import Courier, Patience
from benchmarks.tracking.shown import About, Shown
from benchmarks.tracking.store import connect, is_server
from benchmarks.tracking.store import shown as shown_uri


class Mirror:
    """Mirror of one table's cells in MLflow: the experiment is the paper, a parent run the table, a child each cell.

    Made in the main process, before workers start, since it may have to create the database (seconds).
    Nothing here raises for what MLflow or its store cannot do: `warn` says once that tracking is off, and the
    records, which are the truth, are mirrored by the next run or by `sync`. A server is waited for some seconds in all
    (`patience.py`).

    uri: MLflow's tracking URI; see `default_tracking_uri`.
    group: name of the table's run, such as "fedsplitbert-table3 @ lite"; a run of that name goes on.
    shown: definition_id of a cell -> how the table shows it. about: the table and its paper in words.
    tasks: those of the table that get a view of their own.
    """

    def __init__(
        self,
        uri: str,
        results_dir: Path,
        group: str,
        group_tags: Mapping[str, str],
        *,
        experiment: str,
        warn: Callable[[str], None],
        shown: Mapping[str, Shown] | None = None,
        about: About | None = None,
        tasks: Sequence[str] = (),
    ) -> None:
        self.uri = uri
        self._warn = warn
        self._group: Group | None = None
        self._patience = Patience()
        self._courier: Courier | None = None
        told = shown or {}, about or About(), tasks

        def build() -> None:
            self._group = Group(uri, results_dir, experiment, group, group_tags, *told, watched)

        try:
            watched = connect(uri)
            if is_server(uri):
                watched = self._patience.watched(watched)
                self._courier = Courier(self._patience)
            self._do(build)
        except Exception as error:  # noqa: BLE001 - as in _attempt
            self._switch_off(error)

    def __call__(self, event: Event) -> None:
        """Mirror an event."""
        if isinstance(event, Trained):  # many a second, and nothing to keep
            return
        self._attempt(lambda group: _mirror(group, event))

    def __enter__(self) -> Mirror:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._attempt(lambda group: group.close(was_stopped=kind is not None))
        if self._courier is not None:
            self._courier.close()

    def sync(self, records: Iterable[RunRecord]) -> None:
        """Bring every record into MLflow that it does not show completely, from the record alone.

        Nothing else is held up by it, so a slow server is waited for at each record anew.
        """
        for record in records:
            self._patience.renew()
            self._attempt(lambda group, record=record: group.finish(record))  # type: ignore[misc]
        self._patience.renew()

    def log_report(self, paths: Iterable[Path]) -> None:
        """Keep rendered tables and plots as artifacts of the table's run."""
        self._attempt(lambda group: group.log_report(paths))

    @property
    def link(self) -> str | None:
        """The page that shows the table's runs; None where tracking is off."""
        return self._group.link if self._group is not None else None

    def _attempt(self, action: Callable[[Group], None]) -> None:
        group = self._group
        if group is None:
            return
        try:
            self._do(lambda: action(group))
        except Exception as error:  # noqa: BLE001 - MLflow raises what its stores raise; no cell is lost to it
            self._switch_off(error)

    def _do(self, action: Callable[[], None]) -> None:
        if self._courier is None:
            action()
        else:
            self._courier(action)

    def _switch_off(self, error: Exception) -> None:
        self._group = None
        reason = cut(" ".join(str(error).split()) or type(error).__name__, 300)
        self._warn(
            f"MLflow tracking at {shown_uri(self.uri)} is off from here on ({reason}). Nothing is lost: results are "
            f"kept as records, and the next run or `python -m benchmarks import` brings them into MLflow."
        )


def _mirror(group: Group, event: Event) -> None:
    match event:
        case CellStarted(cell, cell_id, finished):
            group.start(cell, cell_id, finished)
        case RoundFinished(cell_id, entry):
            group.add_round(cell_id, entry)
        case CellFinished(record):
            group.finish(record)
        case CellFailed(cell, message):
            group.fail(cell, message)
