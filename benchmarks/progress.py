"""What a person sees while cells run: each running cell's round, how many are done, and about how long is left."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from benchmarks.events import CellFailed, CellFinished, CellStarted, CellWaits, Event, RoundFinished, Trained
from benchmarks.measures import metric
from benchmarks.record import RunRecord
from benchmarks.spec import Cell
from benchmarks.tasks import task
from benchmarks.timings import Timings

QUIET_SECONDS = 60.0  # after which a log is told that cells still train
SHOWN = 3  # cells in such a line; a server may run dozens


class ProgressDisplay:
    """A sink: live bars in a terminal; elsewhere a line per finished cell, and one a minute while none finishes."""

    def __init__(
        self,
        title: str,
        cells: Sequence[Cell],
        names: dict[str, str],
        console: Console | None = None,
        timings: Timings | None = None,
    ) -> None:
        self.console = console or Console(stderr=True)
        self.names = names  # spec_id -> "MRPC · FedAvg · seed 0"
        self.estimate = Estimate(cells, timings)
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=self.console,
        )
        self.total = self.bars.add_task(title, total=len(cells), note="")
        self.running: dict[str, tuple[TaskID, Cell]] = {}
        self.reasons: set[str] = set()  # why cells failed, each said once
        self.notes: set[str] = set()  # on how cells run, each said once
        self.done = 0
        self.heard = time.monotonic()  # when the last line was printed

    def __enter__(self) -> ProgressDisplay:
        if self.console.is_terminal:
            self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self.bars.stop()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case CellStarted(cell, cell_id, finished, examples, note):
                if note and note not in self.notes:
                    self.notes.add(note)
                    self._line(note)
                done = sum(examples[: len(finished)])
                if cell_id in self.running:  # of a worker that was lost; another goes on
                    self.bars.remove_task(self.running.pop(cell_id)[0])
                bar = self.bars.add_task(f"  {self._name(cell)}", total=sum(examples), completed=done, note="")
                self.running[cell_id] = (bar, cell)
                self.estimate.started(cell, cell_id, examples, len(finished))
                if finished:
                    self._line(f"{self._name(cell)}: goes on after round {len(finished)} of {cell.training.last_round}")
            case Trained(cell_id, examples) if cell_id in self.running:
                self.bars.advance(self.running[cell_id][0], examples)
                self.estimate.trained(cell_id, examples)
                self.bars.update(self.total, note=self.estimate.text())
                self._still_running()
            case RoundFinished(cell_id, result) if cell_id in self.running:
                bar, cell = self.running[cell_id]
                loss = "" if result.train_loss is None else f", loss {result.train_loss:.3f}"
                self.bars.update(bar, note=f"round {result.round} of {cell.training.last_round}{loss}")
            case CellFinished(record, reused):
                self._finished(record.cell, record.cell_id, "found" if reused else f"{self._headline(event)}")
            case CellWaits(cell, holder):
                self._line(f"{self._name(cell)}: {holder} computes it; its record is waited for")
            case CellFailed(cell, message):
                running = (key for key, (_, other) in self.running.items() if other.spec_id == cell.spec_id)
                outcome = "failed for the same reason" if message in self.reasons else f"failed: {message}"
                self.reasons.add(message)
                self._finished(cell, next(running, ""), outcome)

    def _finished(self, cell: Cell, cell_id: str, outcome: str) -> None:
        self.done += 1
        self.estimate.finished(cell, cell_id)
        self.bars.update(self.total, completed=self.done, note=self.estimate.text())
        if cell_id in self.running:
            self.bars.remove_task(self.running.pop(cell_id)[0])
        self._line(
            f"[{self.done}/{self.estimate.cells}] {self._name(cell)}: {outcome}  {self.estimate.text()}".rstrip()
        )

    def _still_running(self) -> None:
        """Tell a log, which has no bars, how far cells are."""
        if self.console.is_terminal or time.monotonic() - self.heard < QUIET_SECONDS:
            return
        trained = {bar.id: bar.percentage for bar in self.bars.tasks}
        parts = [f"{self._name(cell)} {trained[bar]:.0f} %" for bar, cell in self.running.values()]
        if len(parts) > SHOWN:
            parts[SHOWN:] = [f"{len(parts) - SHOWN} more"]
        self._line(f"[{self.done}/{self.estimate.cells}] {'; '.join(parts)}  {self.estimate.text()}".rstrip())

    def _headline(self, event: CellFinished) -> str:
        record = event.record
        if record.diverged:
            return f"{record.divergence}: {record.diverged['reason']}"
        shown = ", ".join(_shown(name, value) for name, value in _headline_scores(record).items())
        return f"{shown} in {duration(record.timing['setup_seconds'] + record.timing['train_seconds'])}".lstrip()

    def _name(self, cell: Cell) -> str:
        return self.names.get(cell.spec_id, cell.label)

    def _line(self, text: str) -> None:
        self.heard = time.monotonic()
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def _headline_scores(record: RunRecord) -> Mapping[str, float | None]:
    """The last round's scores: of the evaluation that the task names first, or else of the first that there is."""
    scores = record.rounds[-1].scores
    first = task(record.cell.task).evaluations[0]
    return scores.get(first, next(iter(scores.values()), {}))


