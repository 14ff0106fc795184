"""What of a cell is there already: its record, and the weights that it left."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.results import RunResult, read_result, read_results
from benchmarks.run_config import RunConfig
from benchmarks.running.run_options import RunOptions
from benchmarks.running.stages import find_outcome, initial_of


def cell_id_of(cell: RunConfig, settings: RunOptions) -> str:
    """A cell's identity with the data and encoders at hand: its own, and those of all that it begins from."""
    from benchmarks.running.federation import load_inputs

    before = initial_of(cell)
    begun = {"initial": cell_id_of(before, settings)} if before else {}
    return cell.cell_id(load_inputs(cell, settings).digests | begun)


def finished_result(cell: RunConfig, cell_id: str, records_dir: Path) -> RunResult | None:
    """The record of a finished cell; UserError where its file is damaged."""
    path = records_dir / f"{cell.label}-{cell_id}.json"
    if not os.path.lexists(path):  # a link that leads nowhere is refused by name
        return None
    record = read_result(path)
    if record.cell_id != cell_id:
        raise UserError(f"{path}: expected the record of {cell_id}, found that of {record.cell_id}. Move it away.")
    return record


class Found:
    """Which cells are finished, each looked up once, so that nothing is computed that none of the others needs."""

    def __init__(self, settings: RunOptions) -> None:
        self._settings = settings
        self._known: dict[tuple[str, bool], bool] = {}

    def __call__(self, cell: RunConfig, with_weights: bool) -> bool:
        """Whether a cell has a record, and weights from which another can begin where these are asked for."""
        asked = cell.spec_id, with_weights
        if asked not in self._known:
            self._known[asked] = self._look(cell, with_weights)
        return self._known[asked]

    def _look(self, cell: RunConfig, with_weights: bool) -> bool:
        folder = self._settings.records_dir
        if not any(folder.glob(f"{cell.label}-*.json")):  # spares loading its data
            return False
        try:
            cell_id = cell_id_of(cell, self._settings)
            record = finished_result(cell, cell_id, folder)
        except UserError:  # said when the cell is begun
            return False
        if record is None:
            return False
        weights = not with_weights or bool(record.diverged)
        return weights or find_outcome(self._settings, cell, cell_id) is not None


class Recorded:
    """Which cells are finished by the records of a results folder, whatever the data and encoders at hand."""

    def __init__(self, settings: RunOptions) -> None:
        folder = settings.records_dir
        self._settings = settings
        self._records = {record.cell.spec_id: record for record in read_results(folder)} if folder.is_dir() else {}

    def __call__(self, cell: RunConfig, with_weights: bool) -> bool:
        """As `Found`."""
        record = self._records.get(cell.spec_id)
        if record is None or not with_weights or record.diverged:
            return record is not None
        return find_outcome(self._settings, record.cell, record.cell_id) is not None

    def of(self, spec_ids: set[str]) -> int:
        """How many of these cells have a record."""
        return len(spec_ids & self._records.keys())

    def said(self, cells: Sequence[RunConfig]) -> str:
        """How many of some cells, from which others begin, are finished, in words."""
        finished = [cell for cell in cells if self(cell, with_weights=False)]
        if not finished:
            return "not run yet"
        lacking = not all(self(cell, with_weights=True) for cell in finished)
        count = "finished" if len(finished) == len(cells) else f"{len(finished)} of {len(cells)} finished"
        return f"{count}; without its weights here, it is run again for what begins from it" if lacking else count
