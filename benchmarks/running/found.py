"""Completed runs: their records, and the weights that they left."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.results import RunResult, read_result
from benchmarks.run_config import RunConfig
from benchmarks.running.run_options import RunOptions
from benchmarks.running.stages import find_outcome, initial_of


def cell_id_of(cell: RunConfig, settings: RunOptions) -> str:
    """A cell's identity with the data and encoders on this machine, earlier runs included."""
    from benchmarks.running.federation import load_inputs  # loads torch

    before = initial_of(cell)
    earlier = {"initial": cell_id_of(before, settings)} if before else {}
    return cell.cell_id(load_inputs(cell, settings).digests | earlier)


def finished_result(cell: RunConfig, cell_id: str, records_dir: Path) -> RunResult | None:
    """The record of a finished cell, None where there is none; UserError where its file is damaged."""
    path = records_dir / f"{cell.label}-{cell_id}.json"
    if not os.path.lexists(path):  # a broken link is an error
        return None
    record = read_result(path)
    if record.cell_id != cell_id:
        raise UserError(f"{path}: expected the record of {cell_id}, found that of {record.cell_id}. Move it away.")
    return record


class Recorded:
    """Whether cells have a record in the results folder; each file is read once.

    A cell whose data or encoder have changed since counts as finished here, and `run_cell` computes it again.
    """

    def __init__(self, settings: RunOptions) -> None:
        self._settings = settings
        self._records: dict[str, RunResult] = {}  # spec_id -> record
        self._read: set[str] = set()  # the labels of cells whose files were read

    def __call__(self, cell: RunConfig, with_weights: bool) -> bool:
        """Whether a cell has a record and, if asked for, weights from which another cell can start."""
        record = self._record(cell)
        if record is None or not with_weights or record.diverged:
            return record is not None
        return find_outcome(self._settings, record.cell, record.cell_id) is not None

    def _record(self, cell: RunConfig) -> RunResult | None:
        if cell.label not in self._read:
            self._read.add(cell.label)
            for path in sorted(self._settings.records_dir.glob(f"{cell.label}-*.json")):
                with suppress(UserError):  # damage is reported when the cell starts
                    record = read_result(path)
                    self._records[record.cell.spec_id] = record
        return self._records.get(cell.spec_id)

    def said(self, cells: Sequence[RunConfig]) -> str:
        """A phrase for how many of some earlier runs are finished."""
        finished = [cell for cell in cells if self(cell, with_weights=False)]
        if not finished:
            return "not run yet"
        count = "finished" if len(finished) == len(cells) else f"{len(finished)} of {len(cells)} finished"
        if all(self(cell, with_weights=True) for cell in finished):
            return count
        return f"{count}; without its weights here, it runs again for the runs that start from it"


Found = Recorded
