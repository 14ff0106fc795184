"""What a person sees while cells run: how many are done, each running cell's round, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
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

FIRST_PAUSE, LONGEST_PAUSE = 60.0, 960.0  # seconds between two lines in a file; each pause is twice the last one
START_UP = 60.0  # recorded seconds after which this machine's own pace counts as much as the records' pace


class ProgressDisplay:
    """A sink of events: live bars in a terminal; elsewhere a line now and then. Every finished cell goes to a log."""

    def __init__(
        self,
        title: str,
        cells: Sequence[RunConfig],
        names: dict[str, str],
        console: Console | None = None,
        timings: Timings | None = None,
        log: Path | None = None,
    ) -> None:
        """Args: title: of all cells together; names: spec_id -> "MRPC · FedAvg · seed 0"; log: without it, the
        console has a line for each finished cell.
        """
        self.console = console or Console(stderr=True)
        self.names, self.log = names, log
        self.estimate = Estimate(cells, timings)
        columns = TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn()
        self.bars = Progress(*columns, TextColumn("{task.fields[note]}"), console=self.console)
        self.total = self.bars.add_task(title, total=len(cells), note="")
        self.running: dict[str, tuple[TaskID, RunConfig]] = {}
        self.messages: set[str] = set()  # notes and reasons that were printed
        self.done = 0
        self.pause, self.printed = FIRST_PAUSE, time.monotonic()

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
                if note and self._is_new(note):
                    self._print(note)
                self._stop(cell_id)  # of a worker that died; another one resumes it
                done = sum(examples[: len(finished)])
                bar = self.bars.add_task(f"  {self._name(cell)}", total=sum(examples), completed=done, note="")
                self.running[cell_id] = bar, cell
                self.estimate.started(cell, cell_id, examples, len(finished))
                if finished:
                    self._print(
                        f"{self._name(cell)}: resumes after round {len(finished)} of {cell.training.last_round}"
                    )
            case Trained(cell_id, examples) if cell_id in self.running:
                self.bars.advance(self.running[cell_id][0], examples)
                self.estimate.trained(cell_id, examples)
                self._update()
            case RoundFinished(cell_id, result) if cell_id in self.running:
                bar, cell = self.running[cell_id]
                loss = "" if result.train_loss is None else f", loss {result.train_loss:.3f}"
                self.bars.update(bar, note=f"round {result.round} of {cell.training.last_round}{loss}")
            case CellFinished(record, reused):
                result = "already finished" if reused else _result(record)
                self._end(record.cell, record.cell_id, result, is_worth_a_line=bool(record.diverged))
            case CellWaits(cell, holder):
                self._print(f"{self._name(cell)}: {holder} computes it; waiting for its record")
            case CellFailed(cell, message):
                is_new = self._is_new(message)
                text = f"failed: {message}" if is_new else "failed for the same reason"
                self._end(cell, self._id_of(cell), text, is_worth_a_line=is_new)
            case CellPruned(cell, rounds):
                self._end(cell, self._id_of(cell), f"pruned after round {rounds}")

    def _is_new(self, message: str) -> bool:
        is_new = message not in self.messages
        self.messages.add(message)
        return is_new

    def _id_of(self, cell: RunConfig) -> str:
        return next((key for key, (_, other) in self.running.items() if other.spec_id == cell.spec_id), "")

    def _stop(self, cell_id: str) -> None:
        if cell_id in self.running:
            self.bars.remove_task(self.running.pop(cell_id)[0])

    def _end(self, cell: RunConfig, cell_id: str, result: str, is_worth_a_line: bool = False) -> None:
        self.done += 1
        self.estimate.finished(cell, cell_id)
        self._stop(cell_id)
        line = f"[{self.done}/{self.estimate.cells}] {self._name(cell)}: {result}"
        if self.log is not None:
            with suppress(OSError):  # a full disk is reported where a result is lost
                self.log.parent.mkdir(parents=True, exist_ok=True)
                with self.log.open("a", encoding="utf-8") as file:
                    file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
        if self.log is None or is_worth_a_line:
            self._print(f"{line}  {self.estimate.text()}".rstrip())
        self._update()

    def _update(self) -> None:
        """Show the estimate: next to the bar, or now and then as a line."""
        self.bars.update(self.total, completed=self.done, note=self.estimate.text())
        if not self.console.is_terminal and time.monotonic() - self.printed >= self.pause:
            self._print(f"[{self.done}/{self.estimate.cells}] {self.estimate.text()}".rstrip())
            self.pause = min(2 * self.pause, LONGEST_PAUSE)

    def _name(self, cell: RunConfig) -> str:
        return self.names.get(cell.spec_id, cell.label)

    def _print(self, text: str) -> None:
        self.printed = time.monotonic()
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def _result(record: RunResult) -> str:
    """A finished cell's scores at the round that its table shows, and its duration."""
    if record.diverged:
        return f"{record.divergence}: {record.diverged['reason']}"
    scores = record.rounds[record.chosen_round - 1].scores
    evaluation = task(record.cell.task).evaluations[0]
    parts = []
    for name, value in scores.get(evaluation, next(iter(scores.values()), {})).items():
        known = metric(name)
        parts.append(f"{known.label} {'undefined' if value is None else f'{known.shown(value):.2f}'}")
    at = f" at round {record.chosen_round}" if len(record.rounds) > 1 else ""
    seconds = record.timing["setup_seconds"] + record.timing["train_seconds"]
    return f"{', '.join(parts)}{at} in {duration(seconds)}".lstrip()


class Estimate:
    """The time left: the work left, divided by the speed so far.

    A run's work is the seconds that similar runs took by earlier records, or the mean of the other runs. A run that is
    being computed counts by the share of its examples that it has trained.
    """

    def __init__(self, cells: Sequence[RunConfig], timings: Timings | None = None) -> None:
        timings = timings or Timings()
        self.cells = len(cells)
        recorded = {cell.spec_id: timings.seconds(cell) for cell in cells}
        seconds = [value for value in recorded.values() if value]
        self.start_up = START_UP if seconds else 0.0
        mean = sum(seconds) / len(seconds) if seconds else 1.0
        self.work = {spec_id: value or mean for spec_id, value in recorded.items()}
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
        """A run ended, failed, or was finished before."""
        self.left.pop(cell.spec_id, None)
        self.shares.pop(cell_id, None)

    def seconds_left(self) -> float | None:
        """Seconds; None before any training. The first minute of work also counts as if it went at the records' pace:
        loading the libraries takes as long as many a small cell.
        """
        if self.start is None or not self.done:
            return None
        elapsed = time.monotonic() - self.start
        return sum(self.left.values()) * (elapsed + self.start_up) / (self.done + self.start_up)

    def text(self) -> str:
        """The estimate as text; "" while it is unknown."""
        left = self.seconds_left()
        return "" if not left else f"about {duration(left)} left"


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
