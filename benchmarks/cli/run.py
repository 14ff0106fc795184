"""Commands that compute: run, sweep."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from benchmarks.cli.select import Selection, selection, settings
from benchmarks.errors import UserError
from benchmarks.events import CellFailed, CellFinished, Event, Sink
from benchmarks.record import RunRecord
from benchmarks.settings import Settings
from benchmarks.spec import Cell


def run_command(words: argparse.Namespace) -> int:
    """Compute what is not finished, then show and write the table."""
    from benchmarks.cli.report import show_report

    chosen = selection(words)
    cells = list({cell.spec_id: cell for _, _, cell in chosen.cells()}.values())
    made = settings(words, len(cells))
    records, failures = compute(chosen, cells, made, tracking=not words.no_tracking)
    if records:
        show_report(chosen, records, made)
    if failures:
        raise UserError(summary(failures, len(cells), chosen))
    return 0


def compute(
    chosen: Selection, cells: Sequence[Cell], made: Settings, tracking: bool
) -> tuple[list[RunRecord], list[CellFailed]]:
    """Run cells with progress and tracking; their records, and what failed."""
    from benchmarks.executors import run_cells
    from benchmarks.progress import ProgressDisplay

    records: list[RunRecord] = []
    failures: list[CellFailed] = []

    def collect(event: Event) -> None:
        if isinstance(event, CellFinished):
            records.append(event.record)
        elif isinstance(event, CellFailed):
            failures.append(event)

    with ExitStack() as stack:
        sinks: list[Sink] = [collect, stack.enter_context(ProgressDisplay(chosen.title, cells, chosen.names()))]
        if tracking:
            sinks.append(stack.enter_context(mirror(chosen, made)))

        def tell(event: Event) -> None:
            for sink in sinks:
                sink(event)

        run_cells(cells, made, tell)
    return records, failures


def mirror(chosen: Selection, made: Settings) -> Sink:
    """The MLflow mirror of a selection."""
    from benchmarks.tracking import Mirror, default_tracking_uri

    raise NotImplementedError(Mirror, default_tracking_uri)


def summary(failures: Sequence[CellFailed], cells: int, chosen: Selection) -> str:
    """Each distinct reason once, with the cells that it stopped."""
    reasons: dict[str, list[str]] = {}
    names = chosen.names()
    for failure in failures:
        reasons.setdefault(failure.message, []).append(names[failure.cell.spec_id])
    if len(failures) == cells and len(reasons) == 1:
        return next(iter(reasons))
    lines = [f"{reason} ({'; '.join(stopped)})" for reason, stopped in reasons.items()]
    return f"{len(failures)} of {cells} cells could not be computed; the others are finished. " + "\n".join(lines)


def warn(message: str) -> None:
    """Say something beside the results."""
    print(f"warning: {message}", file=sys.stderr)
