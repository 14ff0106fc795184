"""Where cells run: in this process, in several, on a SLURM cluster or on a Ray cluster; the records are the same.

Every executor has one signature, `run(board, settings, sink)`: it computes what the board has open, and tells the sink.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import suppress

from benchmarks.events import CellFailed, Event, Sink
from benchmarks.executors.board import Board
from benchmarks.settings import Settings
from benchmarks.spec import Cell
from benchmarks.stages import IsFinished
from fedsim.leases import clean

# Each lives in a module that is imported when it is asked for, as are the libraries that some of them need.
MODULES = {"serial": "serial", "processes": "processes", "slurm": "on_slurm", "ray": "on_ray"}


def run_cells(
    cells: Sequence[Cell],
    settings: Settings,
    sink: Sink,
    keeps_weights: bool = False,
    is_finished: IsFinished | None = None,
) -> int:
    """Run cells and tell the sink; returns how many failed. A cell that fails does not keep the others from running.

    What several begin from is run before them, and keeps its weights; where that fails, they fail with it. One that
    diverges has not failed, but nothing can begin from it. Nothing is run for cells that are finished. keeps_weights:
    whether all of them do. is_finished: who asked that before, so that it need not be looked up again.
    """
    from benchmarks.found import Found

    board = Board.of(cells, keeps_weights, is_finished or Found(settings))
    failed: set[str] = set()

    def tell(event: Event) -> None:
        if isinstance(event, CellFailed):
            failed.add(event.cell.spec_id)
        sink(event)

    name = settings.executor or "processes"
    if name == "processes" and min(settings.workers, len(board.open)) <= 1:
        name = "serial"
    try:
        importlib.import_module(f"benchmarks.executors.{MODULES[name]}").run(board, settings, tell)
    finally:
        with suppress(OSError):
            clean(settings.results_dir / "locks")
    return len(failed)
