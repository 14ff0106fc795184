"""The study of the embeddings: its frozen cells are Table III's, its exchanged ones send the embeddings too."""

from __future__ import annotations

import pytest

from benchmarks.dry_run import wire_plan
from benchmarks.registry import benchmark, scale_of
from benchmarks.spec import Cell

pytestmark = pytest.mark.usefixtures("untuned")

STUDY, TABLE = benchmark("fedsplitbert-sensitivity"), benchmark("fedsplitbert-table3")
HIDDEN, VOCABULARY, POSITIONS, TYPES = 384, 30522, 512, 2  # all-MiniLM-L6-v2
EMBEDDINGS = HIDDEN * (VOCABULARY + POSITIONS + TYPES + 2)  # the last 2: LayerNorm's weight and bias


def _cells(of: str, scale: str) -> dict[str, Cell]:
    found = benchmark(of)
    return {row.id: cell for row, column, cell in found.cells(scale_of(found, scale), [0]) if column.task == "mrpc"}


def test_frozen_cells_are_those_of_table_3() -> None:
    for scale in STUDY.scales:
        ours, table = _cells(STUDY.id, scale.id), _cells(TABLE.id, scale.id)
        assert all(ours[row].spec_id == table[row].spec_id for row in ("local-majority", "fedavg", "fedsplitbert"))


def test_exchanged_cells_send_the_embeddings_of_every_client_too() -> None:
    cells = _cells(STUDY.id, "lite")
    for row in ("fedavg", "fedsplitbert"):
        frozen, exchanged = wire_plan(cells[row]), wire_plan(cells[f"{row}-global"])
        assert exchanged.up_bytes - frozen.up_bytes == 3 * 4 * EMBEDDINGS


def test_no_row_claims_to_be_printed() -> None:
    assert not any(row.printed for row in STUDY.rows)