def _shown(name: str, value: float | None) -> str:
    found = metric(name)
    return f"{found.label} {'undefined' if value is None else f'{found.shown(value):.2f}'}"


class Estimate:
    """About how long is left: what is still to train, by the seconds that an example of each method took so far.

    A cell that has not begun is taken to be as large as another of its task and budget. Of a method or budget that no
    cell has shown yet, earlier records tell the seconds, times what this machine takes of theirs; without any, it is as
    large as the mean cell and as quick. As many cells as so far go on side by side.
    """

    def __init__(self, cells: Sequence[Cell], timings: Timings | None = None) -> None:
        self.cells = len(cells)
        timings = timings or Timings()
        self.told = {cell.spec_id: timings.seconds(cell) for cell in cells}  # seconds, by earlier records
        self.waiting = {cell.spec_id: cell for cell in cells if cell.spec_id not in timings.finished}
        self.sizes: dict[Kind, float] = {}
        self.running: dict[str, tuple[Cell, float]] = {}  # and when it was last heard of
        self.left: dict[str, int] = {}  # running cells: examples still to train
        self.seconds: defaultdict[Method, float] = defaultdict(float)  # of cells, so of several side by side each
        self.seen: Counter[Method] = Counter()  # examples
        self.recorded_pace: dict[str, float] = {}  # of running cells: seconds of an example, by earlier records
        self.recorded = self.compared = 0.0  # seconds of the same training, by earlier records and here
        self.start: float | None = None

    def started(self, cell: Cell, cell_id: str, round_examples: Sequence[int], finished_rounds: int) -> None:
        """A cell begins, or goes on. round_examples: what each of its rounds trains."""
        self.waiting.pop(cell.spec_id, None)
        self.sizes[_kind(cell)] = sum(round_examples)
        self.left[cell_id] = sum(round_examples[finished_rounds:])
        if (recorded := self.told.get(cell.spec_id)) is not None:
            self.recorded_pace[cell_id] = recorded / max(sum(round_examples), 1)
        now = time.monotonic()
        self.running[cell_id] = cell, now
        self.start = self.start if self.start is not None else now

    def trained(self, cell_id: str, examples: int) -> None:
        """Examples were trained."""
        self.left[cell_id] -= examples
        cell, before = self.running[cell_id]
        now = time.monotonic()
        self.running[cell_id] = cell, now
        self.seconds[_method(cell)] += now - before
        self.seen[_method(cell)] += examples
        if cell_id in self.recorded_pace:
            self.recorded += examples * self.recorded_pace[cell_id]
            self.compared += now - before

    def finished(self, cell: Cell, cell_id: str) -> None:
        """A cell is done; it may have been found done, or need no training."""
        self.waiting.pop(cell.spec_id, None)
        if self.left.pop(cell_id, 0):
            self.sizes.pop(_kind(cell), None)
        _, before = self.running.pop(cell_id, (cell, None))
        if before is not None:  # scoring, and the like
            self.seconds[_method(cell)] += time.monotonic() - before

    def seconds_left(self) -> float | None:
        """Seconds, None while too little is known: less than a hundredth of what a cell trains."""
        if self.start is None or not self.sizes:
            return None
        typical = sum(self.sizes.values()) / len(self.sizes)
        if self.seen.total() < max(1.0, typical / 100):
            return None
        running = (examples * self._pace(_method(self.running[name][0])) for name, examples in self.left.items())
        waiting = (self._seconds_of(cell, self.told[spec_id], typical) for spec_id, cell in self.waiting.items())
        side_by_side = sum(self.seconds.values()) / max(time.monotonic() - self.start, 1e-9)
        return (sum(running) + sum(waiting)) / max(side_by_side, 1e-9)

    def _seconds_of(self, cell: Cell, told: float | None, typical: float) -> float:
        """Of a cell that has not begun. told: by earlier records; typical: examples that the mean cell trains."""
        if told is None or (self.seen[_method(cell)] and _kind(cell) in self.sizes):
            return self.sizes.get(_kind(cell), typical) * self._pace(_method(cell))
        return told * (self.compared / self.recorded if self.recorded else 1.0)

    def _pace(self, method: Method) -> float:
        """Seconds of an example."""
        if not self.seen[method]:
            return sum(self.seconds.values()) / self.seen.total()
        return self.seconds[method] / self.seen[method]

    def text(self) -> str:
        """The estimate in words."""
        left = self.seconds_left()
        return "" if not left else f"about {duration(left)} left"


Kind = tuple[str, int, int, int, float]
Method = tuple[str, str, str]


def _kind(cell: Cell) -> Kind:
    training = cell.training
    return cell.task, cell.clients, training.last_round, training.local_epochs, training.participation


def _method(cell: Cell) -> Method:
    """What decides how long an example takes, as far as a table's cells differ."""
    return cell.task, cell.algorithm, cell.head


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
