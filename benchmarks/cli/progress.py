"""What a person sees while cells run: each running cell's round, how many are done, and about how long is left."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from benchmarks.measures import metric
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig
from benchmarks.running.events import (
    CellFailed,
    CellFinished,
    CellPruned,
    CellStarted,
    CellWaits,
    Event,
    RoundFinished,
    Trained,
)
from benchmarks.running.timings import Timings
from benchmarks.tasks import task

QUIET_SECONDS = 60.0  # after which a log is told that cells still train
SHOWN = 3  # cells in such a line; a server may run dozens


class ProgressDisplay:
    """A sink: live bars in a terminal; elsewhere a line per finished cell, and one a minute while none finishes."""

    def __init__(
        self,
        title: str,
        cells: Sequence[RunConfig],
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
        self.running: dict[str, tuple[TaskID, RunConfig]] = {}
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
            case CellFailed(cell, _) | CellPruned(cell, _):
                running = (key for key, (_, other) in self.running.items() if other.spec_id == cell.spec_id)
                self._finished(cell, next(running, ""), self._why(event))

    def _why(self, event: CellFailed | CellPruned) -> str:
        """Why a cell has no record; a reason is said once."""
        if isinstance(event, CellPruned):
            return f"pruned after round {event.rounds}"
        is_known = event.message in self.reasons
        self.reasons.add(event.message)
        return "failed for the same reason" if is_known else f"failed: {event.message}"

    def _finished(self, cell: RunConfig, cell_id: str, outcome: str) -> None:
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

    def _name(self, cell: RunConfig) -> str:
        return self.names.get(cell.spec_id, cell.label)

    def _line(self, text: str) -> None:
        self.heard = time.monotonic()
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def _headline_scores(record: RunResult) -> Mapping[str, float | None]:
    """The last round's scores: of the evaluation that the task names first, or else of the first that there is."""
    scores = record.rounds[-1].scores
    first = task(record.cell.task).evaluations[0]
    return scores.get(first, next(iter(scores.values()), {}))


def _shown(name: str, value: float | None) -> str:
    found = metric(name)
    return f"{found.label} {'undefined' if value is None else f'{found.shown(value):.2f}'}"


class Estimate:
    """The time left: the work that is left, over the speed of the work so far.

    A run's work is the seconds that runs like it took by earlier records, or the mean of the other runs. A run that is
    under way counts by the share of its examples that it has trained.
    """

    def __init__(self, cells: Sequence[RunConfig], timings: Timings | None = None) -> None:
        timings = timings or Timings()
        self.cells = len(cells)
        recorded = {cell.spec_id: timings.seconds(cell) for cell in cells}
        known = [seconds for seconds in recorded.values() if seconds]
        mean = sum(known) / len(known) if known else 1.0
        self.work = {spec_id: seconds or mean for spec_id, seconds in recorded.items()}
        self.left = {spec_id: work for spec_id, work in self.work.items() if spec_id not in timings.finished}
        self.shares: dict[str, tuple[str, float]] = {}  # cell_id -> spec_id and the work of one example
        self.done = 0.0
        self.start: float | None = None

    def started(self, cell: RunConfig, cell_id: str, round_examples: Sequence[int], finished_rounds: int) -> None:
        """A run begins or resumes.

        Args:
            cell: The run.
            cell_id: Its identity in later events.
            round_examples: The examples that each of its rounds trains.
            finished_rounds: The rounds that an earlier start finished.
        """
        total = max(sum(round_examples), 1)
        work = self.work.get(cell.spec_id, 0.0)
        self.shares[cell_id] = cell.spec_id, work / total
        self.left[cell.spec_id] = work * sum(round_examples[finished_rounds:]) / total
        self.start = time.monotonic() if self.start is None else self.start

    def trained(self, cell_id: str, examples: int) -> None:
        """Examples of a run went through the optimiser."""
        spec_id, work = self.shares[cell_id]
        self.done += examples * work
        self.left[spec_id] = max(0.0, self.left.get(spec_id, 0.0) - examples * work)

    def finished(self, cell: RunConfig, cell_id: str) -> None:
        """A run is done: it ended, failed, or had a record before."""
        self.left.pop(cell.spec_id, None)
        self.shares.pop(cell_id, None)

    def seconds_left(self) -> float | None:
        """Seconds; None before any training was seen."""
        if self.start is None or not self.done:
            return None
        return sum(self.left.values()) * (time.monotonic() - self.start) / self.done

    def text(self) -> str:
        """The estimate in words, or nothing."""
        left = self.seconds_left()
        return "" if not left else f"about {duration(left)} left"


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
