"""The progress display: finished runs, the round of each current run, and the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, track

from benchmarks.measures import metric
from benchmarks.results import RunResult, read_results
from benchmarks.run_config import RunConfig
from benchmarks.running import events
from benchmarks.running.timings import Timings
from benchmarks.tasks import task
from reports.pages.text import human_seconds

Item = TypeVar("Item")
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 960.0  # seconds between two lines in a file; each pause doubles the last
NO_TIMINGS = Timings()
START_UP = 60.0  # recorded seconds after which this machine's pace and the records' pace have equal weight


def warn(message: str) -> None:
    """Print a warning to stderr."""
    print(f"warning: {message}", file=sys.stderr)


def readable(folder: Path) -> list[RunResult]:
    """The records in a folder; a warning names each file that cannot be read."""
    unreadable: list[str] = []
    records = read_results(folder, unreadable=unreadable)
    for message in unreadable:
        warn(f"left out: {message}")
    return records


class ProgressDisplay:
    """A listener for events: live bars in a terminal, otherwise occasional lines; finished runs go to a log."""

    def __init__(
        self,
        title: str,
        cells: Sequence[RunConfig],
        names: dict[str, str],
        console: Console | None = None,
        timings: Timings = NO_TIMINGS,
        log: Path | None = None,
    ) -> None:
        """Show a title and the runs' progress.

        names: spec_id -> a run's name. log: a file for finished runs; without it each prints a line.
        """
        self.console = console or Console(stderr=True)
        self.names, self.log, self.count = names, log, len(cells)
        self.time_left = TimeLeft(cells, timings)
        columns = TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn()
        self.bars = Progress(*columns, TextColumn("{task.fields[note]}"), console=self.console)
        self.total = self.bars.add_task(title, total=len(cells), note="")
        self.running: dict[str, tuple[TaskID, RunConfig]] = {}
        self.messages: set[str] = set()  # printed notes and reasons
        self.done = 0
        self.pause, self.printed = FIRST_PAUSE, time.monotonic()

    def __enter__(self) -> ProgressDisplay:
        if self.console.is_terminal:
            self.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.console.is_terminal:
            self.bars.stop()

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.CellStarted(cell, cell_id, finished, examples, note):
                if self._is_new(note):
                    self._print(note)
                self._stop(cell_id)  # its worker died; another one resumes it
                total, done = sum(examples), sum(examples[: len(finished)])
                bar = self.bars.add_task(f"  {self._name(cell)}", total=total, completed=done, note="")
                self.running[cell_id] = bar, cell
                self.time_left.start(cell, done / max(total, 1))
                if finished:
                    self._print(
                        f"{self._name(cell)}: resumes after round {len(finished)} of {cell.training.last_round}"
                    )
            case events.Trained(cell_id, examples) if cell_id in self.running:
                bar, cell = self.running[cell_id]
                self.bars.advance(bar, examples)
                self.time_left.train(cell, self.bars.tasks[self.bars.task_ids.index(bar)].percentage / 100)
                self._update()
            case events.RoundFinished(cell_id, result) if cell_id in self.running:
                bar, cell = self.running[cell_id]
                loss = "" if result.train_loss is None else f", loss {result.train_loss:.3f}"
                self.bars.update(bar, note=f"round {result.round} of {cell.training.last_round}{loss}")
            case events.CellFinished(record, reused):
                self._end(record.cell, "already finished" if reused else _result(record), bool(record.diverged))
            case events.CellWaits(cell, holder):
                self._print(f"{self._name(cell)}: {holder} computes it; waiting for its record")
            case events.CellFailed(cell, message):
                is_new = self._is_new(message)
                self._end(cell, f"failed: {message}" if is_new else "failed for the same reason", is_new)
            case events.CellPruned(cell, rounds):
                self._end(cell, f"pruned after round {rounds}")

    def _is_new(self, message: str) -> bool:
        is_new = bool(message) and message not in self.messages
        self.messages.add(message)
        return is_new

    def _stop(self, cell_id: str) -> None:
        if cell_id in self.running:
            self.bars.remove_task(self.running.pop(cell_id)[0])

    def _end(self, cell: RunConfig, result: str, is_important: bool = False) -> None:
        self.done += 1
        self.time_left.end(cell)
        for cell_id in [key for key, (_, other) in self.running.items() if other.spec_id == cell.spec_id]:
            self._stop(cell_id)
        line = f"[{self.done}/{self.count}] {self._name(cell)}: {result}"
        if self.log is not None:
            with suppress(OSError):  # saving results reports a full disk
                self.log.parent.mkdir(parents=True, exist_ok=True)
                with self.log.open("a", encoding="utf-8") as file:
                    file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
        if self.log is None or is_important:
            self._print(f"{line}  {self.time_left}".rstrip())
        self._update()

    def _update(self) -> None:
        """Show the estimate next to the bar, or in occasional lines."""
        self.bars.update(self.total, completed=self.done, note=str(self.time_left))
        if not self.console.is_terminal and time.monotonic() - self.printed >= self.pause:
            self._print(f"[{self.done}/{self.count}] {self.time_left}".rstrip())
            self.pause = min(2 * self.pause, LONGEST_PAUSE)

    def _name(self, cell: RunConfig) -> str:
        return self.names.get(cell.spec_id, cell.label)

    def _print(self, text: str) -> None:
        self.printed = time.monotonic()
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def _result(record: RunResult) -> str:
    """A finished run's scores at the round that its table shows, and its time."""
    if record.diverged:
        return f"{record.divergence}: {record.diverged['reason']}"
    scores = record.rounds[record.chosen_round - 1].scores
    headline = scores.get(task(record.cell.task).evaluations[0], next(iter(scores.values()), {}))
    shown = {metric(name): value for name, value in headline.items()}
    texts = (f"{by.label} {'undefined' if value is None else f'{by.shown(value):.2f}'}" for by, value in shown.items())
    at = f" at round {record.chosen_round}" if len(record.rounds) > 1 else ""
    seconds = record.timing["setup_seconds"] + record.timing["train_seconds"]
    return f"{', '.join(texts)}{at} in {human_seconds(seconds)}".lstrip()


