"""How many cells of a table have a record, without what reads whole records: `list` answers at once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.run_config import RunConfig
from benchmarks.running.timings import glimpses

_DECODER = json.JSONDecoder()
_CELL = '"cell": '


def recorded_cells(folders: Iterable[Path]) -> list[RunConfig]:
    """The cells of all records in folders, each once."""
    return list(glimpses(folders, _cell))


def _cell(text: str) -> RunConfig:
    value, _ = _DECODER.raw_decode(text, text.index(_CELL) + len(_CELL))
    return RunConfig.from_json(value)


class Finished:
    """The cells that have a record, of one scale."""

    def __init__(self, cells: Iterable[RunConfig], scale: str) -> None:
        """cells: of any scale."""
        own = [cell for cell in cells if cell.scale == scale]
        self._known = {cell.place_id for cell in own}
        self._methods = {(cell.task, cell.algorithm) for cell in own}

    def of(self, table: Benchmark, scale: Scale) -> tuple[int, int]:
        """How many of a table's cells are among them, whatever the seed, and how many there are."""
        places = [(row, column) for row in table.rows_at(scale) for column in table.columns_at(scale)]
        return sum(self._is_run(table, scale, *place) for place in places), len(places)

    def _is_run(self, table: Benchmark, scale: Scale, row: Row, column: Column) -> bool:
        # A cell is made and compared only where a record of its task and method exists: that takes its time.
        may_be = (column.task, row.algorithm) in self._methods
        return may_be and table.cell(row, column, scale, 0).place_id in self._known