class TimeLeft:
    """The time left: the remaining work, divided by the speed so far.

    `Timings.work` gives a run's work. With records, the speed includes one minute at the records' pace, as loading
    libraries can take longer than a run. Without records, runs that train nothing do not count.
    """

    def __init__(self, cells: Sequence[RunConfig], timings: Timings) -> None:
        self.work = timings.work(cells)
        self.start_up = START_UP if any(timings.seconds(cell) for cell in cells) else 0.0
        self.left = {spec_id: work for spec_id, work in self.work.items() if spec_id not in timings.finished}
        self.done = 0.0
        self.started: float | None = None

    def start(self, cell: RunConfig, share: float) -> None:
        """Count a run that begins, or resumes after a share of its training."""
        self.started = time.monotonic() if self.started is None else self.started
        self.left[cell.spec_id] = self.work.get(cell.spec_id, 0.0) * (1 - share)

    def train(self, cell: RunConfig, share: float) -> None:
        """Count a completed share of a run's training."""
        left = self.work.get(cell.spec_id, 0.0) * (1 - share)
        self.done += self.left.get(cell.spec_id, left) - left
        self.left[cell.spec_id] = left

    def end(self, cell: RunConfig) -> None:
        """Count a run that ended, failed, or was already finished."""
        self.left.pop(cell.spec_id, None)

    def seconds(self) -> float | None:
        """Seconds left; None before any training or, without records, before 0.5 % of the work."""
        least = 0.0 if self.start_up else sum(self.work.values()) / 200
        if self.started is None or not self.done or self.done < least:
            return None
        pace = (time.monotonic() - self.started + self.start_up) / (self.done + self.start_up)
        return sum(self.left.values()) * pace

    def __str__(self) -> str:
        seconds = self.seconds()
        return f"about {human_seconds(seconds)} left" if seconds else ""


def tracked(items: Sequence[Item], what: str) -> Iterable[Item]:
    """The items, with a progress bar on standard error if that is a terminal."""
    console = Console(stderr=True)
    return track(items, what, console=console, transient=True, disable=not console.is_terminal)
